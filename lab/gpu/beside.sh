. .carry/m/common.sh; T=$PWD; date
cmake --preset cuda -DCMAKE_CUDA_ARCHITECTURES=90a -DPython3_EXECUTABLE="$(command -v python3)" > /tmp/cmake.log 2>&1 || tail -5 /tmp/cmake.log
cmake --build build/cuda -j20 --target 10_hopper 10_hopper_tests > $OUT/build.log 2>&1; tail -1 $OUT/build.log; grep -E "error|FAILED" $OUT/build.log | head; date
export REQUIRE_GPU=1; S="$(command -v compute-sanitizer || echo /usr/local/cuda/bin/compute-sanitizer)"; B=build/cuda/10_hopper/10_hopper
( timeout 110 build/cuda/10_hopper/10_hopper_tests > $OUT/t10.txt 2>&1; echo "10: $? $(tail -1 $OUT/t10.txt)"; grep FAILED $OUT/t10.txt | head; date ) & P=$!
for t in memcheck synccheck; do for y in bf16 fp16; do for c in causal no-causal; do for n in "200 --seq-k=330" "520 --seq-k=520" "64 --seq-k=64" "700 --seq-k=1000"; do echo "$t $y $c $n"; done; done; done; done > /tmp/list
( xargs -a /tmp/list -P 8 -L 1 sh -c 'timeout 60 '$S' --tool $1 --error-exitcode=99 --print-limit 3 '$B' --check --rung=beside --batch=1 --heads=4 --kv-heads=2 --seq-q=$4 $5 --head-dim=64 --dtype=$2 --$3 > /tmp/s.$1.$2.$3.$4 2>&1; echo $1 $2 $3 $4 $? >> /tmp/san' x; sort /tmp/san | awk '{print $5}' | sort | uniq -c; awk '$5' /tmp/san | head -5; date ) &
wait
export PYTHONDONTWRITEBYTECODE=1
rm -f common/results/nvidia-h200/ladder-10_hopper.json; timeout 60 ./workbook dev measure ladder-10_hopper > $OUT/ladder.txt 2>&1; tail -2 $OUT/ladder.txt; cp common/results/nvidia-h200/ladder-10_hopper.json $OUT/ 2>/dev/null; date
