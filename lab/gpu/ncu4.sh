# Ours and FlashAttention-4's forward at D = 64, N = 8192, no mask, in Nsight Compute
cat > /tmp/fa4one.py <<'P'
import torch
from flash_attn.cute import flash_attn_func
q, k, v = (torch.randn(2, 8192, 32, 64, device="cuda", dtype=torch.bfloat16) for _ in range(3))
for _ in range(3): flash_attn_func(q, k, v)
torch.cuda.synchronize()
P
S="--clock-control none --section SpeedOfLight --section WarpStateStats --section SchedulerStats --section InstructionStats --section ComputeWorkloadAnalysis --section MemoryWorkloadAnalysis --section SourceCounters --section LaunchStats"
NCU=$(command -v ncu || ls /usr/local/cuda*/bin/ncu | head -1)
timeout 100 $NCU $S -f -k 'regex:(?i)(flash|forward)' --launch-skip 1 -c 1 -o /tmp/fa4rep python3 /tmp/fa4one.py 2>&1 | tail -5
for r in late polynomial; do timeout 60 $NCU $S -f -k regex:forward -c 1 --kill yes -o /tmp/ours_$r build/cuda/10_hopper/10_hopper --check --rung=$r --direction=forward --batch=2 --heads=32 --seq-q=8192 --head-dim=64 --dtype=bf16 --no-causal 2>&1 | tail -5; done
for r in fa4rep ours_late ours_polynomial; do $NCU -i /tmp/$r.ncu-rep --page details --csv > $OUT/$r.details.csv 2>&1; $NCU -i /tmp/$r.ncu-rep --page source --csv > $OUT/$r.source.csv 2>&1; wc $OUT/$r.*; done
