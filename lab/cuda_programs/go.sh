#!/bin/bash
# go.sh files..
for f in "$@"; do b=${f%.cu}; fl="-arch=sm_90 --extended-lambda -std=c++17"
 ( nice timeout 120 nvcc $fl -w -o $b.nv $f >$b.nvcc 2>&1; echo "nvcc rc $?" >>$b.nvcc ) &
 nice timeout 120 /work/main/workbook run $fl $f >$b.out 2>&1; echo "rc $?" >>$b.out; wait
 echo "=== $f"; cat $b.out; tail -4 $b.nvcc; done
