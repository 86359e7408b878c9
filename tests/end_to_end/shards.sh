#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A corpus in shards: the merged output is that of the command without --shard, bit for bit, for every command, any number
# of shards, and whatever is killed when. shards.sh <the heed binary> [kills, by default 6]
root=$(realpath "$(dirname "${BASH_SOURCE[0]}")/../..")
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
kills=${2:-6}

quick=(--threads 1 --batch-tokens 512 --warmup 10 --rate 0.003 --tokenizer words)
"$heed" corpus --pairs 1000 --seed 1 --split pairs
says 'all steps done' "$heed" train --data pairs/train.tsv --dev pairs/dev.tsv "${quick[@]}" --steps 30 --preset transformer-tiny --out model
"$heed" corpus --pairs 400 --seed 1 --task tag --split tags
says 'all steps done' "$heed" train --data tags/train.tsv --dev tags/dev.tsv "${quick[@]}" --steps 5 --preset tagger --out tagger

# Three files: packed, of Windows, and without an end; lines that are empty, and two that are bad.
head -150 pairs/train.tsv | cut -f1 | gzip >one.gz
{ printf '\xef\xbb\xbf' && head -30 pairs/dev.tsv | cut -f1 | sed 's/$/\r/'; } >two.txt
{ head -20 pairs/test.tsv | cut -f1 && printf '\n\nno \xff UTF-8\nThe cat sleeps .\nno \xff again\nThe end .'; } >three.txt
files=(one.gz two.txt three.txt)
paste <(cut -f1 pairs/test.tsv) <(cut -f2 pairs/test.tsv) >pairs.tsv

# sharded <shards> <part-lines> <file to compare with> <command...>: each shard by a process of its own, the last one first.
sharded() {
  local shards=$1 part_lines=$2 expected=$3 i
  shift 3
  rm -rf work
  for ((i = shards; i >= 1; i--)); do
    says "^shard $i/$shards done: " "$@" --shard $i/$shards --part-lines "$part_lines" --out work --threads 1
  done
  "$heed" merge work --out - 2>merge.err | cmp - "$expected" || fail "$*: $shards shards gave another output than none"
  [[ $(find work | wc -l) == $((2 * shards + 2)) ]] || fail "files were left: $(find work)"
}
# same <command...>: whatever the number of shards.
same() {
  "$@" "${inputs[@]}" --threads 1 >expected 2>/dev/null
  has_words expected
  for cut in '1 1000' '2 7' '5 20' '40 1000'; do sharded ${cut% *} ${cut#* } expected "$@" --in "${inputs[@]}"; done
}
inputs=("${files[@]}")
same "$heed" translate --model model --skip-bad --beam 2
grep -qP '^heed: skipped 2 of 206 lines, the first: three.txt:23: byte 4 is 0xff, which is no UTF-8$' merge.err || fail "$(cat merge.err)"
inputs=("${files[@]}")
same "$heed" translate --model model --skip-bad --sample --nbest 2 --json
same "$heed" tag --model tagger --skip-bad
inputs=(two.txt one.gz)
"$heed" embed --model model "${inputs[@]}" --threads 1 >expected
sharded 3 50 expected "$heed" embed --model model --in "${inputs[@]}"
inputs=(pairs.tsv)
"$heed" score --model model "${inputs[@]}" --threads 1 --tokens >expected
sharded 3 50 expected "$heed" score --model model --tokens --in "${inputs[@]}"

# Done once, and said so; a sum is what sha256sum says; one process for several shards.
again=("$heed" score --model model --tokens --in pairs.tsv --part-lines 50 --out work)
says '^shard 2/3 was done before: [\d,]+ lines$' "${again[@]}" --shard 2/3 --threads 2 --batch 3
grep -q "\"sha256\":\"$(sha256sum <work/shard-00002-of-00003.out | cut -d' ' -f1)\"" work/shard-00002-of-00003.json || fail "another sum than sha256sum's"
says '^out.txt: [\d,]+ lines of 3 shards$' "$heed" merge work --out out.txt
cmp out.txt expected || fail "a merged file is another than was merged to standard output"
rm -r work
printf '3\n1\n' | says '^shard 3/3 done.*\n?' "${again[@]}" --shard -/3
refuses 1 "^heed: folder 'work': 1 of 3 shards is not done, expected all: 2$" "$heed" merge work --out none.txt
[[ ! -e none.txt ]] || fail "a merge that failed has written a file"
says '^shard 2/3 done' "${again[@]}" --shard any/3
"$heed" merge work --out - | cmp - expected || fail "shards that were given out one by one gave another output"

# Broken bytes: the merge names the shard, and working on it again makes it whole.
printf '?' | dd of=work/shard-00001-of-00003.out bs=1 seek=9 conv=notrunc status=none
refuses 1 '^heed: work/shard-00001-of-00003.out: is not what was written, expected .*: work on shard 1 again$' "$heed" merge work --out -
[[ ! -s out ]] || fail "a broken shard was merged to standard output"
says '^shard 1/3 done' "${again[@]}" --shard 1/3
"$heed" merge work --out - | cmp - expected || fail "a shard that was made again is another one"

# Kills at any moment, four workers, of which one dies again and again.
for ((n = 0; n < 2 * kills; n++)); do head -400 pairs/train.tsv | cut -f1; done >corpus.txt
translate=("$heed" translate --model model --beam 4 --threads 1)
"${translate[@]}" corpus.txt >expected
rm -r work
shards=("${translate[@]}" --in corpus.txt --part-lines 20 --out work --shard)
running=()
for worker in 0 1 2 3; do
  "${shards[@]}" any/8 >said.$worker 2>&1 &
  running[worker]=$!
done
for ((n = 1; n <= kills; n++)); do
  sleep 0.$((RANDOM % 3))$((RANDOM % 10))
  worker=$((RANDOM % 4))
  kill -9 "${running[worker]}" 2>/dev/null || true
  wait "${running[worker]}" 2>/dev/null || true
  "${shards[@]}" any/8 >>said.$worker 2>&1 &
  running[worker]=$!
done
for worker in 0 1 2 3; do wait "${running[worker]}" || fail "a worker failed: $(cat said.$worker)"; done
"$heed" merge work --out merged.txt >/dev/null
cmp merged.txt expected || fail "$kills kills changed the output"
[[ -z $(find work -name '*.tmp.*' -o -name '*.parts') ]] || fail "kills left files: $(find work)"
echo "$kills kills, $(grep -ho '[0-9]* finished parts\? found' said.* | awk '{n += $1} END {print n + 0}') finished parts taken over"

# A shard has one worker.
rm -r work
"${shards[@]}" 1/1 >/dev/null 2>&1 &
run=$!
for ((i = 0; i < 100; i++)); do
  [[ -s work/shard-00001-of-00001.lock ]] && break
  sleep 0.05
done
says "^shard 1/1 busy: in use by process $run on " "${shards[@]}" -/1 <<<1
refuses 1 "^heed: shard 1 of folder 'work' is in use by process $run on \S+, since .*: expected one that nobody else works on$" "${shards[@]}" 1/1
kill -9 $run
wait $run 2>/dev/null || true

# The script for Slurm, as its tasks run it.
"$heed" translate --model model --beam 4 "${files[@]:1:1}" >expected
for i in 1 2 3; do
  says "^shard $i/3 done" env PATH="$(dirname "$heed"):$PATH" SHARDS=3 SLURM_ARRAY_TASK_ID=$i "$root/examples/distributed/slurm.sh" model two.txt slurm
done
"$heed" merge slurm --out - | cmp - expected || fail "the tasks of slurm.sh gave another output"

# What a user does wrong.
begun="^heed: folder 'work' was begun"
refuses 1 "$begun with 1 shard, now it is 2: expected the same, or another folder$" "${shards[@]}" 1/2
refuses 1 "$begun with --beam 4, now it is 2:" "$heed" translate --model model --beam 2 --in corpus.txt --part-lines 20 --out work --shard 1/1
refuses 1 "$begun without --json, now it is with --json:" "${shards[@]}" 1/1 --json
refuses 1 "$begun with parts of 20 lines, now it is 30:" "${translate[@]}" --in corpus.txt --part-lines 30 --out work --shard 1/1
refuses 1 "$begun over 'corpus.txt' of [\d,]+ bytes, now 'two.txt' has [\d,]+:" "${translate[@]}" --in two.txt --part-lines 20 --out work --shard 1/1
cp -r model other
printf ' ' >>other/config.json
refuses 1 "$begun with the model [0-9a-f]{12}, now it is [0-9a-f]{12}:" "$heed" translate --model other --beam 4 --in corpus.txt --part-lines 20 --out work --shard 1/1
sed -i '1s/./?/' corpus.txt
refuses 1 "^heed: lines 1 to $((800 * kills)) of the text are not what they were when it was cut" "${shards[@]}" 1/1
refuses 1 '^heed: three.txt:23: byte 4 is 0xff' "${translate[@]}" --in three.txt --out bad --shard 1/1
refuses 1 '^heed: standard input cannot be cut into shards' "${translate[@]}" --in - --out bad --shard 1/1
refuses 1 '^heed: nowhere: cannot open' "${translate[@]}" --in nowhere --out bad2 --shard 1/1
refuses 1 "^heed: standard input: 'x' is no shard, expected 1 to 2$" "${translate[@]}" --in two.txt --out bad3 --shard -/2 <<<x
for shard in 0/2 3/2 1 1/ /2 1/0 1/2x 1/100001; do
  refuses 2 "^heed: --shard is '$shard', expected I/N" "${translate[@]}" --in two.txt --out bad --shard $shard
done
refuses 2 '^heed: --in came without --shard, expected both' "${translate[@]}" --in two.txt
refuses 2 '^heed: --out came without --shard, expected both' "${translate[@]}" --out bad
refuses 2 '^heed: --shard came without --out' "${translate[@]}" --in two.txt --shard 1/2
refuses 2 '^heed: --shard came without --in' "${translate[@]}" --out bad --shard 1/2
refuses 2 '^heed: --trace and --shard came, expected one of them' "$heed" tag --model tagger --trace t.json --in two.txt --out bad --shard 1/2
refuses 2 '^heed: --out is missing' "$heed" merge work
refuses 1 "^heed: folder 'pairs' has no manifest.json" "$heed" merge pairs --out -
echo 'shards were made, killed, merged and compared'
