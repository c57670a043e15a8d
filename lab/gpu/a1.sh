. .carry/m/common.sh
date; C=$PWD/.carry; T=$PWD
( bash $C/lib/build.sh $PWD 10 > $OUT/lib.txt 2>&1; date >> $OUT/lib.txt
  export CUDA_VISIBLE_DEVICES=0 PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$T/common
  for k in bf16 fp16; do timeout -k 5 110 python3 $C/lib/columns.py $OUT/rungs-$k.json $WORKBOOK_COMMIT backward $k > $OUT/rungs-$k.txt 2>&1; date; done ) > $OUT/g0.txt 2>&1 & G=$!
cmake --preset cuda -DCMAKE_CUDA_ARCHITECTURES=90a -DPython3_EXECUTABLE="$(command -v python3)" > $OUT/cmake.log 2>&1 || tail -20 $OUT/cmake.log
time cmake --build build/cuda -j24 > $OUT/build.log 2>&1; tail -1 $OUT/build.log; grep -E "error|FAILED" $OUT/build.log | head
export CUDA_VISIBLE_DEVICES=1 PYTHONDONTWRITEBYTECODE=1 REQUIRE_GPU=1
timeout 60 build/cuda/common/tests/device/device_hopper_tests > $OUT/hopper.txt 2>&1; echo hopper $?; tail -3 $OUT/hopper.txt; date
timeout 60 build/cuda/common/tests/device/device_tests > $OUT/device.txt 2>&1; echo device $?; tail -3 $OUT/device.txt; date
timeout 160 build/cuda/13_fp8/13_fp8_tests > $OUT/t13.txt 2>&1; echo t13 $?; tail -4 $OUT/t13.txt; date
timeout 100 ./workbook dev machine --preset cuda --out $OUT/machine.json > $OUT/machine.txt 2>&1; echo machine $?; tail -30 $OUT/machine.txt; date
wait $G; cat $OUT/g0.txt $OUT/lib.txt; date
timeout 120 build/cuda/10_hopper/10_hopper_tests --gtest_filter=-*long* > $OUT/t10.txt 2>&1; echo t10 $?; tail -4 $OUT/t10.txt; date
mkdir -p /tmp/s; X=build/cuda/10_hopper/10_hopper; Y=build/cuda/13_fp8/13_fp8
( for t in memcheck racecheck synccheck initcheck; do
   for d in 64 128; do for r in columns deferred; do for c in causal no-causal; do echo "$t 10-$r-$d-$c $X --rung=$r --direction=backward --batch=1 --heads=2 --kv-heads=1 --seq-q=200 --seq-k=330 --head-dim=$d --$c --check"; done; done; done
   for d in 64 128 256; do for r in $($Y --help >/dev/null; grep -oE '"[a-z]+"' $C/m/rungs13 | tr -d '"'); do echo "$t 13-$r-$d $Y --rung=$r --batch=1 --heads=2 --kv-heads=1 --seq-q=200 --seq-k=330 --head-dim=$d --check"; done; done; done ) > /tmp/s/list
wc -l < /tmp/s/list
xargs -a /tmp/s/list -P 16 -L 1 sh -c 't=$1; n=$2; shift 2; timeout 60 compute-sanitizer --tool $t --error-exitcode=99 "$@" > /tmp/s/$n.$t 2>&1; echo $n $t $? >> /tmp/s/all' x & S=$!
for i in $(seq 100); do kill -0 $S 2>/dev/null || break; [ $SECONDS -gt 560 ] && break; sleep 1; done
wc -l < /tmp/s/all; awk '$3' /tmp/s/all | head -40; cp /tmp/s/all $OUT/san.txt; for f in $(awk '$3{print $1"."$2}' /tmp/s/all | head -6); do tail -25 /tmp/s/$f | cut -c1-200; done > $OUT/san-bad.txt; date
pack
