#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Data, tokenizers and models of one's own, through the binary: files of any form, widths as flags, a config file, going
# on from another model. own_data.sh <the heed binary>
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

"$heed" corpus --pairs 800 --seed 1 --split pairs
quick=(--threads 1 --batch-tokens 512 --warmup 10 --rate 0.003 --steps 12)
same() { cmp "$1/model.safetensors" "$2/model.safetensors" || fail "$1 and $2 are not the same model"; }

# Without a word about tokenizers, words that were never seen are spelt, and nothing is <unk>.
says 'all steps done after 12 steps' "$heed" train --data pairs/train.tsv --dev pairs/dev.tsv --out model "${quick[@]}"
says 'unigram' "$heed" info model
cut -f1 pairs/test.tsv >source.txt
"$heed" translate --model model --threads 1 source.txt >greedy.txt
has_words source.txt && has_words greedy.txt
! grep -q '<unk>' greedy.txt || fail "the usual tokenizer gave <unk>"

# Two files, packed or not, and standard input, give what the TSV file gives.
for part in train dev; do cut -f1 pairs/$part.tsv >$part.en && cut -f2 pairs/$part.tsv >$part.es; done
gzip -k train.en train.es pairs/train.tsv source.txt
"$heed" train --source train.en.gz --target train.es --dev-source dev.en --dev-target dev.es --out two "${quick[@]}" 2>log
says '^train.en.gz and train.es: 800 lines, 800 kept' cat log
same two model
"$heed" train --data - --dev pairs/dev.tsv --out piped "${quick[@]}" <pairs/train.tsv.gz 2>log
says '^standard input: 800 lines' cat log
same piped model
says 'all steps done after 13 steps' "$heed" train --resume two --steps 13 --threads 1
"$heed" translate --model model --threads 1 source.txt.gz | diff - greedy.txt || fail "a packed file gave other translations"
"$heed" translate --model model --threads 1 - <source.txt.gz | diff - greedy.txt || fail "- gave other translations"
refuses 1 '^heed: dev.es: has \d+ lines, expected 800 as train.en has' \
  "$heed" train --source train.en --target dev.es --dev pairs/dev.tsv --out bad
refuses 1 '^heed: train: source came alone, expected source and target' \
  "$heed" train --source train.en --dev pairs/dev.tsv --out bad
head -c 2000 pairs/train.tsv.gz >short.gz
refuses 1 '^heed: short.gz: the gzip data is cut short' "$heed" train --data short.gz --dev pairs/dev.tsv --out bad
head -c 200 source.txt.gz >short.gz
refuses 1 '^heed: short.gz: the gzip data is cut short' "$heed" translate --model model --threads 1 short.gz

# Tokenizers that are there already: those of a model folder here; text_test has SentencePiece's own.
says 'all steps done' "$heed" train --data pairs/train.tsv --dev pairs/dev.tsv --out taken --tokenizer-model model/tokenizer "${quick[@]}"
same taken model
cmp taken/tokenizer model/tokenizer || fail "the tokenizer was not taken"
says 'all steps done' "$heed" train --data pairs/train.tsv --dev pairs/dev.tsv --out apart --tokenizer-model model/tokenizer --target-tokenizer-model model/tokenizer "${quick[@]}"
says 'target.tokens' "$heed" info apart
refuses 2 '^heed: --vocabulary came with --tokenizer-model, expected none: it is that of model/tokenizer' \
  "$heed" train --data pairs/train.tsv --dev pairs/dev.tsv --out bad --tokenizer-model model/tokenizer --vocabulary 90
refuses 1 "^heed: train.en: is no tokenizer, expected one of heed's or a unigram or BPE model of SentencePiece" \
  "$heed" train --data pairs/train.tsv --dev pairs/dev.tsv --out bad --tokenizer-model train.en

# Sizes as flags, and a file of options.
own=(train --data pairs/train.tsv --dev pairs/dev.tsv "${quick[@]}")
says 'all steps done' "$heed" "${own[@]}" --width 24 --heads 3 --inner 40 --encoder-layers 1 --positions rotary --out small
says 'width +24' "$heed" info small
says 'positions +rotary' "$heed" info small
says 'all steps done' "$heed" "${own[@]}" --config small/config.json --decoder-layers 1 --out smaller
says 'width +24' "$heed" info smaller
says 'decoder_layers +1' "$heed" info smaller
says 'all steps done after 14 steps' "$heed" train --resume smaller --steps 14 --threads 1
says 'all steps done' "$heed" "${own[@]}" --preset rnn-dot --cell lstm --width 20 --separate-vocabularies --out rnn
says 'cell +lstm' "$heed" info rnn
refuses 1 '^heed: transformer: .*width is 25' "$heed" train --data nowhere.tsv --dev nowhere.tsv --width 25 --heads 3 --out bad
refuses 2 '^heed: --width is .x., expected an integer in \[1, 1048576\]' "$heed" "${own[@]}" --width x --out bad
refuses 2 '^heed: --kv-heads is no option of preset rnn, which is of family rnn_seq2seq' "$heed" "${own[@]}" --preset rnn --kv-heads 2 --out bad
refuses 2 '^heed: --config and --preset came' "$heed" "${own[@]}" --preset rnn --config small/config.json --out bad
refuses 2 '^heed: --width came with --resume' "$heed" train --resume small --width 8
echo '{"family": "transformer", "transformer": {"widht": 24}}' >bad.json
refuses 1 "^heed: bad.json: .*widht" "$heed" "${own[@]}" --config bad.json --out bad

# Going on from another model, with its tokenizer and a rate of its own.
head -100 pairs/dev.tsv >more.tsv
says 'all steps done after 5 steps' "$heed" train --init model --data more.tsv --dev pairs/dev.tsv --out tuned --threads 1 --rate 0.0001 --steps 5
cmp model/tokenizer tuned/tokenizer || fail "the tuned model has another tokenizer"
says 'all steps done after 7 steps' "$heed" train --resume tuned --steps 7 --threads 1
says '.' "$heed" translate --model tuned --threads 1 source.txt
for flag in '--preset rnn' '--width 8' '--vocabulary 90' '--tokenizer words' '--separate-vocabularies'; do
  # shellcheck disable=SC2086
  refuses 2 "^heed: ${flag%% *} came with --init, expected none: model and tokenizers are those of model" \
    "$heed" train --init model --data more.tsv --dev pairs/dev.tsv --out bad $flag
done
refuses 1 "^heed: model folder 'nowhere' is not there" "$heed" train --init nowhere --data more.tsv --dev pairs/dev.tsv --out bad

# What is not known is printed as it came.
"$heed" corpus --pairs 300 --seed 1 --task tag --split tags
says 'all steps done' "$heed" train --data tags/train.tsv --dev tags/dev.tsv --preset tagger --out tagger "${quick[@]}"
says '^The/[A-Z]+ axolotl/[A-Z]+ sleeps/' "$heed" tag --model tagger --words --threads 1 <<<"The axolotl sleeps ."
gzip -c <<<"The axolotl sleeps ." >words.gz
says '^The/[A-Z]+ axolotl/' "$heed" tag --model tagger --words --threads 1 words.gz
says 'all steps done' "$heed" train --preset lm-small --width 32 --data train.en --dev dev.en --tokenizer words --out lm "${quick[@]}"
says '^The axolotl' "$heed" generate --model lm --prompt "The axolotl" --max-length 5 --threads 1
[[ ! -e bad ]] || fail "a run that could not begin left a folder"
echo "data and models of one's own: all as expected"
