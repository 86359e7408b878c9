#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# stream_test.sh <the program> <folder>: short lines come first, each with its number; what is wrong is said.
set -euo pipefail
got=$(printf 'one two three four\nsix two\nfour five six\n' | "$1" "$2" 2 | sed -E 's/ \(-?[0-9.]+\) ([0-9]+-[0-9]+ ?)+$//')
expected=$'1: two six\n2: six five four\n0: four three two one'
[[ $got == "$expected" ]] || { echo "it printed: $got" && exit 1; }
if said=$(printf 'one\n' | "$1" /nowhere 1 2>&1); then echo "a missing folder was opened" && exit 1; fi
[[ $said == "model folder '/nowhere' is not there"* ]] || { echo "it said: $said" && exit 1; }
