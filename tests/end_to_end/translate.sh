#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# From nothing to a translation, through the binary, as a user would: corpus, train, resume, translate, evaluate, info,
# generate; and what a user does wrong. translate.sh <the heed binary>
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

# The way that works.
"$heed" corpus --pairs 1500 --seed 1 --split corpus
quick=(--threads 1 --batch-tokens 512 --warmup 10 --rate 0.003 --tokenizer words)
train=(train --data corpus/train.tsv --dev corpus/dev.tsv "${quick[@]}")
says 'all steps done after 40 steps.*dev loss' "$heed" "${train[@]}" --preset transformer-tiny --out model --steps 40 --evaluate-every 20 --average 2
for file in config.json model.safetensors tokenizer train.json checkpoint.safetensors log.jsonl curve.html README.md; do
  [[ -s model/$file ]] || fail "model/$file is missing"
done
says 'all steps done after 42 steps' "$heed" train --resume model --steps 42 --threads 1
says '"step":10,"loss"' cat model/log.jsonl

cut -f1 corpus/test.tsv >source.txt
"$heed" translate --model model --threads 1 source.txt >greedy.txt
[[ $(wc -l <greedy.txt) == $(wc -l <source.txt) ]] || fail "translate gave another number of lines"
has_words source.txt && has_words greedy.txt
printf 'The cat sleeps.\n\nThe dog sleeps.' | "$heed" translate --model model --threads 1 >three.txt
[[ $(wc -l <three.txt) == 3 && -z $(sed -n 2p three.txt) ]] || fail "an empty line did not stay empty: $(cat three.txt)"
says '^-\d+\.\d+\t.*\t(\d+-\d+ ?)+$' "$heed" translate --model model --threads 1 --beam 3 --scores --align source.txt
[[ $("$heed" translate --model model --threads 1 --beam 3 --nbest 3 source.txt | wc -l) == $((3 * $(wc -l <source.txt))) ]] ||
  fail "--nbest 3 did not give three lines for one"
says '"bleu": [\d.e+-]+,' "$heed" evaluate --model model --data corpus/test.tsv --json --threads 1
says '^6-10 +\d+ ' "$heed" evaluate --model model --data corpus/test.tsv --by-length --threads 1
says 'pronouns whose gender shows' "$heed" evaluate --model model --data corpus/test.tsv --pronouns --threads 1
says 'all +75' "$heed" evaluate --model model --data corpus/test.tsv --gate decoder.1.cross.0=0 --threads 1
"$heed" translate --model model --threads 1 --batch 3 source.txt | diff - greedy.txt || fail "batches of 3 gave other translations"
cat source.txt | "$heed" translate --model model --threads 2 | diff - greedy.txt || fail "a pipe gave other translations"
says '^-\d+\.\d+\t\d+\t\d+\.\d+$' "$heed" score --model model --threads 1 corpus/test.tsv
says '^-\d+\.\d+\t\d+\t\d+\.\d+\t(-\d+\.\d+ ?)+$' "$heed" score --model model --threads 1 --tokens corpus/test.tsv
[[ $("$heed" embed --model model --threads 1 source.txt | awk '{print NF}' | sort -u) == 128 ]] || fail "embed did not give 128 numbers a line"
[[ $("$heed" score --model model --threads 1 corpus/test.tsv | wc -l) == $(wc -l <source.txt) ]] || fail "score gave another number of lines"

# A line that has come is answered before the next one comes.
coproc slow { "$heed" translate --model model --threads 1; }
for n in 1 2; do
  sed -n ${n}p source.txt >&"${slow[1]}"
  read -r -t 20 -u "${slow[0]}" answer || fail "line $n was not answered before the end of input"
  [[ $answer == "$(sed -n ${n}p greedy.txt)" ]] || fail "line $n was answered by '$answer'"
done
eval "exec ${slow[1]}>&-"
wait "$slow_PID"

# Good lines before a bad one are written.
(head -3 source.txt && printf 'b\xffd\n' && head -1 source.txt) >mixed.txt
"$heed" translate --model model --threads 1 mixed.txt >some.txt 2>err && fail "bytes that are no UTF-8 were translated"
diff <(head -3 greedy.txt) some.txt || fail "good lines before a bad one are lost"
says '^heed: mixed.txt:4: .*UTF-8' cat err
(printf '\xef\xbb\xbf' && cat source.txt) | "$heed" translate --model model --threads 1 | diff - greedy.txt || fail "a byte order mark changed a translation"

# A folder without tokenizers still says what it holds.
cp -r model ids && rm ids/tokenizer
says 'the model works over token ids' "$heed" info ids
refuses 1 '^heed: ids: has no tokenizer' "$heed" translate --model ids source.txt

says 'steps +42' "$heed" info model
says '"parameters"' "$heed" info model --json

cut -f1 corpus/train.tsv >english.txt
cut -f1 corpus/dev.tsv >english_dev.txt
says 'all steps done' "$heed" train --preset lm-small --data english.txt --dev english_dev.txt --out lm --steps 3 "${quick[@]}"
says '^The cat ' "$heed" generate --model lm --prompt "The cat" --sample --top-k 20 --max-length 5 --seed 4 --threads 1
says '^all +75 .* - ' "$heed" evaluate --model lm --data english_dev.txt --threads 1

says 'looks at' "$heed" explain --model model --threads 1 "The cat sleeps."
says "'it' looks at \(encoder.1.self.2\)" "$heed" explain --model model --threads 1 --word it --head encoder.1.self.2 "The boy bought the apple and ate it."

# What a user does wrong.
refuses 1 "the word is 'dog', expected a word of the sentence" "$heed" explain --model model --word dog "The cat sleeps."
refuses 1 "--head is 'encoder.9.self.0', expected encoder.0.self.0 to encoder.1.self.3" "$heed" explain --model model --word cat --head encoder.9.self.0 "The cat sleeps."
refuses 1 'lm: is a language model, expected a model that translates; see heed generate' "$heed" translate --model lm source.txt
refuses 1 'model: is a model that translates, expected a tagger; see heed translate' "$heed" tag --model model
refuses 1 '^heed: nowhere.tsv: cannot open: No such file' "$heed" train --data nowhere.tsv --dev corpus/dev.tsv --out a
printf 'one\ttwo\nthree\n' >bad.tsv
refuses 1 '^heed: bad.tsv:2: has 1 column between tabs, expected at least 2' "$heed" train --data bad.tsv --dev bad.tsv --out a
printf 'one\ttwo\nthr\xff\tfour\n' >bytes.tsv
refuses 1 '^heed: bytes.tsv:2: .*UTF-8' "$heed" train --data bytes.tsv --dev bytes.tsv --out a
[[ ! -e a ]] || fail "a run that could not begin left a folder"
refuses 1 "did you mean 'transformer-tiny'" "$heed" "${train[@]}" --preset transformer-tiyn --out a
refuses 1 "^heed: cannot make folder 'bad.tsv'" "$heed" "${train[@]}" --out bad.tsv
refuses 1 'holds a run already' "$heed" "${train[@]}" --out model
refuses 1 '^heed: train: batch_tokens is 64, expected 512, as the run began with' "$heed" train --resume model --batch-tokens 64
refuses 1 'holds no checkpoint' "$heed" train --resume corpus
refuses 2 '^heed: --steps is .-3., expected an integer >= 0' "$heed" "${train[@]}" --out a --steps=-3
refuses 2 "unknown flag '--steosp', did you mean '--steps'" "$heed" "${train[@]}" --out a --steosp 3
refuses 2 "unknown command 'trian', did you mean 'train'" "$heed" trian
refuses 1 "model folder 'nowhere' is not there" "$heed" translate --model nowhere
refuses 1 'is a language model' "$heed" translate --model lm source.txt
refuses 1 '^heed: missing.txt: cannot open: No such file' "$heed" translate --model model missing.txt
refuses 1 '^heed: The cat sleeps.: cannot open: .*; text itself comes from standard input$' "$heed" translate --model model "The cat sleeps."
refuses 1 '^heed: bytes.tsv:2: .*UTF-8' "$heed" translate --model model --threads 1 bytes.tsv
refuses 1 'there is no layer .encoder.9.self., expected one of: encoder.0.self' \
  "$heed" evaluate --model model --data corpus/test.tsv --gate encoder.9.self.0=0 --threads 1
refuses 1 'english.referents: cannot open' bash -c "cp corpus/test.tsv english.tsv; cp corpus/test.align english.align
  '$heed' evaluate --model model --data english.tsv --pronouns --threads 1"
cp -r model broken
head -c 300 model/tokenizer >broken/tokenizer
refuses 1 '^heed: broken/tokenizer:\d+: the file ends here' "$heed" translate --model broken source.txt
cp model/tokenizer broken/tokenizer
head -c 1000 model/model.safetensors >broken/model.safetensors
refuses 1 '^heed: broken/model.safetensors: ' "$heed" translate --model broken source.txt
cp lm/tokenizer broken/tokenizer
cp model/model.safetensors broken/
refuses 1 '^heed: broken: the tokenizer has \d+ tokens, expected \d+ as the model has' "$heed" info broken
refuses 1 '^heed: standard output: cannot write' bash -c "'$heed' translate --model model --threads 1 source.txt >/dev/full"

# A disk that is full: the message names the file, and the last good checkpoint can be gone on from.
mkdir disk
if mount -t tmpfs -o size=48m tmpfs disk 2>/dev/null; then
  mounted=$folder/disk
  cp -r model disk/model
  head -c 100m /dev/zero >disk/filler 2>/dev/null || true
  refuses 1 '^heed: disk/model/.*: cannot .*: No space left on device' bash -c "'$heed' train --resume disk/model --steps 60 --threads 1 2>&1 >/dev/null | tail -n 1 >&2; exit \${PIPESTATUS[0]}"
  rm disk/filler
  says 'all steps done after 43 steps' "$heed" train --resume disk/model --steps 43 --threads 1
else
  echo "NOT TESTED: a full disk, which needs the right to mount a tmpfs" >&2
fi
echo "from corpus to translation: all as expected"
