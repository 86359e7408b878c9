"""The first C++ block of README.md is examples/first.cc, letter for letter: what a reader copies is what is tested."""
import pathlib
import re
import sys

root = pathlib.Path(__file__).resolve().parent.parent
blocks = re.findall(r"^```cpp\n(.*?)^```$", (root / "README.md").read_text(), re.MULTILINE | re.DOTALL)
if not blocks:
    sys.exit("README.md: no ```cpp block, expected the text of examples/first.cc")
if blocks[0] != (root / "examples" / "first.cc").read_text():
    sys.exit("README.md: the first ```cpp block differs from examples/first.cc; copy the file into it")
