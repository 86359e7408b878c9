# SPDX-License-Identifier: Apache-2.0
"""The pages that the library carries stay small: check_page_size.py <page.html>..."""

import gzip
import pathlib
import sys

MOST = 150_000
MOST_COMPRESSED = 50_000

for name in sys.argv[1:]:
    page = pathlib.Path(name).read_bytes()
    compressed = len(gzip.compress(page, 9))
    print(f"{name}: {len(page)} bytes, {compressed} compressed")
    if len(page) > MOST or compressed > MOST_COMPRESSED:
        sys.exit(f"expected at most {MOST} bytes, {MOST_COMPRESSED} compressed")
    if page.count(b"@HEED_DATA@") != 1:
        sys.exit(f"@HEED_DATA@ is there {page.count(b'@HEED_DATA@')} times, expected once: data are put there")
