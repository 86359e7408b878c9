# SPDX-License-Identifier: Apache-2.0
"""The page that the library carries stays small: check_page_size.py <page.html>."""

import gzip
import pathlib
import sys

MOST = 150_000
MOST_COMPRESSED = 50_000

page = pathlib.Path(sys.argv[1]).read_bytes()
compressed = len(gzip.compress(page, 9))
print(f"{sys.argv[1]}: {len(page)} bytes, {compressed} compressed")
if len(page) > MOST or compressed > MOST_COMPRESSED:
    sys.exit(f"expected at most {MOST} bytes, {MOST_COMPRESSED} compressed")
if page.count(b"@HEED_TRACES@") != 1:
    sys.exit(f"@HEED_TRACES@ is there {page.count(b'@HEED_TRACES@')} times, expected once: traces are put there")
