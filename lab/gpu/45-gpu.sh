#!/bin/bash
# Chapter 13 on a GPU, from the root of the tree after the merge: 45-gpu.sh FOLDER_OF_45-loops.cu. About 5 minutes, most of it nvcc's.
# $OUT/13-tests.txt, 13-large.txt, 13-loops.jsonl, 13-loops-first-twice.jsonl
set -u
from=${1:-/tmp/h2} OUT=${OUT:-/tmp}
build() {  # TREE PROGRAM
  (cd $1 && nvcc -gencode arch=compute_90a,code=sm_90a -std=c++20 -O3 -Icommon -I. -I13_fp8 -o $2 $from/45-loops.cu common/device/*.cc \
     common/attention/*.cc common/attention/*.cu)
}
build . /tmp/loops &
# The same with the first tile's weights made twice, as before bc887229: what remedy (a) is worth.
rm -rf /tmp/twice && mkdir /tmp/twice && cp -r common 13_fp8 /tmp/twice
sed -i 's/if (R::by_sums && j > 0) {/if constexpr (R::by_sums) {/; s/if (make_x(0) || R::by_sums)/if (make_x(0))/' /tmp/twice/13_fp8/forward.h
build /tmp/twice /tmp/loops_twice &
cmake --preset cuda > /dev/null && cmake --build build/cuda --target 13_fp8 13_fp8_tests -j > /tmp/build.log 2>&1 || tail -20 /tmp/build.log
wait
(find build/cuda -name 13_fp8_tests -type f | head -1 | xargs -I{} {} --gtest_filter=-*long) 2>&1 | tail -40 | tee $OUT/13-tests.txt
# Blocks with several tiles of rows, in which `joined` joins: right and the same in each launch?
for d in 64 128 256; do for mask in --causal --no-causal; do for n in "--seq-q=4096" "--seq-q=3000 --seq-k=1111"; do
  build/cuda/13_fp8/13_fp8 --check --rung=joined --batch=2 --heads=16 --kv-heads=4 --head-dim=$d $mask $n
done; done; done 2>&1 | tee $OUT/13-large.txt
for d in 64 128; do for rung in sums offset; do
  build/cuda/13_fp8/13_fp8 --check --rung=$rung --batch=2 --heads=16 --head-dim=$d --causal --seq-q=4096
  build/cuda/13_fp8/13_fp8 --check --rung=$rung --inputs=long_sum --no-causal --heads=1 --seq-q=2 --seq-k=8000 --head-dim=$d
done; done 2>&1 | tee -a $OUT/13-large.txt
build/cuda/13_fp8/13_fp8 --check --rung=joined --inputs=long_sum --no-causal --heads=1 --seq-q=2 --seq-k=8000   # has to FAIL
# D, N, batch, causal: 16,384 tokens each
for program in loops loops_twice; do
  out=$OUT/13-loops.jsonl; [ $program = loops ] || out=$OUT/13-loops-first-twice.jsonl
  for d in 128 64 256; do for n in "16384 1" "4096 4" "2048 8" "8192 2"; do for causal in 0 1; do
    [ $program = loops ] || [ "$n" = "4096 4" ] || [ "$n" = "16384 1" ] || continue
    /tmp/$program $d $n $causal
  done; done; done > $out; cat $out
done
