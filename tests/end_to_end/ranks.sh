#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Training on several ranks, which are processes here: the same bits on any number of them and on one process, going on
# with another number, a rank that is killed, and what is said where something does not fit.
# ranks.sh <the heed binary> [kills, by default 2]
command -v mpirun >/dev/null || { echo "skipped: mpirun is not there" && exit 77; }
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
kills=${2:-2}
[[ -f ${heed%/*}/libheed_mpi.so ]] || { echo "skipped: heed was built without MPI" && exit 77; }
[[ -z ${OMPI_COMM_WORLD_SIZE:-} ]] || fail "started by mpirun itself"
export PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe  # newer mpiruns; --oversubscribe is that of Open MPI 4
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
on() {  # on <ranks> <arguments of heed...>
  mpirun --oversubscribe --bind-to none -n "$1" "$heed" "${@:2}"
}
same() {  # same <folder> <folder>: the model and the checkpoint are
  for file in model.safetensors checkpoint.safetensors; do
    cmp -s "$1/$file" "$2/$file" || fail "$1/$file and $2/$file differ"
  done
}

"$heed" corpus --pairs 600 --seed 1 --split corpus
head -2 corpus/dev.tsv | cut -f1 >sentences
train=(train --data corpus/train.tsv --dev corpus/dev.tsv --threads 1 --batch-tokens 256 --tokenizer words
  --preset transformer-tiny --accumulate 4 --sum-order tree --schedule constant --evaluate-every 3)

# The same bits on one process, and on 1 to 4 ranks.
says 'all steps done after 9 steps' "$heed" "${train[@]}" --steps 9 --out alone
for ranks in 1 2 3 4; do
  on $ranks "${train[@]}" --steps 9 --out ranks$ranks >out 2>&1 || fail "$ranks ranks: $(cat out)"
  [[ $(grep -c 'all steps done after 9 steps' out) == 1 ]] || fail "$ranks ranks did not report once: $(cat out)"
  same alone ranks$ranks
done
# Without --sum-order, several ranks add by a tree.
on 2 "${train[@]/tree/sequence}" --steps 9 --out sequence >out 2>&1 || fail "sequence: $(cat out)"
same alone sequence
says 'all steps done' on 2 "${train[@]/tree/any}" --steps 9 --out any

# Going on with other numbers of ranks is as if nothing had been stopped.
says 'all steps done after 3 steps' on 4 "${train[@]}" --steps 3 --out parts
says 'all steps done after 6 steps' on 2 train --resume parts --steps 6 --threads 1
says 'all steps done after 9 steps' on 3 train --resume parts --steps 9 --threads 1
same parts alone

# A rank that dies ends the job within seconds; what was saved is whole, and the run goes on to the same bits.
says 'all steps done after 60 steps' "$heed" "${train[@]}" --steps 60 --out never_killed
says 'out of time after 1 step' on 2 "${train[@]}" --steps 60 --minutes 0.00001 --out begun
step_of() { head -c 2000 "$1/checkpoint.safetensors" | grep -aoP '"step":"\K\d+'; }
killed=0 ended=0
cp -r begun killed_run
for ((n = 1; killed < kills; n++)); do
  ((n <= 2 * kills + 5)) || fail "only $killed of $n runs could be killed"
  if [[ $(step_of killed_run) == 60 ]]; then  # it has come to its end by now: another one
    same killed_run never_killed
    rm -r killed_run && cp -r begun killed_run
  fi
  before=$(step_of killed_run)
  (exec mpirun --oversubscribe --bind-to none -n 3 "$heed" train --resume killed_run --minutes 10 --threads 1) >out 2>&1 &
  job=$!
  ranks=()
  for ((i = 0; i < 200 && ${#ranks[@]} < 3; i++)); do
    sleep 0.05
    mapfile -t ranks < <(pgrep -P "$job" || true)
  done
  ((${#ranks[@]} == 3)) || fail "kill $n: 3 ranks did not start: $(cat out)"
  sleep $((RANDOM % 3)).$((RANDOM % 10))
  begin=$SECONDS code=0
  if kill -9 "${ranks[RANDOM % 3]}" 2>/dev/null; then killed=$((killed + 1)); else ended=$((ended + 1)); fi
  wait $job || code=$?
  ((SECONDS - begin <= 10)) || fail "kill $n: the job ended after $((SECONDS - begin)) seconds"
  [[ $code == 0 ]] || grep -q 'exited on signal 9' out || fail "kill $n: nothing tells why: $(cat out)"
  for ((i = 0; i < 30; i++)); do  # one that is over may wait for somebody to look at it
    running=$(ps -o stat=,args= -p "$(IFS=, && echo "${ranks[*]}")" | grep -v '^Z' || true)
    [[ $running ]] || break
    sleep 0.1
  done
  [[ -z $running ]] || fail "kill $n: still there: $running"
  [[ $(step_of killed_run) -ge $before ]] || fail "kill $n: step $(step_of killed_run) came after step $before"
  "$heed" translate --model killed_run --threads 1 sentences >/dev/null || fail "kill $n: the model does not open"
done
says 'all steps done after 60 steps' on 2 train --resume killed_run --minutes 10 --threads 1
same killed_run never_killed
echo "$killed kills of a rank, $ended runs that ended before; nothing is lost"

# What is said once, and ends all.
tells() {  # tells <regex> <command...>: it fails, and one line of heed's has the expression
  local expected=$1 code=0
  shift
  "$@" >out 2>&1 || code=$?
  [[ $code != 0 ]] || fail "$* ended well: $(cat out)"
  [[ $(grep -c '^heed: ' out) == 1 ]] || fail "$* said it more than once: $(cat out)"
  grep -qP -- "$expected" out || fail "$* said '$(cat out)', expected '$expected'"
}
tells '^heed: --out is missing' on 3 train --data corpus/train.tsv
tells '^heed: not-there.tsv: ' on 3 "${train[@]/corpus\/train.tsv/not-there.tsv}" --out none
tells '^heed: train: accumulate is 4 with 5 ranks, expected a batch for each of them' on 5 "${train[@]}" --out none
tells "^heed: folder 'ranks2' holds a run already" on 2 "${train[@]}" --out ranks2
[[ ! -e none ]] || fail "a run that could not begin left its folder"
tells "^heed: ranks differ: seed is '1' on rank 0 and '2' on rank 1" mpirun --oversubscribe \
  -n 1 "$heed" "${train[@]}" --seed 1 --out differ : -n 1 "$heed" "${train[@]}" --seed 2 --out differ
head -100 corpus/train.tsv >short.tsv
tells "^heed: ranks differ: what data has is '[^']*' on rank 0 and '100 pairs" mpirun --oversubscribe \
  -n 1 "$heed" "${train[@]}" --out differ : -n 1 "$heed" "${train[@]/corpus\/train.tsv/short.tsv}" --out differ
export HEED_MPI_MODULE=/not/there.so
tells '^heed: this heed has no MPI, expected its module' mpirun --oversubscribe -n 1 -x HEED_MPI_MODULE "$heed" "${train[@]}" --out none : -n 1 sleep 20
says 'all steps done after 1 step' on 1 "${train[@]}" --steps 1 --out one
echo "the same bits on any number of ranks"
