# tests of 10, 12, 13, device, python, and 13's accuracy, all at once (none times anything)
T=$PWD; export FLASH_ATTENTION_WORKBOOK_LIBRARY=$T/build/cuda/common/capi/libflash_attention_workbook.so
t() { n=$1; shift; ( timeout 170 "$@" > $OUT/t-$n.txt 2>&1; echo "$n: $? $(tail -1 $OUT/t-$n.txt | cut -c1-200) at $SECONDS" ) & }
t 10 build/cuda/10_hopper/10_hopper_tests
t 12 build/cuda/12_variants/12_variants_tests
t 13 build/cuda/13_fp8/13_fp8_tests
t device build/cuda/common/tests/device/device_tests
t hopper build/cuda/common/tests/device/device_hopper_tests
( unset WORKBOOK_CUDNN PYTHONPATH; exec 2>&1; timeout 170 ctest --preset cuda -j6 -R '^python\.|^capi\.' --timeout 150 > $OUT/t-python.txt; echo "python: $? $(grep -E 'tests passed' $OUT/t-python.txt) at $SECONDS" ) &
( PYTHONPATH=$T/common/python:$T/common:/tmp/cudnn_frontend timeout 170 python3 -B .carry/acc/accuracy.py $OUT/2026-11-30-13-accuracy.json $WORKBOOK_COMMIT > $OUT/t-accuracy.txt 2>&1; echo "accuracy: $? $(grep -c head_dim $OUT/t-accuracy.txt) points at $SECONDS" ) &
wait
grep -hE '^\[  FAILED|Failed|\*\*\*' $OUT/t-*.txt | head -20
