#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# installed.sh <cmake> <build directory> <compiler>: programs that use what install.sh has installed: with find_package
# and with pkg-config, shared and static. They print the right numbers, and load what they need and nothing else.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

find_package() {  # find_package <component> <program> <folder> [cmake's arguments]
  local component=$1 program=$2 folder=$work/$3
  shift 3
  "$cmake" -G Ninja -S "$source/find_package" -B "$folder" -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_CXX_COMPILER="$cxx" \
    -DCOMPONENT="$component" -DPROGRAM="$program" "$@" >/dev/null
  "$cmake" --build "$folder" >/dev/null
}

find_package attention attention attention_shared
check_program attention "$work/attention_shared/consumer" "libheed_attention|$attention_needs"
check_program attention "$work/attention_shared/consumer_static" "$attention_needs"
find_package attention attention attention_static -Dheed_USE_STATIC_LIBS=ON
check_program attention "$work/attention_static/consumer" "$attention_needs"
find_package heed whole whole_shared
check_program whole "$work/whole_shared/consumer" "libheed|libheed_attention|$whole_needs"
check_program whole "$work/whole_shared/consumer_static" "$whole_needs"
find_package heed whole whole_static -Dheed_USE_STATIC_LIBS=ON
check_program whole "$work/whole_static/consumer" "$whole_needs"

# pkg-config; for static libraries from a tree that has been moved, and has no others.
pkg_config() {  # pkg_config <package> <program> <prefix> <result> [--static]
  local pc libdir
  pc=$(dirname "$(find "$3" -name heed.pc)")
  libdir=$(PKG_CONFIG_PATH=$pc pkg-config --variable=libdir "$1")
  "$cxx" -std=c++20 "$source/$2.cc" -o "$work/$4" $(PKG_CONFIG_PATH=$pc pkg-config --cflags --libs "${@:5}" "$1") \
    -Wl,-rpath,"$libdir"
}
moved=$work/moved
rm -rf "$moved" && cp -a "$prefix" "$moved"
find "$moved" -name '*.so*' -delete
pkg_config heed-attention attention "$prefix" attention_pkg_config
check_program attention "$work/attention_pkg_config" "libheed_attention|$attention_needs"
pkg_config heed-attention attention "$moved" attention_pkg_config_static --static
check_program attention "$work/attention_pkg_config_static" "$attention_needs"
pkg_config heed whole "$prefix" whole_pkg_config
check_program whole "$work/whole_pkg_config" "libheed|libheed_attention|$whole_needs"
pkg_config heed whole "$moved" whole_pkg_config_static --static
check_program whole "$work/whole_pkg_config_static" "$whole_needs"

# What cannot be found is said.
fails_with() {  # fails_with <folder> <text of the project> <message>
  local message
  mkdir -p "$work/$1"
  printf 'cmake_minimum_required(VERSION 3.22)\nproject(fails LANGUAGES CXX)\n%s\n' "$2" >"$work/$1/CMakeLists.txt"
  if message=$("$cmake" -S "$work/$1" -B "$work/$1/build" -DCMAKE_PREFIX_PATH="$prefix" 2>&1); then
    fail "find_package succeeded where it should not: $2"
  fi
  [[ $(tr -s '\n ' ' ' <<<"$message") == *"$3"* ]] || fail "expected '$3' in: $message"
}
fails_with unknown 'find_package(heed REQUIRED COMPONENTS telepathy)' "heed has no component 'telepathy'"
fails_with without_sentencepiece \
  'set(HEED_LIBRARY_sentencepiece NOTFOUND CACHE FILEPATH "" FORCE)
set(CMAKE_FIND_LIBRARY_PREFIXES nowhere)
set(heed_USE_STATIC_LIBS ON)
find_package(heed REQUIRED COMPONENTS heed)' "needs what was not found: sentencepiece"
