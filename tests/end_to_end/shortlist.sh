#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A shortlist, made and used through the binary, for a Transformer and a recurrent model, with one vocabulary and with
# two; and what a user does wrong. shortlist.sh <the heed binary>
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

quick=(--threads 1 --batch-tokens 512 --warmup 10 --rate 0.003 --tokenizer words --steps 30)
"$heed" corpus --pairs 1000 --seed 1 --split pairs
cut -f1 pairs/test.tsv >source.txt
train=(train --data pairs/train.tsv --dev pairs/dev.tsv "${quick[@]}")
says 'all steps done' "$heed" "${train[@]}" --preset transformer-tiny --out one
says 'all steps done' "$heed" "${train[@]}" --preset rnn-attention --separate-vocabularies --out two

for model in one two; do
  refuses 1 "^heed: $model: has no shortlist, expected one that heed shortlist made" "$heed" translate --model $model --shortlist source.txt
  says "^$model/shortlist.safetensors: 1,000 lines, 1,000 kept.*; [\d,]+ target tokens for [\d,]+ source tokens" \
    "$heed" shortlist --model $model --data pairs/train.tsv --frequent 100000
  for beam in 1 4; do
    "$heed" translate --model $model --threads 1 --beam $beam source.txt >without.txt
    "$heed" translate --model $model --threads 1 --beam $beam --shortlist source.txt | diff without.txt - ||
      fail "$model: a list of all tokens changed translations, beam $beam"
  done

  # A short list: no word comes but those that may, whatever stands beside the line.
  "$heed" shortlist --model $model --data pairs/train.tsv --best 3 --frequent 5 >said.txt
  "$heed" translate --model $model --threads 1 --beam 4 --shortlist source.txt >short.txt
  [[ $(wc -l <short.txt) == $(wc -l <source.txt) ]] || fail "$model: a shortlist gave another number of lines"
  "$heed" translate --model $model --threads 2 --batch 3 --beam 4 --shortlist source.txt | diff short.txt - ||
    fail "$model: with a shortlist, what a line gives depends on its batch"
  says '^caballo' "$heed" translate --model $model --threads 1 --beam 4 --shortlist --prefix caballo source.txt
  says 'caballo' "$heed" translate --model $model --threads 1 --beam 4 --shortlist --require caballo source.txt
done

# From two files, as heed train takes them, it is the same list.
cut -f1 pairs/train.tsv >train.en
cut -f2 pairs/train.tsv >train.es
cp two/shortlist.safetensors before
says '1,000 kept' "$heed" shortlist --model two --source train.en --target train.es --best 3 --frequent 5
cmp before two/shortlist.safetensors || fail "two files gave another list than one"

# What a user does wrong.
refuses 2 '^heed: expected --data, or --source and --target' "$heed" shortlist --model one
refuses 2 '^heed: expected --data, or --source and --target' "$heed" shortlist --model one --source train.en
refuses 2 '^heed: --best is .0., expected an integer' "$heed" shortlist --model one --data pairs/train.tsv --best 0
refuses 1 '^heed: nowhere.tsv: cannot open' "$heed" shortlist --model one --data nowhere.tsv
refuses 2 '^heed: --model is missing' "$heed" shortlist --data pairs/train.tsv
cp before one/shortlist.safetensors
refuses 1 '^heed: one/shortlist.safetensors: was made for \d+ tokens of the source, expected \d+ as the model has' "$heed" translate --model one --shortlist source.txt
head -c 100 before >one/shortlist.safetensors
refuses 1 '^heed: one/shortlist.safetensors: ' "$heed" translate --model one --shortlist source.txt
echo 'shortlists were made, kept to and checked'
