# SPDX-License-Identifier: Apache-2.0
# What the scripts of this folder share. Sourced, with: <cmake> <build directory> <compiler>.
set -euo pipefail
cmake=$1 build=$2 cxx=$3
source=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$source/../.." && pwd)
work=$build/consumer
prefix=$work/prefix
# attention.cc: rows [1 2] and [3 4], mixed by w and 1 - w, then by 1 - w and w:
# w = 1 / (1 + exp(-1 / sqrt(2))) = 0.66976.
expected_attention="1.6605 2.6605 2.3395 3.3395 and an error"
expected_whole="0.620560 in both, 4 hypotheses and an error"

fail() {
  echo "$(basename "$0" .sh): $*" >&2
  exit 1
}

# check_program <attention|whole> <program> <libraries it may load, as a regular expression>
check_program() {
  local program=$2 expected=expected_$1 printed loaded extra
  printed=$("$program")
  [[ $printed == "${!expected}" ]] || fail "$program printed '$printed', expected '${!expected}'"
  loaded=$(ldd "$program" | awk '{print $1}' |
    grep -vE '^(libstdc\+\+|libm|libgcc_s|libc|libpthread|linux-vdso)\.so|/ld-linux') || true
  echo "$(basename "$(dirname "$program")")/$(basename "$program") loads:" $loaded
  extra=$(grep -vE "^($3)\.so" <<<"$loaded") || true
  [[ -z $extra ]] || fail "$program loads more than $3:" $extra
}

attention_needs='libhwy'
# What SentencePiece loads itself is its own.
whole_needs='libhwy|libsentencepiece(_train)?|libprotobuf-lite|libz|libabsl.*'
