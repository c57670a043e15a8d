. .carry/m/common.sh
date; C=$PWD/.carry; T=$PWD
bash $C/lib/build.sh $PWD 24 > $OUT/lib.txt 2>&1; tail -1 $OUT/lib.txt; date
export PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$T/common
CUDA_VISIBLE_DEVICES=0 timeout -k 5 150 python3 $C/lib/columns.py $OUT/rungs-bf16.json $WORKBOOK_COMMIT backward bf16 > $OUT/rungs-bf16.txt 2>&1 & A=$!
CUDA_VISIBLE_DEVICES=1 timeout -k 5 150 python3 $C/lib/columns.py $OUT/rungs-fp16.json $WORKBOOK_COMMIT backward fp16 > $OUT/rungs-fp16.txt 2>&1
wait $A; date; wc -l $OUT/rungs*; head -12 $OUT/rungs-*.txt
pack
