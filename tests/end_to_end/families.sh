#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A preset of each other family, from corpus to evaluation, through the binary. families.sh <the heed binary>
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

quick=(--threads 1 --batch-tokens 512 --warmup 10 --rate 0.003)
"$heed" corpus --pairs 1000 --seed 1 --split pairs
cut -f1 pairs/test.tsv >source.txt
for preset in rnn rnn-attention rnn-dot rnn-self-attention; do
  says 'all steps done after 12 steps' "$heed" train --data pairs/train.tsv --dev pairs/dev.tsv --preset $preset --out $preset --steps 12 "${quick[@]}"
  says '.' "$heed" translate --model $preset --beam 2 --threads 1 source.txt
  says '^all +50 ' "$heed" evaluate --model $preset --data pairs/test.tsv --threads 1
  says 'rnn_seq2seq' "$heed" info $preset
  "$heed" explain --model $preset --threads 1 --trace $preset.json "The cat sleeps ." >out 2>&1 || says 'attention' cat out
  says '"format":"heed-trace".*"kind":"rnn_seq2seq"' cat $preset.json
done
says '\t(\d+-\d+ ?)+$' "$heed" translate --model rnn-attention --align --threads 1 source.txt
both=rnn-self-attention  # attention in the encoder, and from the decoder
says '\t(\d+-\d+ ?)+$' "$heed" translate --model $both --align --threads 1 source.txt
says 'looks at  \S+ 0\.\d\d' "$heed" explain --model $both --threads 1 "The cat sleeps ."
says 'encoder\.0\.self\.0  ' "$heed" explain --model $both --word cat --threads 1 "The cat sleeps ."
says 'encoder\.0\.self\.0 ' "$heed" evaluate --model $both --data pairs/test.tsv --pronouns --threads 1
says '^all +50 ' "$heed" evaluate --model $both --data pairs/test.tsv --head-off encoder.0.self.0 --threads 1
says 'self_attentive.base +gru' "$heed" info $both
says 'all steps done after 5 steps' "$heed" train --data <(cat pairs/train.tsv) --dev pairs/dev.tsv --preset rnn-dot --separate-vocabularies --out two --steps 5 "${quick[@]}"
says 'target.tokens' "$heed" info two
says '.' "$heed" translate --model two --threads 1 source.txt
says 'all steps done after 14 steps' "$heed" train --resume rnn-attention --steps 14 --threads 1

"$heed" corpus --pairs 1000 --seed 1 --task tag --split tags
for preset in self-attentive tagger; do
  says 'all steps done after 60 steps' "$heed" train --data tags/train.tsv --dev tags/dev.tsv --preset $preset --out $preset --steps 60 "${quick[@]}"
  says '^50 sentences, \d+ words: [6-9]\d\.\d\d % of the tags are right' "$heed" evaluate --model $preset --data tags/test.tsv --threads 1
  says '^[A-Z]+ [A-Z]+ [A-Z]+ PUNCT$' "$heed" tag --model $preset --threads 1 <<<"The cat sleeps ."
  says '^The/[A-Z]+ cat/[A-Z]+ ' "$heed" tag --model $preset --words --threads 1 <<<"The cat sleeps ."
  says 'steps +60' "$heed" info $preset
  says '^[A-Z]+ [A-Z]+ ' "$heed" tag --model $preset --threads 1 --trace $preset.json <<<"The cat sleeps ."
  says '"task":"tag"' cat $preset.json
done

printf 'The cat\tDET NOUN\nThe old cat\tDET NOUN\n' >bad.tsv
"$heed" train --data bad.tsv --dev bad.tsv --preset tagger --out bad 2>err && fail "a missing tag was not noticed"
says '^heed: bad.tsv:2: 3 tokens and 2 tags, expected as many' cat err
refuses 1 'tagger: is a tagger, expected a model that translates; see heed tag' "$heed" translate --model tagger source.txt
refuses 1 'expected tokenizer words' "$heed" train --data tags/train.tsv --dev tags/dev.tsv --preset tagger --tokenizer bpe --out bad2
echo "every family went the whole way"
