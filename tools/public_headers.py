# SPDX-License-Identifier: Apache-2.0
"""Which headers are public: those of heed/ that cmake/internal_headers.txt does not name."""
import pathlib
import re

LIST = pathlib.Path(__file__).resolve().parent.parent / "cmake" / "internal_headers.txt"


def internal_pattern():
    lines = [line for line in LIST.read_text().splitlines() if line and not line.startswith("#")]
    return re.compile("|".join(f"(?:{line})" for line in lines))


INTERNAL = internal_pattern()


def is_public(path):
    """Whether a path from the root of the sources is a header that is installed."""
    return path.startswith("heed/") and path.endswith(".h") and not INTERNAL.fullmatch(path)
