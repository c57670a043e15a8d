. .carry/m/common.sh
date; C=$PWD/.carry; T=$PWD
( nice bash $C/clusters/build.sh $PWD 12 > $OUT/cb.txt 2>&1 ) & B=$!
( export CUDA_VISIBLE_DEVICES=0; cd $C/tl45; for c in "128 16384 0" "64 16384 0" "128 2048 1" "128 4096 1" "256 2048 1" "128 4096 0"; do for v in base early1 prefetch early1p; do echo "$v $(timeout 20 ./$v loops $c)"; done; done > $OUT/45-loops.txt 2>&1
  ./base rates > $OUT/45-rates.jsonl; ./base round > $OUT/45-round.jsonl; for t in timeline timelinep; do timeout 10 ./$t timeline; done > $OUT/45-timeline.txt; date ) > $OUT/v0.txt 2>&1 & V0=$!
( export CUDA_VISIBLE_DEVICES=1 PYTHONPATH=$PWD/common; timeout 80 python3 $C/v42/variants2.py $OUT/v42b.json 1.0 $WORKBOOK_COMMIT; date ) > $OUT/v42b.txt 2>&1 & V1=$!
site=/tmp/cudnn_frontend
python3 -m pip install -q --no-index --no-deps --no-compile --no-cache-dir --target $site .carry/fp8/nvidia_cudnn_frontend-*.whl
cmake --preset cuda -DCMAKE_CUDA_ARCHITECTURES=90a -DPython3_EXECUTABLE="$(command -v python3)" > $OUT/cmake.log 2>&1 || tail -20 $OUT/cmake.log
time cmake --build build/cuda -j26 > $OUT/build.log 2>&1; tail -1 $OUT/build.log; grep -E "error|FAILED" $OUT/build.log | head
wait $V0; pick=$(python3 $C/m/choose.py $OUT/45-loops.txt); echo "picked $pick at $SECONDS"
if [ $pick != none ] && git apply --check $C/pick/$pick.patch 2>/dev/null || [ $pick != none ]; then patch -p1 -s < $C/pick/$pick.patch && export WORKBOOK_COMMIT=$(grep "^$pick " $C/pick/commits | cut -d' ' -f2) && cmake --build build/cuda -j26 > $OUT/build2.log 2>&1; tail -1 $OUT/build2.log; fi; date
( export CUDA_VISIBLE_DEVICES=0 PYTHONPATH=$site
  for s in fp8 fp8-b2b; do timeout 110 ./workbook dev measure $s; cp $R/nvidia-h200/$s.json $OUT/; date; done ) > $OUT/g0.txt 2>&1 & G=$!
wait $V1 $B
( export CUDA_VISIBLE_DEVICES=1 PYTHONDONTWRITEBYTECODE=1 REQUIRE_GPU=1
  for k in bf16 fp16; do PYTHONPATH=$T/common timeout -k 5 60 python3 $C/clusters/columns.py $OUT/columns-$k.json $WORKBOOK_COMMIT backward $k > $OUT/columns-$k.txt 2>&1; date; done
  ( P=build/cuda/common/tests/mutants/kill_matrix; mkdir -p /tmp/mc; export CUDA_VISIBLE_DEVICES=1
    for n in window_begins_late window_begins_with_a_tile window_ends_early window_top_left softcap_of_the_product alibi_on_one_side alibi_of_first_batch no_sink sink_of_zero sink_not_in_lse rows_without_gaps writes_into_gaps softcap_without_windows keys_where_queries_begin key_of_the_neighbour last_tile_of_a_sequence slopes_of_one_sequence writes_behind_sequences zeros_of_wrong_lengths cut_tile_as_whole last_tile_of_a_list transposed_bits mask_of_one_head zeros_of_wrong_lists scale_of_v softcap_without_slope last_query_of_window unseen_keys_unwritten sink_of_one_batch sink_pushed_up query_of_the_neighbour keys_without_queries rows_for_columns bits_of_queries_for_keys dk_as_wide_as_v no_scale_of_k no_scale_of_v scale_of_a_part infinite_scale infinity_saturates rounded_once_divided keys_as_registers sum_never_flushed; do for t in memcheck racecheck synccheck initcheck; do echo "timeout 60 compute-sanitizer --tool $t --error-exitcode=99 $P launch $n > /tmp/mc/$n.$t 2>&1; echo $n $t \$? >> /tmp/mc/all"; done; done | xargs -d '\n' -P 8 -n 1 sh -c ) &
  ( cd $C/p41/common/tests/user_files/planted && timeout 150 python3 sanitized.py > $OUT/san.txt 2>&1 ) &
  timeout 40 build/cuda/common/tests/device/device_tests --gtest_filter='*Plain*:*wgmma*:*Wgmma*:*Fp8*' 2>&1 | tail -5
  timeout 60 build/cuda/13_fp8/13_fp8_tests --gtest_filter=-*long* 2>&1 | tail -5; date
  timeout 120 build/cuda/10_hopper/10_hopper_tests --gtest_filter=-*long* > $OUT/t10.txt 2>&1; tail -5 $OUT/t10.txt; date
  for t in memcheck synccheck racecheck; do timeout 30 compute-sanitizer --tool $t --error-exitcode=9 build/cuda/10_hopper/10_hopper --rung=columns --direction=backward --batch=1 --heads=2 --kv-heads=1 --seq-q=200 --seq-k=330 --head-dim=64 --check 2>&1 | tail -2; done; date ) > $OUT/g1.txt 2>&1 & J=$!
while kill -0 $G 2>/dev/null || kill -0 $J 2>/dev/null; do [ $SECONDS -gt 305 ] && break; sleep 1; done
cat $OUT/g1.txt; tail -12 $OUT/g0.txt | grep -v '^  '; tail -30 $OUT/columns-*.txt | cut -c1-150; grep -c . /tmp/mc/all; cp /tmp/mc/all $OUT/mc.txt; tail -3 $OUT/san.txt; date
pack
