#!/usr/bin/env bash
# 43: the backward with windows (one H200). carry: [".carry/43s17", ".carry/fp8"], with FlashAttention-4 installed before and
# the library built (target flash_attention_workbook). Parts, each by itself or several in a call:
#   bash .carry/43s17/gpu.sh rounds    30 s, needs nothing but the GPU: heads in a round, and prefetching, bits compared
#   bash .carry/43s17/gpu.sh windows   60 to 75 s: time over tiles, ours, FlashAttention-4, cuDNN
#   bash .carry/43s17/gpu.sh cudnn     20 to 30 s: cuDNN's window alone in the sweep `extras`, forward and backward, is it right?
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
site=/tmp/cudnn_frontend
frontend() {
  [ -d $site ] || python3 -m pip install -q --no-index --no-deps --no-compile --no-cache-dir --target $site .carry/fp8/nvidia_cudnn_frontend-*.whl
  export PYTHONPATH=$site${PYTHONPATH:+:$PYTHONPATH}
}
for part in "$@"; do
  begin=$SECONDS
  case $part in
  rounds)
    cp "$here/window_rounds" /tmp/window_rounds && chmod +x /tmp/window_rounds
    for d in 128 64; do for window in 1024 256 4096; do
      timeout 20 /tmp/window_rounds $d $window 31 1 2 4 8 16 32 | tee -a "$OUT/rounds.jsonl"
    done; done ;;
  windows)
    frontend
    timeout 170 python3 -B "$here/windows.py" . "$OUT/windows.json" 2>&1 | tee "$OUT/windows.txt" | grep -v ^progress ;;
  cudnn)
    frontend
    for direction in forward backward; do
      timeout 90 ./workbook dev peers 12 --sweep=extras --dtype=bf16 --direction=$direction --patience=0.3 \
        --only=CUDNN-WINDOW,12_variants,FLASH --out="$OUT/cudnn-$direction.json" 2>&1 | tail -25
    done ;;
  esac
  echo "$part: $((SECONDS - begin)) s"
done
