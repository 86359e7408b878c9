# SPDX-License-Identifier: Apache-2.0
"""clang-tidy over the sources that a build compiles: check_tidy.py <build directory> [--all].

With --all, or HEED_TIDY_ALL=1 in the environment (./dev test --all), every source of heed/, cli/, bench/, fuzz/ and examples/ that is not a test or a help of tests; without it,
those of cli/ are left out. What Highway compiles once for each instruction set is read for the baseline alone: the same
lines, once. Branches for wider vectors (HWY_CAP_GE512) are not seen.
Exit code 77: there is no clang-tidy here.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
# The slowest first, so that no core waits for a long one at the end.
FOLDERS = ["cli", "bench", "fuzz", "examples", "heed"]
# Without --all, to stay within minutes.
SLOW = ["cli"]
SLOW_REASON = "CLI11 and fmt make a command cost several times a file of the library"
# Help for tests, under names that do not end as theirs.
HELP_OF_TESTS = ("testing.cc", "counted_heap.cc")


def newest():
    """The clang-tidy to use, or None. 14 cannot parse all of C++20 (structured bindings in lambdas need 16)."""
    return next((name for name in ("clang-tidy-19", "clang-tidy") if shutil.which(name)), None)


def folder_of(path):
    """Which of FOLDERS a source is in, or None."""
    return next((folder for folder in FOLDERS if ROOT / folder in path.parents), None)


def wanted(path):
    return folder_of(path) is not None and not path.name.endswith("_test.cc") and path.name not in HELP_OF_TESTS


def tidy(program, build, path):
    # Warnings are the compiler's business, and it is another compiler's list: here they are no errors.
    command = [program, "--quiet", "-p", build, "--extra-arg=-Wno-error", "--extra-arg=-w",
               "--extra-arg=-DHWY_COMPILE_ONLY_STATIC", str(path)]
    return subprocess.run(command, capture_output=True, text=True)


def report(path, result):
    """Prints what clang-tidy says of a file. True: it has errors."""
    errors = re.findall(r" error: .*\[(.*)\]$", result.stdout, re.MULTILINE)
    if errors and set(errors) == {"clang-diagnostic-error"}:
        # The build shows that it compiles: this clang is too old for it.
        print(f"{path}: left out, this clang-tidy cannot parse it", flush=True)
        return False
    if result.returncode:
        print(result.stdout or f"{path}: {result.stderr}", flush=True)
    return result.returncode != 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", help="a build directory, with compile_commands.json")
    parser.add_argument("--all", action="store_true", help="everything, however long it takes")
    arguments = parser.parse_args()
    program = newest()
    if not program:
        print("skipped: no clang-tidy here")
        return 77
    with open(os.path.join(arguments.build, "compile_commands.json")) as commands:
        paths = sorted({pathlib.Path(entry["file"]) for entry in json.load(commands)})
    paths = sorted((path for path in paths if wanted(path)), key=lambda path: FOLDERS.index(folder_of(path)))
    if not (arguments.all or os.environ.get("HEED_TIDY_ALL") == "1"):
        slow = [path for path in paths if folder_of(path) in SLOW]
        paths = [path for path in paths if folder_of(path) not in SLOW]
        if slow:
            print(f"left out without --all: {len(slow)} files of {', '.join(SLOW)} ({SLOW_REASON})", flush=True)
    begin = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = pool.map(lambda path: tidy(program, arguments.build, path), paths)
        failed = sum(report(path, result) for path, result in zip(paths, results))
    print(f"{program}: {len(paths)} files, {failed} with errors, {time.monotonic() - begin:.0f} s")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
