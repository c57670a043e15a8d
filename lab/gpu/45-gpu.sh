#!/usr/bin/env bash
# Chapter 13 on one H200, in the root of a copy of the tree (branch s12-45) where build/cuda has the targets 13_fp8,
# 13_fp8_tests and flash_attention_workbook (with its PyTorch operators: cmake --preset cuda
# -DPython3_EXECUTABLE="$(command -v python3)"). carry: [".carry/fp8", ".carry/45"]; .carry/45 is a copy of /tmp/h2/45-carry.
# Set WORKBOOK_COMMIT to the commit. At most about 190 s. Everything goes to $OUT, eight files; $OUT/summary.txt is the short of it.
T=$PWD; C=$T/.carry/45; export WORKBOOK_COMMIT=${WORKBOOK_COMMIT:-unknown} PYTHONDONTWRITEBYTECODE=1 REQUIRE_GPU=1
site=/tmp/cudnn_frontend; [ -d $site ] || python3 -m pip install -q --no-index --no-deps --no-compile --no-cache-dir --target $site .carry/fp8/nvidia_cudnn_frontend-*.whl
export FLASH_ATTENTION_WORKBOOK_LIBRARY=$T/build/cuda/common/capi/libflash_attention_workbook.so
S="$(command -v compute-sanitizer || echo /usr/local/cuda/bin/compute-sanitizer)"; B=build/cuda/13_fp8/13_fp8
say() { echo "[$SECONDS s] $*" | tee -a $OUT/summary.txt; }
# 0. D = 256, the loop alone, nothing beside it: the tree's halves, and three that are not in it. A few seconds each.
for v in halves quarters halves_no_turns quarters_no_turns; do timeout 20 $C/$v; done > $OUT/wide.jsonl 2>&1; cat $OUT/wide.jsonl; say wide
# 1. At once, since none of them times anything: tests, sanitizers, racecheck, accuracy
( timeout 110 build/cuda/13_fp8/13_fp8_tests --gtest_filter='-*long*' > $OUT/tests.txt 2>&1; say "13_fp8_tests: $? $(tail -1 $OUT/tests.txt)" ) &
( PYTHONPATH=$T/common/python:$T/common:$site timeout 125 python3 -B $C/accuracy.py $OUT/2026-11-30-13-accuracy.json $WORKBOOK_COMMIT > $OUT/accuracy.txt 2>&1; say "accuracy: $? $(grep -c head_dim $OUT/accuracy.txt) points (63 expected), $(tail -1 $OUT/accuracy.txt | cut -c1-300)" ) &
mkdir -p /tmp/s45
( for r in sums offset; do for t in memcheck synccheck racecheck; do for m in causal no-causal; do
    echo "$t $r-$m $B --check --rung=$r --batch=1 --heads=2 --kv-heads=1 --seq-q=200 --seq-k=700 --head-dim=256 --$m"; done; done; done ) > /tmp/s45/list
( xargs -a /tmp/s45/list -P 6 -L 1 sh -c 't=$1; n=$2; shift 2; timeout 80 '$S' --tool $t --error-exitcode=99 --print-limit 3 "$@" > /tmp/s45/$t.$n 2>&1; echo "$t $n: $?" >> /tmp/s45/all' x
  { cat /tmp/s45/all; for f in /tmp/s45/*check.*; do echo "== $f"; grep -v '^$' $f | head -40; done; } > $OUT/sanitizers.txt; say "sanitizers: $(grep -c ': 0$' /tmp/s45/all) of 12 clean (racecheck was not, before): $(grep -v ': 0$' /tmp/s45/all | tr '\n' ' ')" ) &
# racecheck's text: which reuse does it object to? (lab/gpu/gpu-racecheck.sh at 27b1ae9f)
r() { echo "== $*"; timeout 60 $S --tool racecheck --racecheck-report all --print-limit 4 $B --check --no-causal --rung=lazy --batch=1 "$@" 2>&1 | grep -v "^$" | head -40; }
( r --heads=1 --seq-q=64 --seq-k=64 --head-dim=256 > /tmp/s45/r1 & r --heads=1 --seq-q=64 --seq-k=250 --head-dim=256 > /tmp/s45/r2 &
  r --heads=300 --seq-q=64 --seq-k=64 --head-dim=64 > /tmp/s45/r3 & r --heads=300 --seq-q=64 --seq-k=64 --head-dim=128 > /tmp/s45/r4 &
  r --heads=1 --seq-q=64 --seq-k=1000 --head-dim=64 > /tmp/s45/r5 & r --heads=1 --seq-q=64 --seq-k=1000 --head-dim=128 > /tmp/s45/r6 & wait
  cat /tmp/s45/r? > $OUT/racecheck.txt; say "racecheck: $(grep -E 'RACECHECK SUMMARY' $OUT/racecheck.txt | sed 's/=* *RACECHECK SUMMARY//' | tr '\n' ';')" ) &
wait
# 2. Every how many tiles? Times of the loop, alone on the GPU, and errors
timeout 45 $C/flush > /tmp/s45/flush.txt 2>&1; code=$?
PYTHONPATH=$T/common python3 -B - <<PY
import json, os, pathlib, torch
from tools.record import result_files
rows = [json.loads(line.rstrip(",")) for line in open("/tmp/s45/flush.txt").read().split("\n") if line.strip().startswith("{")]
for row in rows: row.pop("sums")
result_files.write(pathlib.Path(os.environ["OUT"], "2026-11-30-13-flush.json"), {"context": {
    "commit": os.environ["WORKBOOK_COMMIT"], "date": "2026-11-30", "gpu": torch.cuda.get_device_name(),
    "what": "the loop of sums, where O is added up in fp32 after every so many tiles of 128 keys; 0: never, which is held",
    "tflops": "of the loop alone, tensors in eight bits being there: launch by launch (median of 21, 256 MB written before each) and back to back (60); 16,384 tokens, H D = 2048",
    "errors": "norm of the error of O over that of O, against fp64 of the bf16 inputs, 8 heads of 32 rows, no mask; mean1: V is 1 + N(0, 1) / 2; normal: N(0, 1)"}, "points": rows})
PY
say "flush: $code, $(grep -c head_dim /tmp/s45/flush.txt) rows (14 expected) $(grep failed /tmp/s45/flush.txt | head -2)"; cat /tmp/s45/flush.txt | cut -c1-500
cat $OUT/summary.txt; ls -la $OUT
