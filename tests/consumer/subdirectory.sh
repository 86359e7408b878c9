#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# subdirectory.sh <cmake> <build directory> <compiler>: heed as a part of another project, with add_subdirectory
# (static) and with FetchContent (shared). The project's own code is compiled with the project's flags, and no others.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
work=$build/consumer_subdirectory  # beside the others', which may run at the same time

# Attention alone, and for the oldest instruction set alone, to be quick.
quick=(-DHEED_ATTENTION_ONLY=ON "-DHEED_DISABLED_TARGETS=HWY_SSSE3|HWY_SSE4|HWY_AVX2|HWY_AVX3|HWY_AVX3_DL")

configure() {  # configure <way> <folder> [cmake's arguments]
  "$cmake" -G Ninja -S "$source/subdirectory" -B "$work/$2" -DWAY="$1" -DHEED="$root" -DCMAKE_CXX_COMPILER="$cxx" \
    "${@:3}" >/dev/null
}

# check_flags <folder> <target>: how the project's own sources are compiled.
check_flags() {
  local command
  command=$(grep -h '"command"' "$work/$1/compile_commands.json" | grep "CMakeFiles/$2\.dir/")
  [[ $command == *"-O1 -D_GLIBCXX_ASSERTIONS"* ]] || fail "$1: the flags of the project are gone: $command"
  [[ $command =~ -std=(gnu|c)\+\+(23|2b) ]] || fail "$1: the project's C++ 23 is gone: $command"
  for leak in -I -Wpedantic -Wshadow -fvisibility -fPIC -falign-loops -fno-math-errno HWY_ -O2 -O3; do
    [[ $command != *"$leak"* ]] || fail "$1: heed's $leak came to $2: $command"
  done
}

rm -rf "$work" && mkdir -p "$work"
configure add_subdirectory in_subdirectory "${quick[@]}"
check_flags in_subdirectory consumer
! grep -q sentencepiece "$work/in_subdirectory/compile_commands.json" || fail "attention alone was configured with SentencePiece"
"$cmake" --build "$work/in_subdirectory" >/dev/null
check_program attention "$work/in_subdirectory/consumer" "$attention_needs"

# In the same folder: the objects are there, for the shared library as well.
configure FetchContent in_subdirectory "${quick[@]}" -DBUILD_SHARED_LIBS=ON
check_flags in_subdirectory consumer
"$cmake" --build "$work/in_subdirectory" >"$work/second"
! grep -q "heed_attention.dir" "$work/second" || fail "objects were compiled twice: $(<"$work/second")"
check_program attention "$work/in_subdirectory/consumer" "libheed_attention|$attention_needs"

# The whole library takes long to compile: how it would be is enough.
configure add_subdirectory in_subdirectory_whole
check_flags in_subdirectory_whole consumer
check_flags in_subdirectory_whole whole
"$cmake" --build "$work/in_subdirectory_whole" --target help >"$work/targets"
grep -q heed_heed_static "$work/targets" || fail "the whole library is no target of a project around it"
! grep -qE '^(heed_cli|transformer_test|fuzz_npy):' "$work/targets" || fail "tools or tests are built around heed"
