# SPDX-License-Identifier: Apache-2.0
"""The pages of docs/tour/ quote examples/tour.cc and show what it prints: check_tour.py <the program>.

A C++ block is lines of the program, in their order, letter for letter but for the indentation; a text block is lines of
its output. Fails with the page and the first line that is not there.
"""
import pathlib
import re
import subprocess
import sys
import textwrap

root = pathlib.Path(__file__).resolve().parent.parent


def missing(block, lines):
    """The first line of a block from which on it is not in `lines`, one after the other; None where it is."""
    wanted = textwrap.dedent(block).splitlines()
    furthest = 0
    for start in range(len(lines)):
        found = textwrap.dedent("\n".join(lines[start : start + len(wanted)])).splitlines()
        same = next((i for i, (a, b) in enumerate(zip(wanted, found)) if a != b), min(len(wanted), len(found)))
        if same == len(wanted):
            return None
        furthest = max(furthest, same)
    return wanted[furthest]


def main():
    said = subprocess.run([sys.argv[1]], check=True, capture_output=True, text=True).stdout.splitlines()
    program = (root / "examples" / "tour.cc").read_text().splitlines()
    pages = sorted((root / "docs" / "tour").glob("[0-9]*.md"))
    errors = [] if pages else ["docs/tour has no pages"]
    for page in pages:
        for kind, lines, source in [("cpp", program, "examples/tour.cc"), ("text", said, "what it prints")]:
            blocks = re.findall(rf"^```{kind}\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)
            if not blocks:
                errors.append(f"docs/tour/{page.name}: no ```{kind} block")
            for block in blocks:
                line = missing(block, lines)
                if line is not None:
                    errors.append(f"docs/tour/{page.name}: a ```{kind} block differs from {source} at '{line}'")
    sys.exit("\n".join(errors) or 0)


main()
