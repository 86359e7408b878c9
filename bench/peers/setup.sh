#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# setup.sh DIR: makes a virtual environment in DIR, outside the sources, with what the scripts beside this one compare
# heed with: CTranslate2, PyTorch, ONNX Runtime. A download of some gigabytes where PyTorch comes with its libraries for
# graphics cards, which are not used here. An environment that is there already is brought up to date.
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
"$folder/bin/python" - <<'END'
import ctranslate2, numpy, onnx, onnxruntime, torch
for module in (ctranslate2, numpy, onnx, onnxruntime, torch):
    print(module.__name__, module.__version__)
END
echo "next: $1/bin/python bench/peers/attention.py, layers.py, train.py, translate.py --model DIR (docs/performance.md)"
