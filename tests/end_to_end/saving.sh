#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Nothing that was saved is lost: kills while a run saves, two runs into one folder, a disk that is full.
# saving.sh <the heed binary> [kills, by default 10]
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
kills=${2:-10}

"$heed" corpus --pairs 400 --seed 1 --split corpus
head -1 corpus/test.tsv | cut -f1 >source.txt
train=(train --data corpus/train.tsv --dev corpus/dev.tsv --threads 1 --batch-tokens 512 --tokenizer words)
saves=(--steps 1000000 --evaluate-every 1 --average 2)
one_step=(--minutes 0.00001)
step_of() { # the step of a folder's checkpoint
  head -c 2000 "$1/checkpoint.safetensors" | grep -aoP '"step":"\K\d+'
}
opens() {
  "$heed" translate --model "$1" --threads 1 source.txt >/dev/null || fail "$1 does not open after $2"
  [[ -z $(find "$1" -name '*.tmp.*') ]] || [[ $2 == kill* || $2 == *writing ]] || fail "$2 left unfinished files in $1"
}

# Kills at any moment of a run that saves all the time: the folder opens, and the run goes on.
says 'out of time after 1 steps?' "$heed" "${train[@]}" "${saves[@]}" "${one_step[@]}" --out model
last=$(step_of model)
in_saves=0
for ((n = 1; n <= kills; n++)); do
  "$heed" train --resume model --minutes 60 --threads 1 2>/dev/null &
  run=$!
  for ((i = 0; i < 600; i++)); do # from its first save on
    [[ $(step_of model) -gt $last ]] && break
    sleep 0.05
  done
  sleep 0.$((RANDOM % 10))$((RANDOM % 10))
  kill -9 $run
  wait $run 2>/dev/null && fail "run $n ended by itself"
  in_saves=$((in_saves + $(find model -name '*.tmp.*' | wc -l)))
  opens model "kill $n"
  now=$(step_of model)
  [[ $now -gt $last ]] || fail "kill $n: step $now came after step $last"
  says 'out of time after' "$heed" train --resume model "${one_step[@]}" --threads 1
  last=$(step_of model)
  [[ $last -gt $now ]] || fail "kill $n: the run did not go on"
  opens model resume
done
echo "$kills kills, $in_saves of them while a file was written; step $last"

# Two runs into one folder: the second is told who is there, and the first goes on.
"$heed" train --resume model --minutes 60 --threads 1 2>/dev/null &
run=$!
for ((i = 0; i < 100; i++)); do
  [[ -s model/train.lock ]] && break
  sleep 0.1
done
refuses 1 "^heed: folder 'model' is in use by process $run on \S+, since \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC" "$heed" train --resume model --steps 2000000 --threads 1
refuses 1 "^heed: folder 'model' is in use by process $run " "$heed" "${train[@]}" --out model
opens model "two runs, one of them writing"
kill -9 $run
wait $run 2>/dev/null || true
says 'out of time after' "$heed" train --resume model "${one_step[@]}" --threads 1
[[ ! -e model/train.lock ]] || fail "the lock of a run that is over is still there"

# Two that begin at once: one has the folder.
for ((n = 1; n <= 3; n++)); do
  "$heed" "${train[@]}" --seed 1 --steps 3 --out both$n 2>err1 &
  first=$!
  "$heed" "${train[@]}" --seed 2 --steps 3 --out both$n 2>err2 &
  second=$!
  code1=0 code2=0
  wait $first || code1=$?
  wait $second || code2=$?
  [[ $((code1 + code2)) == 1 ]] || fail "two runs into one folder gave $code1 and $code2: $(cat err1 err2)"
  tail -qn 1 err1 err2 | grep -qP "^heed: folder 'both$n' (is in use by process|holds a run already)" || fail "$(cat err1 err2)"
  seed=$((code1 == 0 ? 1 : 2))
  grep -q "\"seed\": $seed" both$n/train.json || fail "the folder is of the run that was refused"
  opens both$n "two runs at once"
done

# A disk that is full, with room for none, some or most of what is to be saved: the folder stays as it was.
"$heed" translate --model both1 --threads 1 source.txt >expected
has_words expected
if mkdir disk && mount -t tmpfs -o size=64m tmpfs disk 2>/dev/null; then
  mounted=$folder/disk
  cp -r both1 disk/model
  for room in 0 4 200 1000 3000 6000; do
    head -c 100m /dev/zero >disk/filler 2>/dev/null || true
    truncate -s -${room}K disk/filler
    "$heed" train --resume disk/model --steps 9 --threads 1 2>err >/dev/null && fail "a full disk ($room KB) was not noticed"
    tail -n 1 err | grep -qP '^heed: disk/model/.*: cannot .*: No space left on device$' || fail "$(cat err)"
    opens disk/model "a full disk ($room KB)"
    "$heed" translate --model disk/model --threads 1 source.txt | cmp -s - expected || fail "another model after a full disk ($room KB)"
    rm disk/filler
  done
  says 'all steps done after 9 steps' "$heed" train --resume disk/model --steps 9 --threads 1
else
  echo "NOT TESTED: a full disk, which needs the right to mount a tmpfs" >&2
fi
# The same by a limit of the size of files: the model fits, the checkpoint does not.
cp -r both1 limited
limit=$(($(stat -c %s both1/checkpoint.safetensors) / 2048))
(
  trap '' XFSZ
  ulimit -f $limit
  "$heed" train --resume limited --steps 9 --threads 1 2>err >/dev/null
) && fail "a file that may not be so large was written"
tail -n 1 err | grep -qP '^heed: limited/checkpoint.safetensors: cannot write: File too large$' || fail "$(cat err)"
opens limited "a limit of file sizes"
says 'all steps done after 9 steps' "$heed" train --resume limited --steps 9 --threads 1
echo "nothing is lost"
