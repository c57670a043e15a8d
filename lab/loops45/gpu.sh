#!/bin/bash
# Chapter 13 on an H200: copy /tmp/h2/45/tl/{base,early1,early2,prefetch,early1p,xlate,scores,timeline,timelinep} to tl45/ in the tree (11 MB; they are
# statically linked and need no build there), carry tl45, and run: bash tl45/gpu.sh. About 70 s. Results: $OUT/45-*.jsonl, 45-timeline.txt
cd tl45
./base rates > $OUT/45-rates.jsonl; ./base round > $OUT/45-round.jsonl; cat $OUT/45-r*.jsonl
for t in timeline timelinep; do timeout 20 ./$t timeline; done > $OUT/45-timeline.txt; cat $OUT/45-timeline.txt
for c in "128 16384 0" "64 16384 0" "128 2048 1" "128 4096 1" "256 2048 1" "128 4096 0"; do for v in base early1 early2 prefetch early1p xlate scores; do
  timeout 20 ./$v loops $c; done; done | tee $OUT/45-loops.jsonl
