#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# setup.sh DIR: makes a virtual environment in DIR, outside the sources, with what the scripts beside this one compare
# heed with. One that is there already is brought up to date.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
if [[ $# != 1 ]]; then
  echo "setup.sh: $# arguments came, expected one: the folder to make" >&2
  exit 2
fi
folder=$(realpath -m -- "$1")
if [[ $folder == "$root" || $folder == "$root"/* ]]; then
  echo "setup.sh: the folder is '$1', expected one outside the sources" >&2
  exit 2
fi
python3 -m venv "$folder"
"$folder/bin/python" -m pip install --quiet --requirement "$here/requirements.txt"
"$folder/bin/python" -c 'import ctranslate2, numpy; print("ctranslate2", ctranslate2.__version__, "numpy", numpy.__version__)'
echo "next: $1/bin/python bench/peers/translate.py --model DIR"
