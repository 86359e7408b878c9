# SPDX-License-Identifier: Apache-2.0
"""Every source file names its licence in its first lines: check_spdx.py [--fix] <root of the sources>.

The line is the first one, or the second one below `#!`. Files are those that git tracks or would track.
Prose (.md), data and JSON, which has no comments, go without: LICENSE covers them.
"""

import pathlib
import subprocess
import sys

LINE = "SPDX-License-Identifier: Apache-2.0"
COMMENT = {".cc": "// ", ".h": "// ", ".ts": "// ", ".tsx": "// ", ".py": "# ", ".sh": "# ", ".cmake": "# ",
           ".yml": "# ", ".yaml": "# "}
NAMES = {"CMakeLists.txt": "# ", "dev": "# ", "run": "# "}


def comment_of(path):
    return NAMES.get(path.name) or COMMENT.get(path.suffix)


def has_line(text):
    return any(LINE in line for line in text.split("\n")[:2])


def with_line(text, comment):
    if not text.startswith("#!"):
        return f"{comment}{LINE}\n{text}"
    first, rest = text.split("\n", 1)
    return f"{first}\n{comment}{LINE}\n{rest}"


def sources(root):
    listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=root,
                            capture_output=True, text=True)
    if listed.returncode != 0:  # not a checkout: a downloaded archive, say
        return [path for path in root.rglob("*") if path.is_file() and "build" not in path.relative_to(root).parts]
    return [root / name for name in listed.stdout.splitlines() if (root / name).is_file()]


def main(arguments):
    fix = "--fix" in arguments
    root = pathlib.Path([a for a in arguments if a != "--fix"][0])
    files = [path for path in sources(root) if comment_of(path)]
    missing = [path for path in files if not has_line(path.read_text())]
    if not files:
        sys.exit(f"{root}: no source files, expected some")
    for path in missing:
        if fix:
            path.write_text(with_line(path.read_text(), comment_of(path)))
        else:
            print(f"{path.relative_to(root)}: no '{LINE}' in its first lines; tools/check_spdx.py --fix adds it")
    if missing and not fix:
        sys.exit(1)
    print(f"{len(files)} files, {len(missing)} {'mended' if fix else 'without the line'}")


main(sys.argv[1:])
