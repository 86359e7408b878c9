# SPDX-License-Identifier: Apache-2.0
"""The C++ blocks of README.md are programs of examples/, letter for letter: what a reader copies is what is tested.

But for the line of the licence, which a reader's own program does not want.
"""
import pathlib
import re
import sys

root = pathlib.Path(__file__).resolve().parent.parent
blocks = re.findall(r"^```cpp\n(.*?)^```$", (root / "README.md").read_text(), re.MULTILINE | re.DOTALL)
programs = ["translate.cc", "train.cc", "first.cc"]
if len(blocks) != len(programs):
    sys.exit(f"README.md: {len(blocks)} ```cpp blocks, expected {len(programs)}: {', '.join(programs)}")
for block, program in zip(blocks, programs):
    licence, text = (root / "examples" / program).read_text().split("\n", 1)
    if "SPDX" not in licence or block != text:
        sys.exit(f"README.md: a ```cpp block differs from examples/{program}; copy the file into it")
