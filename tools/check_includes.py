# SPDX-License-Identifier: Apache-2.0
"""Includes point one way: check_includes.py <root of the sources>.

Fails, with file and line, on an include that points upwards or sideways, on a library that only one place may know, and
on an internal or third-party header in a public header.
"""
import pathlib
import re
import sys

import public_headers

# What a folder may include besides itself: these, and whatever they may include. The longest entry that a path begins
# with decides, so a single file can have its own line.
MAY_INCLUDE = {
    "heed/attention.h": ["heed/kernels/attention"],
    "heed/base": [],
    "heed/kernels/vec-inl.h": ["heed/base"],
    "heed/kernels/tanh-inl.h": ["heed/kernels/vec-inl.h"],
    "heed/kernels/philox-inl.h": ["heed/kernels/vec-inl.h"],
    "heed/kernels/attention": ["heed/kernels/tanh-inl.h", "heed/kernels/philox-inl.h"],
    "heed/kernels": ["heed/kernels/attention"],
    "heed/kernels/reference": ["heed/kernels"],
    "heed/tensor": ["heed/base"],
    "heed/autograd": ["heed/tensor"],
    "heed/ops": ["heed/autograd", "heed/kernels/reference"],
    "heed/nn": ["heed/ops"],
    "heed/io": ["heed/tensor"],
    "heed/page": ["heed/io"],
    "heed/models": ["heed/nn", "heed/io"],
    "heed/text": ["heed/base"],
    "heed/dist": ["heed/kernels/attention"],
    "heed/data": ["heed/models", "heed/text"],
    "heed/folder": ["heed/data"],
    "heed/shard": ["heed/folder"],
    "heed/analysis": ["heed/data"],
    "heed/decode": ["heed/analysis", "heed/folder"],
    "heed/evaluate": ["heed/decode"],
    "heed/trace": ["heed/decode", "heed/page"],
    "heed/train": ["heed/evaluate", "heed/dist", "heed/page"],
    "heed/grammar": ["heed/evaluate"],
    "heed/heed.h": ["heed/train", "heed/trace", "heed/shard", "heed/attention.h"],
    "heed/lab": ["heed/heed.h", "heed/train", "heed/trace", "heed/grammar"],
    "bench": ["heed/lab"],
    "cli": ["heed/lab", "heed/shard", "bench"],
    "python": ["heed/lab"],
    "examples": ["heed/heed.h", "heed/lab"],
    "fuzz": ["heed/lab"],
    "tests": ["cli", "python", "fuzz"],
}

# Tests stand beside what they test, and may also look at its double-precision twin.
TESTS_MAY_INCLUDE = {
    "heed/dist": ["heed/kernels/reference"],
    "heed/kernels": ["heed/kernels/reference"],
    "heed/kernels/attention": ["heed/kernels/reference"],
}

# (headers, who may include them, why). The places are beginnings of paths; 'test' stands for tests.
OWNED = [
    (r"(cblas|openblas/|openblas_|mkl|blis/)", [], "products are heed's own"),
    (
        r"(thread|mutex|shared_mutex|condition_variable|future|semaphore|barrier|latch|pthread\.h|omp\.h)$",
        ["heed/base/parallel", "test"],
        "only base/parallel knows threads",
    ),
    (r"atomic$", ["heed/base/parallel", "heed/base/cancel", "heed/base/counted_heap", "bench", "test"], "only base/parallel knows threads"),
    (r"hwy/", ["heed/kernels", "bench"], "only kernels know SIMD"),
    (r"mpi\.h$", ["heed/dist/mpi"], "only dist/mpi knows MPI"),
    (r"sentencepiece", ["heed/text/tokenizer"], "only text/tokenizer knows SentencePiece"),
    (r"zlib\.h$", ["heed/text/gzip", "test"], "only text/gzip knows zlib"),
    (r"(gtest|gmock|rapidcheck)(/|\.h)", ["test"], "only tests know the test libraries"),
]

# Beside *_test.cc and testing.{h,cc}, what only tests use.
TEST_SUPPORT = ["heed/kernels/attention/error_bounds.h", "heed/kernels/attention/observe_testing.h"]

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def folder_of(path):
    """The entry of MAY_INCLUDE that a path from the root belongs to, or None."""
    entries = [entry for entry in MAY_INCLUDE if path == entry or path.startswith(entry + "/")]
    return max(entries, key=len, default=None)


def reachable(folder):
    """A folder, and everything that it may include."""
    seen, left = set(), [folder]
    while left:
        entry = left.pop()
        if entry not in seen:
            seen.add(entry)
            left += MAY_INCLUDE[entry]
    return seen


def is_test(path):
    in_test_folder = path.startswith(("tests/", "fuzz/"))
    return in_test_folder or path in TEST_SUPPORT or re.search(r"(_test|/testing)\.(h|cc)$", path) is not None


def is_standard(header):
    return "/" not in header and not header.endswith(".h")


def complaint(root, path, quote, header):
    """What is wrong with this include in this file, as a sentence, or None."""
    if quote == '"' and (root / path).parent.joinpath(header).is_file() and not (root / header).is_file():
        return f'"{header}" is relative to the file; write it from the root of the sources'
    target = folder_of(header)
    if target:
        folder = folder_of(path)
        allowed = reachable(folder)
        if is_test(path):
            for extra in TESTS_MAY_INCLUDE.get(folder, []):
                allowed |= reachable(extra)
        if target not in allowed:
            return f"{folder} may not include {target} ({header}): includes point downwards only"
        if public_headers.is_public(path) and not public_headers.is_public(header):
            return f"{header} is internal (cmake/internal_headers.txt), and not for a public header to include"
        return None
    for pattern, places, why in OWNED:
        if re.match(pattern, header):
            if path.startswith(tuple(places)) or ("test" in places and is_test(path)):
                break
            return f"<{header}> does not belong here: {why}"
    if public_headers.is_public(path) and not is_standard(header):
        return f"<{header}> in a public header: only headers of heed and of the standard library may stand there"
    return None


def check(root):
    """All complaints about a source tree, as 'file:line: sentence', and the number of files looked at."""
    complaints, files = [], 0
    for top in sorted({entry.split("/")[0] for entry in MAY_INCLUDE}):
        for file in sorted((root / top).rglob("*")):
            if file.suffix not in (".h", ".cc"):
                continue
            files += 1
            path = file.relative_to(root).as_posix()
            if not folder_of(path):
                complaints.append(f"{path}:1: this folder has no line in MAY_INCLUDE of tools/check_includes.py")
                continue
            for number, line in enumerate(file.read_text().splitlines(), 1):
                match = INCLUDE.match(line)
                sentence = match and complaint(root, path, *match.groups())
                if sentence:
                    complaints.append(f"{path}:{number}: {sentence}")
    return complaints, files


if __name__ == "__main__":
    found, looked_at = check(pathlib.Path(sys.argv[1]))
    print("\n".join(found) if found else f"includes of {looked_at} files point one way")
    sys.exit(1 if found or not looked_at else 0)
