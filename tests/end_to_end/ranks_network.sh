#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Ranks on machines of their own, as far as one machine can have them: network namespaces on a bridge of a limited rate.
# ranks_network.sh <the heed binary> [mbit/s, by default 1000] [another command of heed, for 2 ranks: bench ranks]
command -v mpirun >/dev/null || { echo "skipped: mpirun is not there" && exit 77; }
command -v ip >/dev/null && command -v tc >/dev/null || { echo "skipped: ip and tc are not there (iproute2)" && exit 77; }
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
rate=${2:-1000}
[[ -f ${heed%/*}/libheed_mpi.so ]] || { echo "skipped: heed was built without MPI" && exit 77; }
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
name=heed$$ hosts=4 made=0

clean() {
  for ((i = 1; i <= hosts; i++)); do ip netns del $name-$i 2>/dev/null || true; done
  ip link del $name 2>/dev/null || true
  rm -rf "$folder"
}
trap clean EXIT
network() {
  ip link add $name type bridge && ip link set $name up || return 1
  for ((i = 1; i <= hosts; i++)); do
    ip netns add $name-$i &&
      ip link add $name.$i type veth peer name eth0 netns $name-$i &&
      ip link set $name.$i master $name up &&
      ip -n $name-$i address add 10.77.0.$i/24 dev eth0 &&
      ip -n $name-$i link set lo up && ip -n $name-$i link set eth0 up &&
      ip netns exec $name-$i tc qdisc add dev eth0 root tbf rate "${rate}mbit" burst 256kb latency 50ms || return 1
    made=$i
  done
}
network 2>error || { echo "skipped: network namespaces cannot be made here: $(head -1 error)" && exit 77; }
# What mpirun begins a host with, in place of ssh: <host> <command...>.
cat >agent <<END
#!/usr/bin/env bash
host=\$1
shift
exec ip netns exec $name-\${host##*.} bash -c "\$*"
END
chmod +x agent
on() {  # on <ranks> <arguments of heed...>: each rank is on a host of its own
  local list=10.77.0.1
  for ((i = 2; i <= $1; i++)); do list+=,10.77.0.$i; done
  ip netns exec $name-1 mpirun -n "$1" -H "$list" --bind-to none --mca plm_rsh_agent "$folder/agent" \
    --mca btl tcp,self --mca btl_tcp_if_include 10.77.0.0/24 --mca oob_tcp_if_include 10.77.0.0/24 "$heed" "${@:2}"
}

if (($# > 2)); then
  on 2 "${@:3}"
  exit
fi
"$heed" corpus --pairs 300 --seed 1 --split corpus
train=(train --data corpus/train.tsv --dev corpus/dev.tsv --threads 1 --batch-tokens 256 --tokenizer words
  --accumulate 4 --sum-order tree --steps 3)
"$heed" "${train[@]}" --out alone 2>/dev/null
for ranks in 2 3 4; do
  on $ranks "${train[@]}" --out "$folder/ranks$ranks" >out 2>&1 || fail "$ranks ranks: $(cat out)"
  for file in model.safetensors checkpoint.safetensors; do
    cmp -s alone/$file ranks$ranks/$file || fail "$ranks ranks in $made namespaces: $file is not that of one process"
  done
done
sent=$(ip -n $name-1 -s link show eth0 | awk '/TX:/ {getline; print $1}')
((sent > 1000000)) || fail "only $sent bytes went over the bridge"
echo "the same bits over a network of $rate mbit/s; the first host sent $sent bytes"
