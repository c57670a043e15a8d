. .carry/m/common.sh
date
site=/tmp/cudnn_frontend
python3 -m pip install -q --no-index --no-deps --no-compile --no-cache-dir --target $site .carry/fp8/nvidia_cudnn_frontend-*.whl
( cd .carry/p41/common/tests/user_files/planted && timeout 200 python3 sanitized.py > $OUT/san.txt 2>&1 ) &
( export CUDA_VISIBLE_DEVICES=1 PYTHONPATH=$PWD/common PYTHONDONTWRITEBYTECODE=1; C=$PWD/.carry
  timeout -k 5 130 python3 $C/joules/joules.py $OUT/2026-11-29-10-joules.json 1.0 e2583f6476f7 > $OUT/joules.txt 2>&1
  date
  for d in forward backward; do timeout -k 5 60 python3 $C/clusters/clusters.py $OUT/2026-11-29-10-clusters-$d.json e2583f6476f7 $d > $OUT/clusters-$d.txt 2>&1; done; date ) > $OUT/g1a.txt 2>&1 &
J=$!
cmake --preset cuda -DCMAKE_CUDA_ARCHITECTURES=90a -DPython3_EXECUTABLE="$(command -v python3)" > $OUT/cmake.log 2>&1 || tail -20 $OUT/cmake.log
time cmake --build build/cuda -j25 > $OUT/build.log 2>&1; tail -1 $OUT/build.log; grep -E "error|FAILED" $OUT/build.log | head
( export CUDA_VISIBLE_DEVICES=0 PYTHONPATH=$site
  for s in fp8 fp8-b2b; do timeout 140 ./workbook dev measure $s; cp $R/nvidia-h200/$s.json $OUT/; date; done ) > $OUT/g0.txt 2>&1 &
G=$!
( while kill -0 $J 2>/dev/null; do sleep 1; done; export CUDA_VISIBLE_DEVICES=1 REQUIRE_GPU=1
  date; timeout 120 build/cuda/13_fp8/13_fp8_tests --gtest_filter=-*long* > $OUT/fp8_tests.txt 2>&1; tail -4 $OUT/fp8_tests.txt; date
  timeout 40 build/cuda/common/tests/capi/capi_tests --gtest_filter='*E4m3*:*NaNOf*' 2>&1 | tail -4
  ( export FLASH_ATTENTION_WORKBOOK_LIBRARY=$PWD/build/cuda/common/capi/libflash_attention_workbook.so PYTHONPATH=$PWD/common/python:$PWD/common
  timeout 60 python3 -B common/tests/python/with_pytorch_test.py EightBits Refusals.test_tensors_in_e4m3 2>&1 | tail -4 ); date
  timeout 170 taskset -c 8-31 python3 .carry/m/some_mutants.py gpu > $OUT/mutants.txt 2>&1; tail -c 300 $OUT/mutants.txt; date ) > $OUT/g1.txt 2>&1 &
wait $G
for i in $(seq 1 24); do [ $SECONDS -gt 455 ] && break; kill -0 $! 2>/dev/null || break; sleep 5; done
cat $OUT/g1a.txt $OUT/g1.txt; tail -30 $OUT/g0.txt; date
