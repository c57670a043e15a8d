. .carry/m/common.sh
date; C=$PWD/.carry
( bash $C/joules/build.sh $C/clusters/src/common 10 > $OUT/jb.txt 2>&1; bash $C/clusters/build.sh $C/clusters/src 14 > $OUT/cb.txt 2>&1; date >> $OUT/cb.txt ) &
B=$!
site=/tmp/cudnn_frontend
python3 -m pip install -q --no-index --no-deps --no-compile --no-cache-dir --target $site .carry/fp8/nvidia_cudnn_frontend-*.whl
cmake --preset cuda -DCMAKE_CUDA_ARCHITECTURES=90a -DPython3_EXECUTABLE="$(command -v python3)" > $OUT/cmake.log 2>&1 || tail -20 $OUT/cmake.log
time cmake --build build/cuda -j28 > $OUT/build.log 2>&1; tail -1 $OUT/build.log; grep -E "error|FAILED" $OUT/build.log | head
( export CUDA_VISIBLE_DEVICES=0 PYTHONPATH=$site
  for s in fp8 fp8-b2b; do timeout 140 ./workbook dev measure $s; cp $R/nvidia-h200/$s.json $OUT/; date; done ) > $OUT/g0.txt 2>&1 &
G=$!
( export CUDA_VISIBLE_DEVICES=1 PYTHONDONTWRITEBYTECODE=1; wait $B 2>/dev/null; while kill -0 $B 2>/dev/null; do sleep 1; done; date
  export PYTHONPATH=$PWD/common
  timeout -k 5 150 python3 $C/joules/joules.py $OUT/joules.json 1.0 de72a64021f5 > $OUT/joules.txt 2>&1; date
  for d in forward backward; do timeout -k 5 70 python3 $C/clusters/clusters.py $OUT/clusters-$d.json de72a64021f5 $d > $OUT/clusters-$d.txt 2>&1; date; done
) > $OUT/g1.txt 2>&1 &
J=$!
wait $G
( CUDA_VISIBLE_DEVICES=0 REQUIRE_GPU=1 timeout 60 build/cuda/13_fp8/13_fp8_tests --gtest_filter=-*long* 2>&1 | tail -4; CUDA_VISIBLE_DEVICES=0 bash .carry/m/mutants.sh /tmp/mut 20 > $OUT/mut.txt 2>&1 ) &
M=$!
wait $J
while kill -0 $M 2>/dev/null && [ $SECONDS -lt ${1:-400} ]; do sleep 2; done
ls /tmp/mut | grep -c tests; ls /tmp/mut | wc -l
cat $OUT/jb.txt $OUT/cb.txt $OUT/g1.txt; tail -40 $OUT/g0.txt; date
cd /tmp && tar czf $OUT/mut.tgz mut; cd $OUT; mkdir -p /tmp/o; tar czf /tmp/o/all.tgz *; rm -rf $OUT/*; cp /tmp/o/all.tgz $OUT/
