. .carry/m/common.sh
date; C=$PWD/.carry
( cmake --build build/cuda -j20 --target kill_matrix 2>&1 | tail -1; compute-sanitizer --tool memcheck --error-exitcode=99 build/cuda/common/tests/mutants/kill_matrix launch no_sink 2>&1 | head -80 > /tmp/memcheck-no_sink.txt
  compute-sanitizer --tool memcheck --error-exitcode=99 build/cuda/common/tests/mutants/kill_matrix launch own_scale 2>&1 | tail -5 > /tmp/memcheck-own_scale.txt
  P=build/cuda/common/tests/mutants/kill_matrix; mkdir -p /tmp/mut
  for n in softcap_without_slope last_query_of_window unseen_keys_unwritten sink_of_one_batch sink_pushed_up query_of_the_neighbour keys_without_queries rows_for_columns bits_of_queries_for_keys dk_as_wide_as_v; do echo "timeout -k 2 200 $P run $n > /tmp/mut/$n.tests 2>&1"; done | (read first; timeout 100 sh -c "$first"; date; xargs -d '\n' -P 10 -n 1 sh -c); date ) > $OUT/mutlog.txt 2>&1 &
M=$!
export PYTHONDONTWRITEBYTECODE=1
( export CUDA_VISIBLE_DEVICES=1
  if ! test -f $C/clusters/clusters.so; then bash $C/clusters/build.sh $C/clusters/src 14; fi; ls -la $C/clusters/*.so
  for d in forward backward; do PYTHONPATH=$PWD/common timeout -k 5 70 python3 $C/clusters/clusters.py $OUT/clusters-$d.json $WORKBOOK_COMMIT $d > $OUT/clusters-$d.txt 2>&1; date; done 
  ./workbook dev measure sweep-fp16-forward-b2b ) > $OUT/g1.txt 2>&1 &
J=$!
( export CUDA_VISIBLE_DEVICES=0; ./workbook dev measure models-backward-b2b --within 250; date ) > $OUT/g0.txt 2>&1 &
wait $! $J
cat $OUT/g0.txt $OUT/g1.txt | grep -v '^ '; for i in 1 2 3 4 5 6; do kill -0 $M 2>/dev/null && sleep 4; done; cat $OUT/mutlog.txt; wc -l /tmp/mut/*.tests
cp -r /tmp/mut /tmp/memcheck* $OUT/; cp $R/nvidia-h200/*b2b.json $OUT/
pack
