#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Experiments, run quickly through the binary: each gives a verdict, a result and a page. Two of them, or with
# HEED_LAB_ALL all. lab.sh <the heed binary>
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

# checked NAME FOLDER: what was said is in said.txt.
checked() {
  grep -qP "^$1: the claim (held|did not hold), \d of \d tests \(a quick run: small, one seed\)$" said.txt ||
    fail "$1 gave no verdict"
  grep -q '"format": "heed-lab"' "$2/result.json" || fail "$1 has no result"
  grep -q "heed lab $1 --quick --seed 3" "$2/index.html" || fail "$1 has no page, or one that does not say what made it"
}

mapfile -t names < <("$heed" lab | cut -d' ' -f1)
((${#names[@]} >= 7)) || fail "heed lab lists ${#names[@]} experiments, expected 7 or more"
if [[ ${HEED_LAB_ALL:-} ]]; then
  "$heed" lab all --quick --seed 3 --threads 2 --out site >said.txt
  for name in "${names[@]}"; do
    checked "$name" "site/$name"
    grep -q "href=\"$name/index.html\"" site/index.html || fail "the index does not lead to $name"
  done
  echo "${#names[@]} experiments were run quickly"
  exit
fi
for name in scale cache; do
  "$heed" lab $name --quick --seed 3 --threads 2 --out $name >said.txt
  checked $name $name
done
# But for times, a seed gives the same figures, with any number of threads.
"$heed" lab scale --quick --seed 3 --threads 1 --out again >said.txt
diff <(grep -v '"seconds"\|"threads"' scale/result.json) <(grep -v '"seconds"\|"threads"' again/result.json) ||
  fail "scale gave other figures with one thread"
refuses 1 "^heed: experiment 'scael' is not there, did you mean 'scale'\?" "$heed" lab scael
refuses 1 '^heed: /dev/null/lab: cannot create the folder' "$heed" lab cache --quick --out /dev/null/lab
echo 'experiments were run quickly'
