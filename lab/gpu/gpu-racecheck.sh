#!/usr/bin/env bash
# Which reuse racecheck objects to, on one H200 (132 multiprocessors), build/cuda with 13_fp8. Each run is seconds to a minute.
# Keep the text:  bash gpu-racecheck.sh > $OUT/racecheck.txt
S="$(command -v compute-sanitizer || echo /usr/local/cuda/bin/compute-sanitizer) --tool racecheck --racecheck-report all --print-limit 4"
B="build/cuda/13_fp8/13_fp8 --check --no-causal --rung=lazy --batch=1"
r() { echo "== $*"; timeout 100 $S $B "$@" 2>&1 | grep -v "^$" | head -40; }
r --heads=1 --seq-q=64 --seq-k=64 --head-dim=256                 # only smem.index is written twice (tile, then "none left")
r --heads=1 --seq-q=64 --seq-k=250 --head-dim=256                # the same: K and V fill each place once
r --heads=300 --seq-q=64 --seq-k=64 --head-dim=64                # several tiles a block: index places are used again at D = 64
r --heads=300 --seq-q=64 --seq-k=64 --head-dim=128               # and at 128
r --heads=1 --seq-q=64 --seq-k=1000 --head-dim=64                # places of K and V are used again (8 tiles on 6), index is not
r --heads=1 --seq-q=64 --seq-k=1000 --head-dim=128               # (8 tiles on 4)
