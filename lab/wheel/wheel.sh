set -x; date; python3 --version; nvcc --version | tail -1
rm -rf /tmp/v && mkdir /tmp/v && tar c --exclude=./build --exclude=./.carry . | tar x -C /tmp/v
python3 -m pip install -q --no-index --no-deps --target /tmp/tools .carry/whl/*.whl
cd /tmp/v; export CMAKE_BUILD_PARALLEL_LEVEL=18 PYTHONPATH=/tmp/tools PATH=/tmp/tools/bin:$PATH
time python3 -m pip wheel --no-build-isolation --no-deps --no-index -w /tmp/made -v -C "cmake.define.CMAKE_CUDA_ARCHITECTURES=80-real;90-real;90-virtual" . > $OUT/build.txt 2>&1; grep -nE "error|Error|FAILED|fatal" $OUT/build.txt | head -8 | cut -c1-200; tail -5 $OUT/build.txt | cut -c1-600; ls /tmp/made/*.whl || exit 1
ls -la /tmp/made
auditwheel repair --exclude "libtorch*" --exclude "libc10*" --exclude "libcudart*" -w /tmp/wheels /tmp/made/*.whl 2>&1 | tail -3; ls -la /tmp/wheels
unset PYTHONPATH; cd /; W=$(ls /tmp/wheels/*.whl | head -1); test -n "$W" || W=$(ls /tmp/made/*.whl)
time python3 -m pip install -q --no-index --no-deps --target /tmp/clean $W
export PYTHONPATH=/tmp/clean
time python3 -c "
import torch, flash_attention_workbook as faw, inspect
print(faw.__version__, faw.__file__, *faw.chapters())
q,k,v=(torch.randn(2,16,2048,128,device='cuda',dtype=torch.bfloat16,requires_grad=True) for _ in range(3))
o=faw.attention(q,k,v,causal=True); o.sum().backward(); r=torch.nn.functional.scaled_dot_product_attention(q,k,v,is_causal=True)
print((o-r).abs().max().item(), q.grad.norm().item())
print(faw.attention_fp8(q.detach(),k.detach(),v.detach()).shape)"
cuobjdump --list-elf $(find /tmp/clean -name 'libflash*.so*' | head -1) | grep -oE "sm_[0-9a]+" | sort | uniq -c
export PYTHONPATH=/tmp/clean:/tmp/v/common:/tmp/v/common/tests/python
for t in with_pytorch_test pages_test; do timeout 150 python3 -B /tmp/v/common/tests/python/$t.py > $OUT/$t.txt 2>&1; echo "$t $? $(tail -1 $OUT/$t.txt) $(grep -E '^Ran' $OUT/$t.txt)"; done
cat > /tmp/r.py <<'P'
import torch, flash_attention_workbook as faw
for d in (128, 256):
    q,k,v=(torch.randn(1,4,300,d,device='cuda',dtype=torch.float16) for _ in range(3))
    faw.attention_fp8(q,k,v,True, rung='followed'); torch.cuda.synchronize(); print("done", d)
P
S="$(command -v compute-sanitizer || echo /usr/local/cuda/bin/compute-sanitizer)"
timeout 120 $S --tool racecheck --print-limit 3 python3 /tmp/r.py > $OUT/race.txt 2>&1; grep -E "Race reported|and Write|SUMMARY|done" $OUT/race.txt | cut -c1-200 | tail -12
date
