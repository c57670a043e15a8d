#!/usr/bin/env bash
# sanitize.sh COMPUTE_SANITIZER TOOL PROGRAM: checks a chapter's program, at small ragged sizes, under one of
# compute-sanitizer's tools. Exits 77 (skipped) where there is no compute-sanitizer or no GPU.
set -eu
sanitizer=$1 tool=$2 program=$3
if [ ! -x "$sanitizer" ] || ! nvidia-smi -L >/dev/null 2>&1; then
  echo "NOT RUN: needs compute-sanitizer and a GPU"
  exit 77
fi
options=(--tool "$tool" --error-exitcode 1)
for problem in "--seq-q=65 --seq-k=129 --head-dim=64 --causal" "--seq-q=130 --seq-k=67 --head-dim=128 --kv-heads=1 --dtype=bf16 --causal"; do
  # shellcheck disable=SC2086  # the problem is several words
  "$sanitizer" "${options[@]}" "$program" --check --batch=1 --heads=2 $problem
done
