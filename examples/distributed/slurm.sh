#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A corpus translated by a Slurm array job: a task is a shard. A task that is killed or preempted is queued again and goes
# on where it was; sending the whole job again does only what is missing.
#
#   job=$(sbatch --parsable examples/distributed/slurm.sh model corpus.txt work)
#   sbatch --dependency=afterok:$job --wrap 'heed merge work --out translations.txt'
#
# The number of shards is that of the array, and stays what it was: shards 7 and 9 alone are --array=7,9.
#SBATCH --job-name=heed-shards
#SBATCH --array=1-64%16
#SBATCH --cpus-per-task=4
#SBATCH --mem=4G
#SBATCH --time=04:00:00
#SBATCH --requeue
#SBATCH --open-mode=append
set -euo pipefail
if [[ $# != 3 ]]; then
  echo "slurm.sh: came with $# arguments, expected <model> <corpus> <folder on a shared file system>" >&2
  exit 2
fi
shards=${SHARDS:-64}

exec heed translate --model "$1" --beam 4 --threads "${SLURM_CPUS_PER_TASK:-1}" \
  --shard "$SLURM_ARRAY_TASK_ID/$shards" --in "$2" --out "$3"
