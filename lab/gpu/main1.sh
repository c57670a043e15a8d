. .carry/m/common.sh
date; for d in .carry/fa4* .carry/cu[0-9]; do test -d $d && case $d in *fa4*) cp $d/* /tmp/fa4/;; *) cp $d/* /tmp/cudnn/;; esac; done
cd /tmp/w; export CPLUS_INCLUDE_PATH=/tmp/w/.carry/cli; cat /tmp/pip.log; cat /tmp/fa4/dsl.a? | tar xJ -C /tmp/site-fa4 & X=$!; mkdir -p /tmp/cudnn/x; cat /tmp/cudnn/cudnn.a? | tar xJ -C /tmp/cudnn/x & wait $X $!
printf '%s\n%s\n' /tmp/site-fa4 /tmp/site-fa4/nvidia_cutlass_dsl/dsl_packages > "$(python3 -c 'import site; print(site.getsitepackages()[0])')/flash_attn_4.pth"
python3 -c 'from flash_attn.cute import flash_attn_func; print("FlashAttention-4 is there")'
ls /tmp/cudnn/x/nvidia/cudnn/lib | wc -l; date
while ! test -f /tmp/built; do sleep 1; done; tail -1 /tmp/build.log; grep -E "error|FAILED" /tmp/build.log | head; cp /tmp/build.log $OUT/; date
grep -q FAILED /tmp/build.log && { grep -E "error|FAILED" /tmp/build.log; pack; exit 1; }
export PYTHONDONTWRITEBYTECODE=1 REQUIRE_GPU=1
( export CUDA_VISIBLE_DEVICES=1; timeout 120 build/cuda/10_hopper/10_hopper_tests > $OUT/t10.txt 2>&1; echo t10 $?; tail -3 $OUT/t10.txt; timeout 60 build/cuda/12_variants/12_variants_tests --gtest_filter=-*long* > $OUT/t12.txt 2>&1; echo t12 $?; tail -3 $OUT/t12.txt; date ) > $OUT/tests.txt 2>&1 & T=$!
( export CUDA_VISIBLE_DEVICES=0; timeout 40 python3 -c "
import torch
a=torch.randn(4096,4096,device='cuda',dtype=torch.bfloat16)
while True: a@a
" & N=$!; sleep 4; X=build/cuda/10_hopper/10_hopper_tests; timeout 60 $X --gtest_filter=*repeat*:*again*:*Determ* > $OUT/busy.txt 2>&1; echo busy $?; tail -3 $OUT/busy.txt; kill $N; timeout 60 build/cuda/08_causal_earlystop/08_causal_earlystop_tests --gtest_filter=-*long* > $OUT/t08.txt 2>&1; echo t08 $?; tail -3 $OUT/t08.txt; date ) > $OUT/busy-log.txt 2>&1 & wait $T $!
cat $OUT/tests.txt $OUT/busy-log.txt
touch /tmp/begin; export WORKBOOK_CUDNN=/tmp/cudnn/x/nvidia/cudnn/lib
python3 .carry/m/queue.py "$@"; date
find $R -newer /tmp/begin -type f | tar cf - -T - | tar xf - -C $OUT; find $R -newer /tmp/begin -name '*.json'
pack
