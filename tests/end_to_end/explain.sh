#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# heed explain and --gate, through the binary: every method, for every kind of model, and what a user asks for that is not
# there. explain.sh <the heed binary>
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

quick=(--threads 1 --batch-tokens 512 --warmup 10 --rate 0.003)
"$heed" corpus --pairs 1000 --seed 1 --split pairs
"$heed" corpus --pairs 1000 --seed 1 --task tag --split tags
cut -f1 pairs/train.tsv >english.txt
cut -f1 pairs/dev.tsv >english_dev.txt
made() {
  local preset=$1 out=$2 data=$3 dev=$4
  says 'all steps done' "$heed" train --data "$data" --dev "$dev" --preset "$preset" --out "$out" --steps 5 "${quick[@]}" "${@:5}"
}
made transformer-tiny model pairs/train.tsv pairs/dev.tsv --tokenizer words
made rnn-attention bahdanau pairs/train.tsv pairs/dev.tsv
made rnn-dot luong pairs/train.tsv pairs/dev.tsv
made rnn blind pairs/train.tsv pairs/dev.tsv
made tagger tagger tags/train.tsv tags/dev.tsv
made self-attentive states tags/train.tsv tags/dev.tsv
made lm-small lm english.txt english_dev.txt --tokenizer words

# explain <model> <flags...>: of one sentence, with an output that is given, so that its words are known.
sentence="The cat sleeps ."
explain() {
  local model=$1
  shift
  "$heed" explain --model "$model" --threads 1 "$@" "$sentence"
}
said=(--target "El gato duerme.")

# What is looked at, and a map of it.
says '^  gato +looks at  ' explain model "${said[@]}"
says '\|[ ░▒▓█]+\|' explain model "${said[@]}" --map
says "weights: ' ' from 0.00 '░' from 0.05" explain tagger --map
for one in tagger states lm; do says '^  cat +looks at  ' explain $one; done
says 'decoder\.0\.cross\.1  ' explain model "${said[@]}" --word gato
says "^'cat' looks at \(encoder.0.self.0\)" explain tagger --word cat --head encoder.0.self.0

# Every method says what it explains.
says '^log p\(output\) = -\d+\.\d{4}$' explain model "${said[@]}" --method heads
says '^log p\(gato\) = -\d+\.\d{4}$' explain model "${said[@]}" --method leave-out --of gato
says '^log p\(gato\) - log p\(perro\) = -?\d+\.\d{4}$' explain model "${said[@]}" --from cat --of gato --against perro
says '^log p\([A-Z]+\) - log p\(VERB\) = ' explain tagger --from cat --of cat --against VERB
says "^from 'cat' +gradient +off  looks at" explain lm --from cat
says '^encoder\.\d\.self\.\d +[+-]\d\.\d{4} +[+-]\d\.\d{4}  \S+ 0\.' explain model "${said[@]}" --from cat --of gato
for method in values gradients; do says '^encoder|^  encoder' explain model "${said[@]}" --word cat --method $method --of gato; done
says '^source$' explain model "${said[@]}" --method rollout --of gato
says 'the sum misses the difference by' explain model "${said[@]}" --method integrated --of gato --steps 4
says '^without$' explain luong "${said[@]}" --method leave-out
says '^  decoder\.1 +[+-]\d+\.\d{4}  \S' explain model "${said[@]}" --method lens --of gato
for one in bahdanau luong; do says '^decoder\.cross\.0 +[+-]' explain $one "${said[@]}" --method heads; done
says '^blocks\.0\.self\.0 +[+-]' explain states --method heads --of cat

says '^decoder\.0\.cross\.1 +[+-]\d\.\d{4} +[+-]\d\.\d{4}' explain model "${said[@]}" --of gato --patch-from "The dog sleeps ."
says '^encoder\.0\.self encoder\.1\.self\.2 +-\d' explain model "${said[@]}" --of gato --patch-from "The dog sleeps ." --patch encoder.0.self --patch encoder.1.self.2
for one in tagger states lm; do says '\.self\.0 +[+-]' explain $one --of cat --patch-from "The dog sleeps ."; done

# Numbers that belong together, in JSON.
check() {  # check <expression over the object o> <model> <flags...>
  local test=$1
  shift
  explain "$@" --json | python3 -c "
import json, sys
o = json.loads(sys.stdin.readline())
assert $test, o" || fail "explain $* --json: not so: $test"
}
check 'abs(sum(o["source_shares"]) + o["source_end"] + sum(o["target_shares"]) + o["target_begin"] - 1) < 1e-5' model "${said[@]}" --method rollout --of gato
check 'abs(sum(o["source_shares"]) + o["source_end"] + sum(o["target_shares"]) + o["target_begin"] - o["explained"]["value"] + o["baseline"] - o["completeness_error"]) < 1e-4' \
  model "${said[@]}" --method integrated --steps 3
check 'len(o["changes"]) == len(o["source_words"])' model "${said[@]}" --method leave-out
check 'o["changes"][1] is None and o["changes"][0] is not None' tagger --method leave-out --of cat
check 'len(o["heads"]) == 24 and sum("off" in h for h in o["heads"]) == 10' model "${said[@]}" --method heads
check 'abs(o["layers"][-1]["value"] - o["explained"]["value"]) < 1e-4' model "${said[@]}" --method lens --of gato

check 'len(o["patched"]) == 30 and all(p["change"] == 0 for p in o["patched"])' model "${said[@]}" --patch-from "$sentence"

# A gate changes what it is measured to change.
off=$(explain model "${said[@]}" --json --method heads --measure 24 | python3 -c '
import json, sys
print([h["off"] for h in json.load(sys.stdin)["heads"] if h["layer"] == "encoder.1.self" and h["head"] == 2][0])')
check "abs(o['explained']['value'] - o['explained']['ungated'] - ($off)) < 1e-4" model "${said[@]}" --gate encoder.1.self.2=0
printf 'The cat sleeps .\tEl gato duerme.\n' >pair.tsv
plain=$("$heed" score --model model --threads 1 pair.tsv)
[[ $("$heed" score --model model --threads 1 --gate encoder.1.self.2=1 pair.tsv) == "$plain" ]] || fail "a gate of 1 changed a score"
[[ $("$heed" score --model model --threads 1 --gate encoder.1.self=0 pair.tsv) != "$plain" ]] || fail "a layer that is off changed nothing"
says '.' "$heed" translate --model model --threads 1 --gate decoder.0.cross.0=0 --gate decoder.0.cross.1=0.5 <<<"$sentence"
says '.' "$heed" tag --model tagger --threads 1 --gate encoder.0.self.1=0 <<<"$sentence"
says '.' "$heed" generate --model lm --threads 1 --gate decoder.0.self.0=0 --max-length 6 --prompt "The cat"
says '.' "$heed" embed --model states --threads 1 --gate blocks.0.self.0=0 <<<"$sentence"

# What is not there.
refuses 1 "^heed: model folder 'nowhere' is not there" explain nowhere
refuses 1 "the sentence '  ' has no word in it, expected at least one" "$heed" explain --model model --threads 1 "  "
refuses 1 'tokens came, expected at most 1023' bash -c "yes word | head -100000 | tr '\n' ' ' | '$heed' explain --model model --threads 1"
refuses 1 'the model has no attention, expected one that has heads' explain blind "${said[@]}" --method heads
refuses 1 'the model has no cross-attention' explain blind "${said[@]}"
refuses 1 'all contexts are fed to a recurrent cell' explain bahdanau "${said[@]}" --from gato
refuses 1 'rollout: the model is of family rnn_seq2seq, expected a transformer' explain luong "${said[@]}" --method rollout --of gato
refuses 1 'expected the word of the output that it is for' explain model "${said[@]}" --method rollout
refuses 1 "the word is 'perro', expected a word of the output 'El gato duerme" explain model "${said[@]}" --method lens --of perro
refuses 1 "the word is 'dog', expected a word of the sentence" explain model "${said[@]}" --from dog
refuses 1 "the word is 'gatx', expected one that the model knows" explain model "${said[@]}" --method heads --against gatx
refuses 1 "the tag is 'BIRD', expected a tag that the model knows" explain tagger --method heads --of cat --against BIRD
refuses 1 "^heed: --gate: layer 'encoder.0.self' has no head 4, expected 0 to 3" explain model --gate encoder.0.self.4=0
refuses 1 "^heed: --gate: there is no layer 'encoder.7.self', expected one of: encoder.0.self" \
  "$heed" translate --model model --threads 1 --gate encoder.7.self.0=0 english.txt
refuses 2 "^heed: --gate: gate 'encoder.0.self.1' is no head with its factor" "$heed" tag --model tagger --gate encoder.0.self.1 tags/test.tsv
refuses 1 'the other sentence has 3 tokens, expected 4: outputs are taken token by token' explain model "${said[@]}" --patch-from "The dog sleeps"
refuses 1 "there is no layer 'encoder.7.self', expected one of: encoder.0.self" explain model "${said[@]}" --patch-from "$sentence" --patch encoder.7.self
refuses 1 "layer 'encoder.0.self' has no head 4, expected 0 to 3" explain model "${said[@]}" --patch-from "$sentence" --patch encoder.0.self.4
refuses 1 "the sentence '  ' has no word in it" explain model "${said[@]}" --patch-from "  "
refuses 1 'no head of the model can be patched' explain blind "${said[@]}" --patch-from "$sentence"
refuses 1 "^heed: --head is 'encoder.0.self.9', expected encoder.0.self.0 to encoder" explain tagger --word cat --head encoder.0.self.9
refuses 1 "^heed: pairs/config.json: cannot open: No such file or directory" explain pairs

# By which path a pronoun's gender gets to the translation.
head -200 pairs/train.tsv >some.tsv
for kind in align referents tags; do head -200 pairs/train.$kind >some.$kind; done
says 'with outputs taken from there' "$heed" evaluate --model model --data some.tsv --pronouns --paths --threads 1
"$heed" evaluate --model model --data some.tsv --pronouns --paths --threads 1 --json | python3 -c '
import json, sys
o = json.load(sys.stdin)["pronouns"]
assert {one["method"] for one in o["finding"]["finders"]} == {"weights", "values", "gradients", "rollout", "integrated", "leave-out"}, o
assert o["paths"]["adjective"]["flipped"] <= o["paths"]["adjective"]["pairs"] <= o["finding"]["right"], o' || fail "the paths do not fit"
says '^leave-out +\d' "$heed" bench explain --model model --data pairs/test.tsv --sentences 5 --steps 2
says '^rollout +\d' "$heed" bench explain --model lm --length 50 --sentences 1 --steps 1

refuses 2 '^heed: --of and --against say what is explained' explain model --of gato
refuses 2 '^heed: --word and --from came' explain model --word cat --from cat
refuses 2 '^heed: --method values and gradients came without --word' explain model --method values
refuses 2 '^heed: --from and --method came' explain model --from cat --method lens
refuses 2 '^heed: --map came with a word or a method' explain model --map --word cat
refuses 2 '^heed: --compare-model came without --out' explain model --compare-model model
refuses 2 '^heed: --gate and --trace came' explain model --gate encoder.0.self.1=0 --trace t.json
explain model --out page.html --trace t.json --compare "A dog sleeps ." --compare-model model --gate encoder.0.self.1=0 >/dev/null
python3 - <<'END'
import json
page = open("page.html").read()
begin = page.index('id="data">') + len('id="data">')
traces = json.loads(page[begin:page.index("</script>", begin)])
assert [one.get("label") for one in traces] == ["model", None, "model", "encoder.0.self.1=0"], "what is compared"
first = traces[0]
assert len(first["effects"]) == len(first["output"]["steps"]) and "effects" not in traces[3], "effects of every choice"
assert abs(first["effects"][0]["value"] - first["output"]["steps"][0]["logprob"]) < 1e-4
assert json.load(open("t.json"))["effects"] == first["effects"], "the trace is the first on the page"
END
explain model --trace t.json --effects none >/dev/null
[[ $(grep -c '"effects"' t.json) == 0 ]]
echo "every method explained what there is to explain"
