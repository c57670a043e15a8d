. .carry/m/common.sh
mkdir -p /tmp/fa4; cp .carry/fa4/* /tmp/fa4/
touch /tmp/begin
date; nvidia-smi -L; nproc
cmake --preset cuda -DCMAKE_CUDA_ARCHITECTURES=90a > $OUT/cmake.log 2>&1 || tail -20 $OUT/cmake.log
time cmake --build build/cuda -j30 > $OUT/build.log 2>&1; tail -1 $OUT/build.log
LIM=$((SECONDS+400))
( export CUDA_VISIBLE_DEVICES=1; date; timeout 430 ./workbook dev mutants --device gpu --write > $OUT/mutants.log 2>&1; echo mutants $?; date; cp common/tests/mutants/README.md $OUT/mutants.md ) > $OUT/g1.txt 2>&1 &
M=$!
( export CUDA_VISIBLE_DEVICES=0
 time ./workbook dev measure decode-bf16 decode-fp16 memory profile-10
 date
 time timeout 150 python3 common/python/examples/gpt.py --out $OUT/gpt.json > $OUT/gpt.log 2>&1; tail -2 $OUT/gpt.log
 for w in "--window 128" "--packed"; do timeout 60 python3 common/python/examples/gpt.py $w --out "$OUT/gpt$(echo $w | tr -d ' -').json" > $OUT/gptw.log 2>&1; tail -1 $OUT/gptw.log; done
 P=build/cuda/10_hopper/10_hopper
 for D in 64 128; do for rung in ahead rounds; do for c in --causal --no-causal; do
  [ $SECONDS -gt $((LIM-20)) ] && break
  echo "== $D $rung $c"; timeout 25 ncu --csv --cache-control all --metrics gpu__time_duration.sum,dram__bytes_read.sum,lts__t_sectors_op_read.sum,lts__t_sectors_op_read_lookup_miss.sum,lts__t_sectors_op_read_lookup_hit.sum -k regex:forward --launch-skip 2 --launch-count 2 $P --rung=$rung --direction=forward --batch=1 --heads=$((2048/D)) --head-dim=$D --seq-q=16384 $c --dtype=bf16 --benchmark_min_time=0.01s 2>/dev/null | awk -F'","' '/__/{print substr($5,1,20),$(NF-2),$NF}'
 done; done; done ) > $OUT/g0.txt 2>&1
wait $M
cat $OUT/g0.txt $OUT/g1.txt | tail -70; tail -15 $OUT/mutants.log
find $R -newer /tmp/begin -type f | tar czf $OUT/results.tgz -T -
find $R -newer /tmp/begin -type f; date
