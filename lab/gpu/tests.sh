# tests of 10, 11, 12, device, python; the fuzz of 12; sanitizers of 10 and 12; accuracy: all at once (none times anything)
T=$PWD; export FLASH_ATTENTION_WORKBOOK_LIBRARY=$T/build/cuda/common/capi/libflash_attention_workbook.so
t() { n=$1; shift; ( timeout 200 "$@" > $OUT/t-$n.txt 2>&1; echo "$n: $? $(tail -1 $OUT/t-$n.txt | cut -c1-200) at $SECONDS" ) & }
( export PYTHONPATH=$T/common/python:$T/common:$T/common/tests/python; t even python3 -B .carry/m/even.py; wait ) &
( unset WORKBOOK_CUDNN; t measure ./workbook dev measure accuracy; wait ) &
t 10 build/cuda/10_hopper/10_hopper_tests
t 11 build/cuda/11_split_kv/11_split_kv_tests
t 12 build/cuda/12_variants/12_variants_tests
t 13 build/cuda/13_fp8/13_fp8_tests
t device build/cuda/common/tests/device/device_tests
t hopper build/cuda/common/tests/device/device_hopper_tests
( unset WORKBOOK_CUDNN PYTHONPATH; exec 2>&1; timeout 200 ctest --preset cuda -j6 -R '^python\.|^capi\.' --timeout 150 > $OUT/t-python.txt; echo "python: $? $(grep -E 'tests passed' $OUT/t-python.txt) at $SECONDS" ) &
( exec 2>&1; timeout 200 ctest --preset cuda -j6 -L sanitizer -R '^(10_hopper|12_variants)' --timeout 150 > $OUT/t-sanitizer.txt; echo "sanitizer: $? $(grep -E 'tests passed' $OUT/t-sanitizer.txt) at $SECONDS" ) &
S="$(command -v compute-sanitizer || echo /usr/local/cuda/bin/compute-sanitizer)"; B=build/cuda/10_hopper/10_hopper; C=build/cuda/12_variants/12_variants
( for t in memcheck synccheck; do for y in bf16 fp16; do for c in causal no-causal; do
  for n in "200 --seq-k=330" "520 --seq-k=520" "64 --seq-k=64" "700 --seq-k=1000"; do echo "$t $B --heads=4 --kv-heads=2 --rung=beside --head-dim=64 --dtype=$y --$c --seq-q=$n"; done
  for x in "--window 40 17" "--window 300 0" "--alibi" "--softcap 20" "--sink" "--views"; do for d in 64 128; do echo "$t $C --heads=4 --kv-heads=2 $x --head-dim=$d --dtype=$y --$c --seq-q=300 --seq-k=410"; done; done; for d in 64 128 256; do echo "$t build/cuda/11_split_kv/11_split_kv --rung=even --heads=16 --kv-heads=16 --head-dim=$d --dtype=$y --$c --seq-q=1900 --seq-k=2100"; done
  done; done; done > /tmp/list; wc -l < /tmp/list
xargs -a /tmp/list -P 5 -I{} sh -c 'set -- {}; t=$1; shift; timeout 60 '$S' --tool $t --error-exitcode=99 --print-limit 3 "$@" --check --batch=1 > /tmp/s.$$ 2>&1; c=$?; echo "$c $t $*" >> /tmp/san; test $c = 0 || tail -5 /tmp/s.$$ >> /tmp/sanout'; cut -d" " -f1-2 /tmp/san | sort | uniq -c; grep -v ^0 /tmp/san | head -5; head -20 /tmp/sanout 2>/dev/null; cp /tmp/san $OUT/san.txt; echo san at $SECONDS ) &
wait
grep -hE '^\[  FAILED|Failed|\*\*\*' $OUT/t-*.txt | head -20
