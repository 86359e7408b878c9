#!/usr/bin/env bash
# check.sh <cmake> <build directory> <compiler>: installs the build, and builds consumer.cc against what was installed,
# as its users would: with find_package and with pkg-config. It must print the right numbers and load no other library.
set -euo pipefail
cmake=$1 build=$2 cxx=$3
source=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$build/install_consumer
prefix=$work/prefix
# Rows [1 2] and [3 4], mixed by w and 1 - w, then by 1 - w and w: w = 1 / (1 + exp(-1 / sqrt(2))) = 0.66976.
expected="1.6605 2.6605 2.3395 3.3395"

fail() {
  echo "install_consumer: $*" >&2
  exit 1
}

check_program() {
  local printed extra
  printed=$("$1")
  [[ $printed == "$expected" ]] || fail "$1 printed '$printed', expected '$expected'"
  extra=$(ldd "$1" | awk '{print $1}' |
    grep -vE '^(libheed_attention|libhwy|libstdc\+\+|libm|libgcc_s|libc|libpthread|linux-vdso)\.so|/ld-linux') || true
  [[ -z $extra ]] || fail "$1 pulled in more than the standard library and Highway:" $extra
}

rm -rf "$work"
"$cmake" --install "$build" --prefix "$prefix" >/dev/null

find "$prefix/include" -name '*.h' -printf '%P\n' | while read -r header; do
  echo "#include \"$header\"" | "$cxx" -std=c++20 -fsyntax-only -I"$prefix/include" -x c++ - ||
    fail "the installed $header does not compile on its own"
done

"$cmake" -G Ninja -S "$source" -B "$work/cmake" -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_CXX_COMPILER="$cxx" >/dev/null
"$cmake" --build "$work/cmake" >/dev/null
check_program "$work/cmake/consumer"

export PKG_CONFIG_PATH
PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name heed-attention.pc)")
libdir=$(pkg-config --variable=libdir heed-attention)
"$cxx" -std=c++20 "$source/consumer.cc" -o "$work/by_pkg_config" $(pkg-config --cflags --libs heed-attention) \
  -Wl,-rpath,"$libdir"
check_program "$work/by_pkg_config"

mkdir "$work/unknown"
echo 'cmake_minimum_required(VERSION 3.22)
project(unknown LANGUAGES NONE)
find_package(heed REQUIRED COMPONENTS telepathy)' >"$work/unknown/CMakeLists.txt"
if message=$("$cmake" -S "$work/unknown" -B "$work/unknown/build" -DCMAKE_PREFIX_PATH="$prefix" 2>&1); then
  fail "find_package found a component that does not exist"
fi
[[ $message == *"heed has no component 'telepathy'"* ]] || fail "an unknown component is not named: $message"

strip -o "$work/stripped.so" "$libdir/libheed_attention.so"
size=$(stat -c %s "$work/stripped.so")
echo "libheed_attention.so, stripped: $size bytes"
((size < 3000000)) || fail "the stripped library has $size bytes, expected less than 3000000"
