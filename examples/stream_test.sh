#!/usr/bin/env bash
# stream_test.sh <the program> <folder>: short lines come first, each with its number; what is wrong is said.
set -euo pipefail
got=$(printf 'one two three\nsix\nfour five\n' | "$1" "$2" 2 | sed -E 's/\(-?[0-9.]+\)/(score)/')
expected=$'1: six (score) 0-0\n2: five four (score) 0-1 1-0\n0: three two one (score) 0-2 1-1 2-0'
[[ $got == "$expected" ]] || { echo "it printed: $got" && exit 1; }
if said=$(printf 'one\n' | "$1" /nowhere 1 2>&1); then echo "a missing folder was opened" && exit 1; fi
[[ $said == "model folder '/nowhere' is not there"* ]] || { echo "it said: $said" && exit 1; }
