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
says 'all steps done after 24 steps' "$heed" "${train[@]}" --steps 24 --out never_killed
says 'all steps done after 24 steps|out of time' on 2 "${train[@]}" --steps 24 --minutes 0.0001 --out killed
step_of() { head -c 2000 "$1/checkpoint.safetensors" | grep -aoP '"step":"\K\d+'; }
for ((n = 1; n <= kills; n++)); do
  on 3 train --resume killed --steps 24 --minutes 10 --threads 1 >out 2>&1 &
  job=$!
  ranks=()
  for ((i = 0; i < 200 && ${#ranks[@]} < 3; i++)); do
    sleep 0.05
    mapfile -t ranks < <(pgrep -P "$job" -f "train --resume killed" || true)
  done
  sleep 0.$((RANDOM % 10))$((RANDOM % 10))
  began=$SECONDS
  if ((${#ranks[@]})) && kill -9 "${ranks[RANDOM % ${#ranks[@]}]}" 2>/dev/null; then
    code=0
    wait $job || code=$?
    ((SECONDS - began <= 15)) || fail "kill $n: the job ended after $((SECONDS - began)) seconds"
    [[ $code != 0 ]] || fail "kill $n: the job ended well"
    grep -qi 'signal 9\|killed' out || fail "kill $n: nothing tells why: $(cat out)"
  else
    wait $job || true
  fi
  "$heed" translate --model killed --threads 1 <(cut -f1 corpus/dev.tsv | head -2) >/dev/null || fail "kill $n: the model does not open"
  for left in "${ranks[@]}"; do
    if kill -0 "$left" 2>/dev/null; then sleep 2; fi
    if kill -0 "$left" 2>/dev/null; then fail "kill $n: rank $left is still there"; fi
  done
done
says 'all steps done after 24 steps' on 2 train --resume killed --steps 24 --minutes 10 --threads 1
same killed never_killed
echo "$kills kills, nothing is lost"

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
