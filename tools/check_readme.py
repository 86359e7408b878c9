"""The C++ blocks of README.md are programs of examples/, letter for letter: what a reader copies is what is tested."""
import pathlib
import re
import sys

root = pathlib.Path(__file__).resolve().parent.parent
blocks = re.findall(r"^```cpp\n(.*?)^```$", (root / "README.md").read_text(), re.MULTILINE | re.DOTALL)
programs = ["translate.cc", "train.cc", "first.cc"]
if len(blocks) != len(programs):
    sys.exit(f"README.md: {len(blocks)} ```cpp blocks, expected {len(programs)}: {', '.join(programs)}")
for block, program in zip(blocks, programs):
    if block != (root / "examples" / program).read_text():
        sys.exit(f"README.md: a ```cpp block differs from examples/{program}; copy the file into it")
