#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Line coverage by folder, from gcovr's summary: coverage_table.py build/coverage/summary.json."""
import collections
import json
import os
import sys


def table(files):
    """Rows of (folder, lines, lines that ran), one a folder, by name, and the sum."""
    folders = collections.defaultdict(lambda: [0, 0])
    for file in files:
        counts = folders[os.path.dirname(file["filename"])]
        counts[0] += file["line_total"]
        counts[1] += file["line_covered"]
    rows = [(name, *counts) for name, counts in sorted(folders.items()) if counts[0]]
    return rows + [("all", sum(row[1] for row in rows), sum(row[2] for row in rows))]


def main(path):
    with open(path) as file:
        rows = table(json.load(file)["files"])
    if len(rows) == 1:
        sys.exit(f"{path}: no lines of any file, expected some")
    width = max(len(row[0]) for row in rows)
    print(f"{'folder':<{width}}    lines      ran  share")
    for name, lines, ran in rows:
        print(f"{name:<{width}} {lines:8} {ran:8}  {100 * ran / lines:4.1f}%")


main(sys.argv[1])
