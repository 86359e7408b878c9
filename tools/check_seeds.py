# SPDX-License-Identifier: Apache-2.0
"""HEED_TEST_SEED reaches every random test: check_seeds.py <root of the sources>.

Fails on a random generator of a test that is begun with a constant: heed::testing::seeded(3) is what it should be begun
with. One that has to stay has its reason in a comment, on its line or in the lines above it: '// fixed seed: ...'; at the
head of a file, before the first include, the reason is that of the whole file.
"""
import pathlib
import re
import sys

CONSTANT = re.compile(r"\b(Rng|Grammar|Split)\b( \w+)?[({]\d+\b|\bmake_model\(.*, \d+\)|\bmt19937|\brandom_device")
REASON = re.compile(r"//.*\bfixed seed: ")


def reasoned(lines, number):
    """A reason on this line, or in the comment right above it."""
    if REASON.search(lines[number]):
        return True
    while number > 0 and lines[number - 1].lstrip().startswith("//"):
        number -= 1
        if REASON.search(lines[number]):
            return True
    return False


def complaints(path):
    lines = path.read_text().split("\n")
    first_include = next(i for i, line in enumerate(lines) if line.startswith("#include"))
    if any(REASON.search(line) for line in lines[:first_include]):
        return []
    return [i + 1 for i, line in enumerate(lines) if CONSTANT.search(line) and not reasoned(lines, i)]


def main():
    root = pathlib.Path(sys.argv[1])
    paths = sorted(
        path
        for folder in ("heed", "tests", "cli", "bench", "fuzz")
        for path in (root / folder).rglob("*")
        if re.search(r"(_test|testing)\.(h|cc)$", path.name)
    )
    found = [(path, number) for path in paths for number in complaints(path)]
    for path, number in found:
        print(f"{path.relative_to(root)}:{number}: a constant seed, expected seeded(...) or '// fixed seed: why'")
    print(f"{len(paths)} files of tests, {len(found)} constant seeds")
    return int(bool(found) or not paths)


sys.exit(main())
