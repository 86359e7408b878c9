#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Folders and files that somebody broke, or made to do harm, through the binary: each is answered at once, in one line.
# hostile.sh <the heed binary>
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

"$heed" corpus --pairs 600 --seed 1 --split corpus
quick=(--threads 1 --batch-tokens 512 --warmup 10 --rate 0.003 --tokenizer words)
"$heed" train --data corpus/train.tsv --dev corpus/dev.tsv "${quick[@]}" --out model --steps 2 2>/dev/null
head -1 corpus/test.tsv | cut -f1 >source.txt
# refused <regex>: the broken folder is, within seconds and in 2 GB, touched or not.
refused() {
  refuses 1 "$1" timeout 20 bash -c "ulimit -v 2000000; exec '$heed' translate --model broken --threads 1 source.txt"
}
# with <key> <value>: a copy of the model whose config.json has another value.
with() {
  rm -rf broken && cp -r model broken
  grep -q "\"$1\": " broken/config.json || fail "config.json has no $1"
  sed -i "s/\"$1\": [^,]*/\"$1\": $2/" broken/config.json
}

# Sizes in config.json are not believed.
with decoder_layers 4611686018427387904
refused '^heed: broken/config.json: transformer.decoder_layers is 4611686018427387904, expected an integer in \[0, 1000\]$'
with decoder_layers 1000
refused "^heed: broken/model.safetensors: has no tensor for \d+ parameters that broken/config.json asks for \('decoder\.\d+\."
with inner 2000000
for begin in "--resume broken --steps 3" "--init broken --data corpus/train.tsv --dev corpus/dev.tsv --out bad"; do
  # shellcheck disable=SC2086
  refuses 1 "^heed: broken/model.safetensors: tensor 'encoder.0.feed_forward.first.weight' is F32 \[\d+, \d+\], expected \[2000000, \d+\]" \
    timeout 20 bash -c "ulimit -v 2000000; exec '$heed' train $begin --threads 1"
done
refused "^heed: broken/model.safetensors: tensor 'encoder.0.feed_forward.first.weight' is F32 \[\d+, \d+\], expected \[2000000, \d+\] by broken/config.json$"
with vocabulary 1000000000
refused "^heed: broken/model.safetensors: tensor 'embedding.weight' is F32 \[\d+, \d+\], expected \[1000000000, \d+\] by"
with max_length 1000000000000
refused 'transformer.max_length is 1000000000000, expected an integer in'
with max_length 10000000
"$heed" translate --model broken --threads 1 source.txt >/dev/null || fail "a model for long texts was not opened"

# Weights that are no numbers: 0xffffffff is a NaN.
rm -rf broken && cp -r model broken
header=$(od -An -tu8 -N8 model/model.safetensors)
size=$(stat -c %s model/model.safetensors)
head -c $((header + 8)) model/model.safetensors >broken/model.safetensors
head -c $((size - header - 8)) /dev/zero | tr '\0' '\377' >>broken/model.safetensors
refused "^heed: broken/model.safetensors: tensor '\S+' holds -?nan at \[.*\], expected finite numbers$"

# Files that are none.
for file in config.json model.safetensors tokenizer train.json; do
  rm -rf broken && cp -r model broken && rm broken/$file && mkfifo broken/$file
  refuses 1 "^heed: broken/$file: is a pipe, expected a regular file$" timeout 20 "$heed" evaluate --model broken --data corpus/test.tsv --threads 1
done

# A pipe that nobody writes to is waited for, until the run is told to end.
mkfifo pipe
for signal in TERM INT; do
  env --default-signal=INT "$heed" train --data pipe --dev corpus/dev.tsv "${quick[@]}" --out waiting 2>/dev/null &
  waiting=$!
  sleep 0.7
  kill -0 $waiting || fail "a pipe without a writer was not waited for"
  kill -$signal $waiting
  for ((i = 0; i < 100; i++)); do
    kill -0 $waiting 2>/dev/null || break
    sleep 0.1
  done
  kill -9 $waiting 2>/dev/null && fail "a run that waits for a pipe ignored SIG$signal"
  wait $waiting && fail "a run that was told to end by SIG$signal says that all is well"
done

# Alignments that are not of this corpus.
evaluate=("$heed" evaluate --model model --data corpus/test.tsv --threads 1 --alignments gold)
says '^all +30 ' "$heed" evaluate --model model --data corpus/test.tsv --threads 1 --alignments corpus/test.align
cat corpus/test.align corpus/test.align >gold
refuses 1 '^heed: gold: has 60 lines, expected 30 as the corpus has$' "${evaluate[@]}"
head -20 corpus/test.align >gold
refuses 1 '^heed: gold: has 20 lines, expected one for line 21 of the corpus$' "${evaluate[@]}"
sed '3s/$/ 99-0/' corpus/test.align >gold
refuses 1 '^heed: gold:3: a link goes to word 99 of the source, expected one below \d+: it has \d+ words' "${evaluate[@]}"

# Less memory than is needed.
refuses 1 '^heed train: out of memory$' bash -c "ulimit -v 900000; exec '$heed' train --json --data corpus/train.tsv --dev corpus/dev.tsv --preset transformer-base --threads 1 --out large"
echo "what is broken is refused in one line"
