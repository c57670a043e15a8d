#!/usr/bin/env bash
# On a machine with a GPU, nvcc and ncu: what Nsight Compute counts of wild.cu beside the engine's counts, in $OUT/wild.json.
# About 40 s.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
python3 -B wild.py compare "${OUT:-.}/wild.json"
