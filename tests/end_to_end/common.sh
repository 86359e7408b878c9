# SPDX-License-Identifier: Apache-2.0
# What the end-to-end tests share: an empty folder to work in, and two ways to ask. Sourced with the binary as $1.
set -euo pipefail
heed=$(realpath "$1")
folder=$(mktemp -d)
mounted=
trap '[[ -z $mounted ]] || umount "$mounted"; rm -rf "$folder"' EXIT
cd "$folder"

fail() {
  echo "FAILED: $*" >&2
  exit 1
}
# says <regex> <command...>: it works, and its output, both streams, has the expression.
says() {
  local expected=$1 output
  shift
  output=$("$@" 2>&1) || fail "$* gave exit code $?: $output"
  grep -qP -- "$expected" <<<"$output" || fail "$* said '$output', expected '$expected'"
}
# has_words <file>: it is worth comparing with.
has_words() { grep -q '[[:alpha:]]' "$1" || fail "$1 has no words: $(head -c 200 "$1")"; }
# refuses <code> <regex> <command...>: it fails with one line on standard error that has the expression.
refuses() {
  local wanted=$1 expected=$2 code=0
  shift 2
  "$@" >out 2>err || code=$?
  [[ $code == "$wanted" ]] || fail "$* gave exit code $code, expected $wanted: $(cat out err)"
  [[ $(wc -l <err) == 1 ]] || fail "$* said more than one line: $(cat err)"
  grep -qP -- "$expected" err || fail "$* said '$(cat err)', expected '$expected'"
}

