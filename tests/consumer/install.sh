#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# install.sh <cmake> <build directory> <compiler>: installs the build for the other scripts. Every header that was
# installed compiles by itself, none is internal, and the libraries have the size they should.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

rm -rf "$work"
"$cmake" --install "$build" --prefix "$prefix" >/dev/null

(cd "$prefix/include" && find heed -name '*.h' | sort) >"$work/headers"
grep -q '^heed/attention.h$' "$work/headers" || fail "heed/attention.h was not installed"
! grep -E -- '-inl\.h$|testing\.h$|kernels/attention/plan\.h$' "$work/headers" || fail "internal headers were installed"

compiles() { "$cxx" -std=c++20 -fsyntax-only -I"$prefix/include" -x c++ -; }
sed 's/.*/#include "&"/' "$work/headers" | compiles || fail "the installed headers do not compile"
# A header that leans on what others include before it shows where it comes first. Most have a source that begins with
# them, so the build has shown that already; the others are compiled alone.
alone=0
while read -r header; do
  first=$(grep -m1 '^#include' "$root/${header%.h}.cc" 2>/dev/null) || first=
  [[ $first != "#include \"$header\"" ]] || continue
  echo "#include \"$header\"" | compiles || fail "the installed $header does not compile on its own"
  alone=$((alone + 1))
done <"$work/headers"
echo "$(wc -l <"$work/headers") public headers compile, $alone of them without a source that begins with them"

libdir=$(dirname "$(find "$prefix" -name libheed_attention.a)")
for library in libheed_attention libheed; do
  strip -o "$work/$library.so" "$libdir/$library.so"
  echo "$library: bytes of .so, stripped, and of .a:" \
    "$(stat -c %s "$work/$library.so")" "$(stat -c %s "$libdir/$library.a")"
done
size=$(stat -c %s "$work/libheed_attention.so")
((size < 3000000)) || fail "libheed_attention.so has $size bytes stripped, expected less than 3000000"

# Nothing is in both libraries: a program that uses both would have it twice.
defined() { nm -D --defined-only "$libdir/$1.so" | awk '$2 ~ /^[TBD]$/ {print $3}' | sort -u; }
twice=$(comm -12 <(defined libheed) <(defined libheed_attention))
[[ -z $twice ]] || fail "both libraries define" $twice
# What is installed names no folder of the machine that built it.
if grep -rlE --include='*.cmake' --include='*.pc' --include='*.h' -e "$build|$root" "$prefix"; then
  fail "files that were installed name folders of this build"
fi
if grep -rE --include='*.cmake' --include='*.pc' -e '(=|;|")/(usr|opt|home|tmp)/' "$prefix"; then
  fail "files that were installed name folders of this machine"
fi
