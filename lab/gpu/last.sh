. .carry/m/common.sh; export CPLUS_INCLUDE_PATH=$PWD/.carry/cli CUDA_VISIBLE_DEVICES=0; T=$PWD; date
( timeout 35 bash .carry/45b/gpu.sh > $OUT/wide3.txt 2>&1 ) & W=$!
cp .carry/45b/forward.h 13_fp8/forward.h
cmake --preset cuda -DCMAKE_CUDA_ARCHITECTURES=90a -DPython3_EXECUTABLE="$(command -v python3)" > /tmp/cmake.log 2>&1
timeout 75 cmake --build build/cuda -j16 --target 13_fp8 13_fp8_tests > /tmp/build.log 2>&1; tail -2 /tmp/build.log; date
wait $W; cat $OUT/wide3.txt; date
REQUIRE_GPU=1 timeout 30 build/cuda/13_fp8/13_fp8_tests --gtest_filter='-*long*' > $OUT/tests.txt 2>&1; echo tests $?; tail -3 $OUT/tests.txt; date
S="$(command -v compute-sanitizer || echo /usr/local/cuda/bin/compute-sanitizer)"; B=build/cuda/13_fp8/13_fp8
for t in racecheck memcheck synccheck; do for r in sums offset; do for m in causal no-causal; do echo "$t $r $m"; done; done; done | xargs -P 12 -L 1 sh -c 'timeout 25 '$S' --tool $1 --error-exitcode=99 --print-limit 3 '$B' --check --rung=$2 --batch=1 --heads=2 --kv-heads=1 --seq-q=200 --seq-k=700 --head-dim=256 --$3 > /tmp/$1.$2.$3 2>&1; echo $1 $2 $3 $?' x
date
