. .carry/m/common.sh
cd /tmp/w; export CPLUS_INCLUDE_PATH=/tmp/w/.carry/cli PYTHONDONTWRITEBYTECODE=1
( CUDA_VISIBLE_DEVICES=0 timeout 175 ./workbook dev measure sweep-bf16-forward-b2b > $OUT/s.txt 2>&1; date ) &
( export CUDA_VISIBLE_DEVICES=1; timeout 80 ./workbook dev measure accuracy > $OUT/acc.txt 2>&1; tail -60 build/measure/nvidia-h200/accuracy.log > $OUT/acc.log; date
PYTHONPATH=common/python:common FLASH_ATTENTION_WORKBOOK_LIBRARY=$PWD/build/cuda/common/capi/libflash_attention_workbook.so timeout 90 python3 common/python/examples/gpt.py sdpa sdpa_other_seed 12_variants --window 256 --steps 500 --out $OUT/2026-11-29-gpt-window.json > $OUT/gpt.txt 2>&1; date ) &
wait; tail -3 $OUT/*.txt; cp $R/nvidia-h200/sweep-bf16-forward-b2b.json $R/nvidia-h200/accuracy.json $OUT/
pack
