"""clang-tidy over what a build compiles of the library: check_tidy.py <build directory>.

Left out, because it has to be quick: tests (GoogleTest's macros), files that Highway compiles once for each instruction
set (the same lines several times), and the tools with their large headers. Exit code 77: there is no clang-tidy here.
"""
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

LIBRARY = pathlib.Path(__file__).resolve().parent.parent / "heed"
# Folders that have been brought to pass; the others are to follow.
FOLDERS = ["base", "io", "kernels/attention", "kernels/reference"]


def wanted(path):
    is_test = path.name.endswith("_test.cc") or path.name in ("testing.cc", "counted_heap.cc")
    covered = any(LIBRARY / folder in path.parents for folder in FOLDERS)
    return covered and not is_test and not re.search(r'#include [<"]hwy/', path.read_text())


def tidy(build, path):
    # Warnings are the compiler's business, and it is another compiler's list: here they are no errors.
    command = ["clang-tidy", "--quiet", "-p", build, "--extra-arg=-Wno-error", "--extra-arg=-w", str(path)]
    return subprocess.run(command, capture_output=True, text=True)


def main():
    if not shutil.which("clang-tidy"):
        print("skipped: no clang-tidy here")
        return 77
    build = sys.argv[1]
    with open(os.path.join(build, "compile_commands.json")) as commands:
        paths = sorted({pathlib.Path(entry["file"]) for entry in json.load(commands)})
    paths = [path for path in paths if wanted(path)]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(lambda path: tidy(build, path), paths))
    failed = 0
    for path, result in zip(paths, results):
        errors = re.findall(r" error: .*\[(.*)\]$", result.stdout, re.MULTILINE)
        if errors and set(errors) == {"clang-diagnostic-error"}:
            # The build shows that it compiles: this clang is too old for it (structured bindings in lambdas need 16).
            print(f"{path}: left out, this clang-tidy cannot parse it")
        elif result.returncode:
            failed += 1
            print(result.stdout or f"{path}: {result.stderr}")
    print(f"clang-tidy: {len(paths)} files, {failed} with errors")
    return int(failed > 0)


sys.exit(main())
