"""clang-tidy over what a build compiles: check_tidy.py <build directory>.

Left out: tests (GoogleTest's macros), and files that Highway compiles once for each instruction set, where clang-tidy
takes minutes and sees the same lines several times. Exit code 77: there is no clang-tidy here.
"""
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys


def wanted(path):
    return not path.name.endswith("_test.cc") and not re.search(r'#include [<"]hwy/', path.read_text())


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
    for path, result in zip(paths, results):
        if result.returncode:
            print(result.stdout or f"{path}: {result.stderr}")
    print(f"clang-tidy: {len(paths)} files")
    return int(any(result.returncode for result in results))


sys.exit(main())
