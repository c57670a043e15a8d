. .carry/m/common.sh
date; C=$PWD/.carry; cp .carry/fa4/* /tmp/fa4/; touch /tmp/begin
( bash $C/joules/build.sh $C/clusters/src/common 10 > $OUT/jb.txt 2>&1; bash $C/clusters/build.sh $C/clusters/src 14 > $OUT/cb.txt 2>&1; date >> $OUT/cb.txt ) &
B=$!
cmake --preset cuda -DCMAKE_CUDA_ARCHITECTURES=90a -DPython3_EXECUTABLE="$(command -v python3)" > $OUT/cmake.log 2>&1 || tail -20 $OUT/cmake.log
time cmake --build build/cuda -j28 > $OUT/build.log 2>&1; tail -1 $OUT/build.log; grep -E "error|FAILED" $OUT/build.log | head
while kill -0 $B 2>/dev/null; do sleep 1; done
( compute-sanitizer --tool memcheck --error-exitcode=99 build/cuda/common/tests/mutants/kill_matrix launch no_sink 2>&1 | head -80 > $OUT/memcheck-no_sink.txt
  compute-sanitizer --tool memcheck --error-exitcode=99 build/cuda/common/tests/mutants/kill_matrix launch own_scale 2>&1 | tail -5 > $OUT/memcheck-own_scale.txt
  setsid nohup bash .carry/m/mutants.sh /tmp/mut 10 > /tmp/mut.log 2>&1 ) &
export PYTHONPATH=$PWD/common PYTHONDONTWRITEBYTECODE=1
( export CUDA_VISIBLE_DEVICES=1
  timeout -k 5 150 python3 $C/joules/joules.py $OUT/joules.json 1.0 $WORKBOOK_COMMIT > $OUT/joules.txt 2>&1; date
  test -f $C/v42/go.sh && timeout -k 5 100 bash $C/v42/go.sh > $OUT/v42.txt 2>&1; date ) > $OUT/g1.txt 2>&1 &
J=$!
( export CUDA_VISIBLE_DEVICES=0
  for d in forward backward; do timeout -k 5 80 python3 $C/clusters/clusters.py $OUT/clusters-$d.json $WORKBOOK_COMMIT $d > $OUT/clusters-$d.txt 2>&1; date; done ) > $OUT/g0.txt 2>&1 &
wait $! $J
cat $OUT/jb.txt $OUT/cb.txt $OUT/g0.txt $OUT/g1.txt; tail -3 $OUT/joules.txt $OUT/clusters-*.txt; tail -20 $OUT/v42.txt; date
cp -r common/results/nvidia-h200 /dev/null; pack
