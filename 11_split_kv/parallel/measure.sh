#!/bin/sh
# measure.sh GPUS SECONDS DIRECTORY: the measurement of ../several_gpus.md on that many GPUs of this host, in about so many seconds.
# The program has two thirds of them: with all GPUs and chapter 08's kernels (ring-GPUS.json), a third as long with chapter 10's where
# they run (hopper-GPUS.json), and with 2, 4, .. of the GPUs (ring-2.json ..). A quarter goes to PyTorch's context parallelism
# (pytorch.json; without PyTorch it is left out), and a few seconds at the end to a rank that is killed (killed.txt). Over several hosts,
# start 11_split_kv_ring --measure with your own mpirun.
set -eu
if [ $# -ne 3 ]; then
  sed -n '2,7s/^# //p' "$0" >&2
  exit 2
fi
gpus=$1 seconds=$2 directory=$3
root=$(cd "$(dirname "$0")/../.." && pwd)
program=$root/build/cuda/11_split_kv/parallel/11_split_kv_ring
export NCCL_NVLS_ENABLE=0                                                # multicast changes no message between two GPUs
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1         # as in containers
# NCCL's threads beside ours, not on the one core that Open MPI gives each of two ranks
export OMPI_MCA_hwloc_base_binding_policy=none PRTE_MCA_hwloc_default_binding_policy=none
mkdir -p "$directory"

fewer="" runs=4  # the run with all GPUs counts three times
for n in 2 4 8 16; do
  [ $n -ge "$gpus" ] || fewer="$fewer $n" runs=$((runs + 1))
done
each=$((seconds * 2 / 3 / runs))
mpirun -n "$gpus" "$program" --measure="$directory/ring-$gpus.json" --seconds=$((3 * each))
if nvidia-smi --query-gpu=compute_cap --format=csv,noheader | grep -q '^9\.0'; then
  mpirun -n "$gpus" "$program" --measure="$directory/hopper-$gpus.json" --seconds=$each --kernel=10_hopper
fi
for n in $fewer; do
  mpirun -n "$n" "$program" --measure="$directory/ring-$n.json" --seconds=$each
done

if python3 -c "import torch" 2> /dev/null; then
  python3 -m torch.distributed.run --nproc-per-node "$gpus" "$root/11_split_kv/parallel/pytorch.py" \
    --seconds $((seconds / 4)) --out "$directory/pytorch.json"
fi

# The last rank dies; its launcher sees nothing of it. The others end within twice their patience, and name it.
[ "$gpus" -gt 1 ] || exit 0
endless="--measure=/dev/null --seconds=60 --patience=2"
begin=$(date +%s)
timeout 40 mpirun -q -n $((gpus - 1)) "$program" $endless \
  : -n 1 "$root/11_split_kv/parallel/rank_that_gets.sh" KILL 6 "$program" $endless > "$directory/killed.txt" 2>&1 || true
grep -e "has not" "$directory/killed.txt"
echo "ended $(($(date +%s) - begin)) seconds after the start, 6 of them before the rank was killed" | tee -a "$directory/killed.txt"
