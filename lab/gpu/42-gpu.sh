# Issue 42 on one H200. One call of `run`, kind nvidia-h200, carry [".carry/joules", ".carry/clusters"], timeout_s 420.
# Estimate: joules 95 s (32 variants x 2 x 1.3 s, and 10 s to begin), clusters forward 25 s and backward 30 s (hard limits 75 s each); without the prebuilt libraries 40 s more to compile.
# The command is what follows, as it is (below 2000 characters). Both .so were compiled from branch s9-42 by nvcc 13.0 for sm_90a.
export PYTHONPATH=$PWD/common PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
C=$PWD/.carry; date
python3 -c "import ctypes; ctypes.CDLL('$C/joules/joules.so')" || bash $C/joules/build.sh $C/clusters/src/common 15
python3 -c "import ctypes; ctypes.CDLL('$C/clusters/clusters.so')" || bash $C/clusters/build.sh $C/clusters/src 15
nvidia-smi --query-gpu=name,power.limit,clocks.max.sm --format=csv,noheader
timeout -k 5 170 python3 $C/joules/joules.py $OUT/2026-11-29-10-joules.json 1.0 de72a64021f5 2>&1 | tee $OUT/joules.txt
date
timeout -k 5 75 python3 $C/clusters/clusters.py $OUT/2026-11-29-10-clusters-forward.json de72a64021f5 forward 2>&1 | tee $OUT/clusters-forward.txt
timeout -k 5 75 python3 $C/clusters/clusters.py $OUT/2026-11-29-10-clusters-backward.json de72a64021f5 backward 2>&1 | tee $OUT/clusters-backward.txt
date
