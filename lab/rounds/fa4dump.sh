mkdir -p /tmp/fa4; for d in .carry/fa4*; do cp $d/* /tmp/fa4/; done; ls -la /tmp/fa4
python3 -m pip install -q --no-index --no-deps --no-compile --no-cache-dir --target /tmp/site-fa4 /tmp/fa4/*.whl & P=$!
cat /tmp/fa4/dsl.a? | tar xJ -C /tmp/site-fa4 & X=$!; wait $P $X
printf '%s\n%s\n' /tmp/site-fa4 /tmp/site-fa4/nvidia_cutlass_dsl/dsl_packages > "$(python3 -c 'import site; print(site.getsitepackages()[0])')/flash_attn_4.pth"
cp /tmp/site-fa4/flash_attn/cute/flash_fwd*.py /tmp/site-fa4/flash_attn/cute/interface.py /tmp/site-fa4/flash_attn/cute/softmax.py $OUT/ 
mkdir -p /tmp/dump; cd /tmp/dump
export CUTE_DSL_KEEP_CUBIN=1 CUTE_DSL_KEEP_PTX=1 CUTE_DSL_DUMP_DIR=/tmp/dump CUTE_DSL_LINEINFO=0 FLASH_ATTENTION_CUTE_DSL_CACHE_ENABLED=0
timeout 80 python3 - <<'P'
import torch, time
from flash_attn.cute import flash_attn_func
q, k, v = (torch.randn(1, 8192, 32, 64, device="cuda", dtype=torch.bfloat16) for _ in range(3))
o = flash_attn_func(q, k, v); torch.cuda.synchronize()
print("done", type(o))
P
find /tmp/dump -type f | head -20; find /tmp/dump -type f \( -name '*.cubin' -o -name '*.ptx' \) -size -20M -exec cp {} $OUT/ \;
ls -la $OUT
