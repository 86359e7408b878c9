#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Text through the commands that read it line by line: what becomes of bad lines, JSON for programs, and the ways in which
# text comes. text.sh <the heed binary>
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

quick=(--threads 1 --batch-tokens 512 --warmup 5 --rate 0.003 --steps)
"$heed" corpus --pairs 1000 --seed 1 --split pairs
"$heed" corpus --pairs 1000 --seed 1 --task tag --split tags
cut -f1 pairs/train.tsv >english.txt
cut -f1 pairs/dev.tsv >english_dev.txt
says 'all steps done' "$heed" train --data pairs/train.tsv --dev pairs/dev.tsv --tokenizer words --preset transformer-tiny --out model "${quick[@]}" 60
says 'all steps done' "$heed" train --data tags/train.tsv --dev tags/dev.tsv --preset tagger --out tagger "${quick[@]}" 8
says 'all steps done' "$heed" train --data english.txt --dev english_dev.txt --tokenizer words --preset lm-small --out lm "${quick[@]}" 8

# Every command that reads lines, with a file of good ones: its words, and its input.
declare -A works=([translate]="translate --model model --threads 1" [tag]="tag --model tagger --threads 1"
  [score]="score --model model --threads 1" [embed]="embed --model model --threads 1" [generate]="generate --model lm --max-length 6 --threads 1")
head -40 english_dev.txt >translate.txt
head -40 pairs/dev.tsv >score.txt
cp translate.txt embed.txt
cut -f1 tags/dev.tsv | head -40 >tag.txt
cut -d' ' -f1-2 translate.txt >generate.txt
overlong=$(printf 'cat %.0s' {1..2000})
bad='b\xffd'

# Two files that say the same: words alike, and numbers to the rounding of f32 over a sentence.
same() {
  python3 - "$@" <<'END'
import re, sys
one, other = (re.split(r"[ \t\n]", open(name, encoding="utf-8").read()) for name in sys.argv[1:])
assert len(one) == len(other)
for a, b in zip(one, other):
    if a != b:
        assert abs(float(a) - float(b)) <= 1e-4 * max(1, abs(float(b))), (a, b)
END
}

for command in translate tag score embed generate; do
  read -ra run <<<"${works[$command]}"
  run=("$heed" "${run[@]}")
  input=$command.txt
  "${run[@]}" $input >good || fail "$command $input"
  [[ $(wc -l <good) == 40 ]] || fail "$command gave $(wc -l <good) lines for 40"

  # One bad line: those before it are written, and the error says where it stands.
  (head -7 $input && printf "$bad\n" && tail -33 $input) >bad.txt
  "${run[@]}" bad.txt >some 2>err && fail "$command took bytes that are no UTF-8"
  says '^heed: bad.txt:8: byte 2 is 0xff, which is no UTF-8$' cat err
  diff <(head -7 good) some || fail "$command lost good lines before a bad one"
  (head -7 $input && printf "%s\t%s\n" "$overlong" "$overlong" && tail -33 $input) >long.txt
  "${run[@]}" long.txt >some 2>err && fail "$command took an overlong line"
  says '^heed: long.txt:8: .*\d+ tokens came, expected at most \d+$' cat err
  diff <(head -7 good) some || fail "$command lost good lines before an overlong one"

  # --skip-bad leaves an empty line in their place, and counts them.
  (head -7 $input && printf "$bad\n" && sed -n 8,20p $input && printf "%s\t%s\n" "$overlong" "$overlong" && tail -20 $input) >two.txt
  "${run[@]}" --skip-bad two.txt >some 2>err || fail "$command --skip-bad: $(cat err)"
  diff <(head -7 good && echo && sed -n 8,20p good && echo && tail -20 good) some || fail "$command --skip-bad gave other lines"
  says '^heed: skipped 2 of 42 lines, the first: two.txt:8: byte 2 is 0xff, which is no UTF-8$' cat err
  "${run[@]}" --skip-bad --json two.txt 2>err >some || fail "$command --skip-bad --json: $(cat err)"
  says '^\{"error":"two.txt:8: byte 2 is 0xff, which is no UTF-8"\}$' sed -n 8p some
  "${run[@]}" --skip-bad $input 2>&1 | diff - good || fail "$command --skip-bad changed what is good"

  # The same text in other clothes.
  (printf '\xef\xbb\xbf' && cat $input) | "${run[@]}" - | diff - good || fail "$command: a byte order mark changed the output"
  sed 's/$/\r/' $input | "${run[@]}" - | diff - good || fail "$command: Windows line ends changed the output"
  head -c -1 $input | "${run[@]}" /dev/stdin | diff - good || fail "$command: a missing newline at the end changed the output"
  "${run[@]}" <(head -20 $input) - < <(tail -20 $input) | diff - good || fail "$command: a file and standard input gave another output"
  refuses 1 '^heed: nowhere.txt: cannot (read|open): No such file' "${run[@]}" nowhere.txt
  [[ -z $("${run[@]}" /dev/null) ]] || fail "$command wrote something for nothing"

  # Batches of another size: the same, but for the rounding of numbers.
  for batch in "--batch 3" "--batch-tokens 40"; do
    "${run[@]}" $batch $input >other
    same other good || fail "$command $batch gave another output"
  done

  # Somebody who has seen enough.
  (trap '' PIPE; set +e; for _ in {1..50}; do cat $input; done 2>/dev/null | "${run[@]}" - 2>err; echo "${PIPESTATUS[1]}" >code) | head -1 >first
  diff <(head -1 good) first || fail "$command | head -1 gave $(cat first)"
  [[ $(cat code) == 141 && ! -s err ]] || fail "$command | head -1 gave exit code $(cat code) and said '$(cat err)'"
done

# JSON for programs: each line is an object, with what the help promises.
# objects <python expression of the object o and its number n> <command...>
objects() {
  local expression=$1
  shift
  "$@" >lines.json || fail "$*"
  python3 - "$expression" <<'END' || fail "$* wrote $(head -1 lines.json), expected $expression"
import json, sys
objects = [json.loads(line) for line in open("lines.json", encoding="utf-8")]
assert len(objects) == 40, len(objects)
for n, o in enumerate(objects):
    assert eval(sys.argv[1]), (n, o)
END
}
objects 'o["source"] and len(o["hypotheses"]) == 2 and [(h["finished"], h["score"]) for h in o["hypotheses"]] == sorted(((h["finished"], h["score"]) for h in o["hypotheses"]), reverse=True)' \
  "$heed" translate --model model --threads 1 --nbest 2 --json translate.txt
objects 'all(len(h["tokens"]) > 0 and h["log_probability"] < 0 and h["finished"] in (True, False) and "alignment" not in h for h in o["hypotheses"])' \
  "$heed" translate --model model --threads 1 --nbest 2 --json translate.txt
objects 'all(s < len(o["source"].split()) and t < len(h["text"].split()) for h in o["hypotheses"] for s, t in h["alignment"]) and o["hypotheses"][0]["alignment"]' \
  "$heed" translate --model model --threads 1 --align --json translate.txt
python3 -c 'import json; [print(json.loads(line)["hypotheses"][0]["text"]) for line in open("lines.json")]' |
  diff - <("$heed" translate --model model --threads 1 translate.txt) || fail "translate --json has other translations"
objects '[w["word"] for w in o["words"]] == o["text"].split() and all(w["tag"] and w["log_probability"] <= 0 for w in o["words"])' \
  "$heed" tag --model tagger --threads 1 --json tag.txt
objects 'abs(sum(o["log_probabilities"]) - o["log_probability"]) < 1e-6 and len(o["tokens"]) == len(o["log_probabilities"]) and o["tokens"][-1] == "</s>"' \
  "$heed" score --model model --threads 1 --json score.txt
objects 'abs(o["perplexity"] - 2.718281828459045 ** (-o["log_probability"] / len(o["tokens"]))) < 1e-6 * o["perplexity"] and 0 <= o["correct"] <= len(o["tokens"])' \
  "$heed" score --model model --threads 1 --json score.txt
objects 'len(o["vector"]) == 128 and o["text"]' "$heed" embed --model model --threads 1 --json embed.txt
objects 'len(o["continuations"]) == 3 and all(c["text"].startswith(o["prompt"]) and c["tokens"] for c in o["continuations"])' \
  "$heed" generate --model lm --threads 1 --max-length 6 --nbest 3 --json generate.txt
objects 'o["translation"] and all(len(l["weights"]) == len(o["source_words"]) and abs(sum(l["weights"]) + l["end"] - 1) < 1e-3 for l in o["looks"])' \
  "$heed" explain --model model --threads 1 --json - <translate.txt
sed 's/^/Well /' translate.txt >well.txt
objects 'o["word"] == "well" and len(o["looks"]) == 8 and all(l["layer"].startswith("encoder.") and len(l["weights"]) == len(o["source_words"]) for l in o["looks"])' \
  "$heed" explain --model model --threads 1 --word well --json <well.txt
objects 'len(o["looks"]) == 1 and o["looks"][0]["head"] == 2' \
  "$heed" explain --model model --threads 1 --word well --head encoder.1.self.2 --json <well.txt
refuses 1 "^heed: standard input:2: the word is 'dog', expected a word of the sentence" bash -c "printf 'The dog .\nThe cat .\n' | '$heed' explain --model model --threads 1 --word dog --json 2>&1 >/dev/null | cat >&2; exit \${PIPESTATUS[1]}"
says '"parameters"' "$heed" info --model model --json
"$heed" info --model model >info.txt && has_words info.txt
"$heed" info model | diff - info.txt || fail "info --model said something else"
refuses 2 '^heed: --model and a folder came, expected one of them' "$heed" info model --model model

# A word that the model does not know is the user's word all the same.
says '^The/[A-Z]+ Xyzzy/[A-Z]+ sleeps/[A-Z]+ \./PUNCT$|^The/\S+ Xyzzy/\S+ sleeps/\S+ \./\S+$' "$heed" tag --model tagger --words --threads 1 <<<"The Xyzzy sleeps ."
says '^The Xyzzy, ' "$heed" generate --model lm --prompt "The Xyzzy," --max-length 3 --threads 1

# Output of a model, and of somebody else, measured without one.
cat score.txt <(printf '\n') <(head -3 pairs/test.tsv) >data.tsv
cut -f2 data.tsv >reference.txt
"$heed" evaluate --model model --data data.tsv --threads 1 --hypotheses-out written.txt --json >by_model.json
[[ $(wc -l <written.txt) == 44 && -z $(sed -n 41p written.txt) ]] || fail "--hypotheses-out does not follow the data line by line"
has_words written.txt
diff <(sed 41d written.txt) <(cut -f1 data.tsv | sed 41d | "$heed" translate --model model --threads 1) || fail "--hypotheses-out has other translations"
"$heed" evaluate --hypotheses written.txt --data data.tsv --json >by_file.json
"$heed" evaluate --hypotheses written.txt --references reference.txt --json >by_lines.json
python3 - <<'END' || fail "the same output has other scores: $(cat by_model.json by_file.json by_lines.json)"
import json
model, file, lines = (json.load(open(f"by_{name}.json")) for name in ("model", "file", "lines"))
assert all(model[name] == file[name] for name in ("sentences", "bleu", "chrf", "exact_match"))
assert lines["sentences"] == 44 and "perplexity" not in file and model["perplexity"] > 1
END
says '^all +44 +100.00 +100.00 +100.00 +- +- +-$' "$heed" evaluate --hypotheses reference.txt --references - <reference.txt
says '^6-10 ' "$heed" evaluate --hypotheses written.txt --data - --by-length <data.tsv
head -43 written.txt >short.txt
refuses 1 '^heed: short.txt: has 43 lines, expected 44 as data.tsv has$' "$heed" evaluate --hypotheses short.txt --data data.tsv
refuses 1 '^heed: written.txt: has 44 lines, expected 43 as short.txt has$' "$heed" evaluate --hypotheses written.txt --references short.txt
refuses 2 '^heed: --hypotheses came alone, expected --data or --references' "$heed" evaluate --hypotheses written.txt
refuses 2 '^heed: --references came without --hypotheses' "$heed" evaluate --model model --references short.txt --data data.tsv
refuses 2 '^heed: --model and --hypotheses came, expected one of them' "$heed" evaluate --model model --hypotheses short.txt --data data.tsv
refuses 1 '^heed: nowhere/h.txt.*: cannot .*: No such file' "$heed" evaluate --model model --data data.tsv --hypotheses-out nowhere/h.txt --threads 1
refuses 1 '^heed: tagger: is a tagger, which has no translations' "$heed" evaluate --model tagger --data tags/test.tsv --hypotheses-out h.txt --threads 1

# Weights and caches in 16 bits: other last digits, the same sentences for the most part.
"$heed" translate --model model --threads 1 --beam 4 translate.txt >f32.txt
for format in bf16 f16; do
  "$heed" translate --model model --threads 1 --beam 4 --weights $format --cache $format translate.txt >half.txt
  [[ $(wc -l <half.txt) == 40 ]] || fail "--weights $format gave $(wc -l <half.txt) lines, expected 40"
done
same=$(paste -d '\n' f32.txt half.txt | awk 'NR % 2 { first = $0; next } $0 == first' | wc -l)
((same >= 30)) || fail "with f16, $same of 40 translations are those of f32, expected 30 at least"
says '.' "$heed" generate --model lm --prompt "The cat" --max-length 5 --weights f16 --cache f16 --threads 1
refuses 2 "^heed: --weights is 'int4', expected one of: f32, bf16, f16" "$heed" translate --model model --weights int4 translate.txt

# Flags that mean something only together.
refuses 2 '^heed: --temperature came without --sample, expected both' "$heed" translate --model model --temperature 2 translate.txt
refuses 2 '^heed: --top-k came without --sample, expected both' "$heed" generate --model lm --top-k 2
refuses 2 '^heed: --align-layer came without --align, expected both' "$heed" translate --model model --align-layer 0 translate.txt
refuses 2 '^heed: --nbest is 3 and --beam 2, expected no more results than hypotheses' "$heed" translate --model model --beam 2 --nbest 3 translate.txt
refuses 2 '^heed: --head came without --word' "$heed" explain --model model --head encoder.0.self.0 "The cat"
refuses 2 '^heed: --require came with --beam 1, expected 2 or more' "$heed" translate --model model --require x translate.txt
# A word that the first translation lacks must come, one that it has must not, and a beginning is kept to. Which words the
# model has learnt to say depends on the machine; that it knows those of its own corpus does not.
head -1 translate.txt >one.txt
constrained=("$heed" translate --model model --threads 1 --beam 4 --min-length 4)
first=$("${constrained[@]}" one.txt)
had=$(cut -d' ' -f1 <<<"$first")
lacks=$(cut -f2 pairs/train.tsv | tr ' ' '\n' | grep -E '^[a-z]{3,}$' | grep -vxF -f <(tr ' ' '\n' <<<"$first") | sed -n 1p || true)
[[ -n $had && -n $lacks ]] || fail "'$first' has no word, or all of the corpus"
bound=$("${constrained[@]}" --require "$lacks" --forbid "$had" one.txt)
grep -qw -- "$lacks" <<<"$bound" || fail "--require '$lacks' gave '$bound'"
! tr ' ' '\n' <<<"$bound" | grep -qxF -- "$had" || fail "--forbid '$had' gave '$bound'"
[[ $("$heed" translate --model model --threads 1 --prefix "$lacks" one.txt) == "$lacks"* ]] || fail "--prefix '$lacks' was not kept to"
[[ $("$heed" translate --model model --threads 1 --nbest 3 translate.txt | wc -l) == 120 ]] || fail "--nbest 3 did not keep three hypotheses"
"$heed" translate --model model --threads 1 --sample --temperature 3 --nbest 3 translate.txt >drawn
[[ $(wc -l <drawn) == 120 && $(sort -u drawn | wc -l) -gt 60 ]] || fail "--sample --nbest 3 did not draw three of each"

# What is drawn for a line depends on the seed and its number, not on what came with it.
"$heed" translate --model model --threads 1 --sample --temperature 3 translate.txt >drawn
coproc slow { "$heed" translate --model model --threads 1 --sample --temperature 3; }
for n in 1 2 3; do
  sed -n ${n}p translate.txt >&"${slow[1]}"
  read -r -t 20 -u "${slow[0]}" answer || fail "line $n was not answered"
  [[ $answer == "$(sed -n ${n}p drawn)" ]] || fail "alone, line $n was answered by '$answer', expected '$(sed -n ${n}p drawn)'"
done
eval "exec ${slow[1]}>&-"
wait "$slow_PID"

# Three lines for --nbest 3, also where there is nothing to translate.
[[ $(printf 'The cat sleeps.\n\nb\xffd\n' | "$heed" translate --model model --threads 1 --nbest 3 --skip-bad 2>err | wc -l) == 9 ]] ||
  fail "--nbest 3 did not give three lines for each of three"
[[ $(printf '\n \nThe cat\tEl gato\n' | "$heed" score --model model --threads 1 | sed -n '1,2p') == "" ]] || fail "score did not leave an empty line empty"
refuses 1 '^heed: score.bad:1: the source has no token, expected at least 1' bash -c "printf '\tEl gato\n' >score.bad; '$heed' score --model model --threads 1 score.bad"
refuses 1 '^heed: score.bad:1: has no tab, expected one between source and target' bash -c "printf 'El gato\n' >score.bad; '$heed' score --model model --threads 1 score.bad"
refuses 1 '^heed: The cat: cannot read: .*; a prompt itself comes with --prompt' "$heed" generate --model lm "The cat"
refuses 2 '^heed: --prompt and files came, expected one of them' "$heed" generate --model lm --prompt "The cat" generate.txt

echo "text comes and goes as expected"
