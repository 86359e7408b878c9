#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# How a training run behaves when something comes between: signals, closed pipes, narrow terminals, full disks, other
# data. training.sh <the heed binary>
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
set -m  # a script's own children would ignore SIGINT

"$heed" corpus --pairs 2000 --seed 1 --split corpus
quick=(--threads 1 --batch-tokens 512 --warmup 10 --rate 0.003)
train=(train --data corpus/train.tsv --dev corpus/dev.tsv "${quick[@]}")

# waits <command...>: until it works, at most a minute.
waits() {
  for _ in {1..600}; do
    "$@" 2>/dev/null && return
    sleep 0.1
  done
  fail "waited in vain for: $*"
}
# ends <code> <pid>: the process ends with the code, within a minute.
ends() {
  local code=0
  waits bash -c "! kill -0 $2" && wait "$2" || code=$?
  [[ $code == "$1" ]] || fail "exit code is $code, expected $1: $(cat err)"
}

# The first signal saves and stops, and the exit code tells which it was.
for signal in INT TERM HUP; do
  "$heed" "${train[@]}" --out $signal --steps 100000 --evaluate-every 100000 >out 2>err &
  waits grep -q '"step":10,' $signal/log.jsonl
  kill -s $signal $!
  ends $((128 + $(kill -l $signal))) $!
  says "^stopped after \d+ steps" cat err
  says "^heed train --resume $signal goes on" cat err
  says 'all steps done' "$heed" train --resume $signal --steps 12 --threads 1
done

# Those that are ignored, as under nohup, stay ignored.
(trap '' HUP; exec "$heed" "${train[@]}" --out nohup --steps 30 --evaluate-every 10) >out 2>err &
waits grep -q '"step":10,' nohup/log.jsonl
kill -s HUP $!
ends 0 $!
says '^all steps done after 30 steps' cat err

# A look at the dev set does not hold it up: thousands of greedy translations by an untrained model take far longer.
"$heed" corpus --pairs 20000 --seed 2 >long.tsv
"$heed" train --data corpus/train.tsv --dev long.tsv "${quick[@]}" --out looking --stop-on bleu --evaluate-every 1 --steps 3 >out 2>err &
waits test -s looking/checkpoint.safetensors
sleep 2
kill -s INT $!
ends 130 $!
says '^stopped after [01] steps?' cat err

# A reader that goes away stops it, too, after a save.
for stream in "--json" ""; do
  code=0
  (set +e; "$heed" "${train[@]}" --out piped$stream $stream --steps 100000 --evaluate-every 5 2>&1; echo $? >code) | head -n 4 >/dev/null
  waits test -s code
  [[ $(cat code) == 141 ]] || fail "a closed pipe gave exit code $(cat code), expected 141"
  [[ $("$heed" info piped$stream --json | grep -oP '"step": \K\d+' | head -1) != 0 ]] || fail "nothing was saved"
  rm code
done

# Going on with other data is refused, with a new rate it is not.
head -n 500 corpus/train.tsv >other.tsv
"$heed" train --resume INT --data other.tsv --steps 14 2>err && fail "other data was taken"
says '^heed: train: data has 500 pairs, .* expected 2,000 pairs, .* as the run began with' cat err
says '^rate was 0.003, and is 1e-04 from here on' "$heed" train --resume INT --rate 0.0001 --steps 1000000 --minutes 0.05 --threads 1

# While the tokenizer learns, nothing is there to be saved: it ends at once, leaves nothing, and shows that it works.
"$heed" corpus --pairs 300000 --seed 3 >large.tsv
"$heed" train --data large.tsv --dev corpus/dev.tsv --tokenizer unigram --vocabulary 1500 --out learning >out 2>err &
waits grep -q 'large.tsv: 300,000 lines' err
waits grep -q '^learning the tokenizer: 2 s' err
kill -s INT $!
sleep 1
kill -0 $! 2>/dev/null && fail "Ctrl-C did not end it while the tokenizer learns"
ends 130 $!
[[ ! -e learning ]] || fail "a run that was stopped before it began left a folder"
rm large.tsv long.tsv

# A narrow terminal: progress stays in its line, which is as wide as there is room, and has the numbers.
python3 - "$heed" "${train[@]}" --out narrow --steps 100000 <<'END' || fail "progress on 45 columns"
import fcntl, os, pty, re, select, signal, struct, sys, termios, time
pid, terminal = pty.fork()
if pid == 0:
    os.execv(sys.argv[1], sys.argv[1:])
fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 45, 0, 0))
written, stopped, deadline = "", False, time.time() + 60
while time.time() < deadline:
    if select.select([terminal], [], [], 0.2)[0]:
        try:
            written += os.read(terminal, 65536).decode()
        except OSError:  # it has ended
            break
    if not stopped and written.count("tokens/s") >= 3:
        os.kill(pid, signal.SIGINT)
        stopped = True
code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
shown = re.findall(r"\r\x1b\[K([^\r\n]*)", written)
steps = [line for line in shown if line.startswith("step ") or line.startswith("[")]
assert code == 130, code
assert len(steps) >= 3 and all(len(line) < 45 for line in steps), steps
assert all(re.search(r"step \d+  loss \d+\.\d{3}", line) for line in steps), steps
assert written.count("\n") < 12, written  # what was said at the beginning and the end
END

# Minutes in place of steps: the schedule follows the time, and the last line has BLEU where that decides.
"$heed" train --data corpus/train.tsv --dev corpus/dev.tsv --threads 1 --batch-tokens 512 --out timed --minutes 0.1 --stop-on bleu 2>err ||
  fail "$(cat err)"
says '^planned for 0.1 minutes: \d+ steps, of which \d+ are warm-up$' cat err
says '^(all steps done|out of time) after \d+ steps?, \d+:\d\d: dev loss \S+, token accuracy \S+ %, BLEU \d+\.\d\d at step \d+$' cat err
grep -q 'Highest BLEU' timed/curve.html || fail "the curve has no BLEU"
says '"steps": 0' grep '"steps"' timed/train.json

# One of each is counted as one.
printf 'The cat.\tEl gato.\n' >one.tsv
"$heed" train --data one.tsv --dev one.tsv --out one --steps 1 --threads 1 2>err || fail "$(cat err)"
says '^1 pair, 0 left out as too long, 1 batch an epoch; ' cat err
says '^all steps done after 1 step, ' cat err
echo "training: all as expected"
