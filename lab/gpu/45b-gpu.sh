#!/usr/bin/env bash
# Eight bits beside cuDNN, and tensors in e4m3, on a GPU machine (one H200). Run in the repository's root there, with
#   carry: [".carry/fp8"]        (3.3 MB: nvidia-cudnn-frontend 1.24.1 for Python 3.12, in /work/main/.carry/fp8)
# A copy of this file is .carry/fp8/gpu.sh there. Parts, each a call:
#   bash .carry/fp8/gpu.sh build | tests | piece fp8 | piece fp8-b2b
# Seconds, none of them tried: build 60 to 150 (nvcc of all chapters; nothing if the library is there), tests about 30.
# fp8 65 to 85 and fp8-b2b 95 to 112: they stop at 75 and 100 s of measuring, and points that they do not come to by
# then (D = 256, causal, is last) stand in the record as skipped. Points, tolerances, a fault of cuDNN's: the log is shown.
set -euo pipefail
site=/tmp/cudnn_frontend
if [ ! -d $site ]; then
  python3 -m pip install -q --no-index --no-deps --no-compile --no-cache-dir --target $site .carry/fp8/nvidia_cudnn_frontend-*.whl
fi
export PYTHONPATH=$site${PYTHONPATH:+:$PYTHONPATH}
python3 -c 'import torch, cudnn; print("frontend", cudnn.__version__, "drives cuDNN", cudnn.backend_version())'
case $1 in
build)
  cmake --preset cuda -DPython3_EXECUTABLE="$(command -v python3)" > /dev/null
  cmake --build build/cuda --target flash_attention_workbook capi_tests -j16 | tail -2 ;;
tests)
  timeout 60 build/cuda/common/tests/capi/capi_tests --gtest_filter='*E4m3*:*NaNOf*' | tail -5
  export FLASH_ATTENTION_WORKBOOK_LIBRARY=$PWD/build/cuda/common/capi/libflash_attention_workbook.so REQUIRE_GPU=1
  PYTHONPATH=$PWD/common/python:$PWD/common:$PYTHONPATH timeout 120 python3 -B common/tests/python/with_pytorch_test.py \
    EightBits Refusals.test_tensors_in_e4m3 2>&1 | tail -15 ;;
piece)
  timeout 150 ./workbook dev measure "$2" 2>&1 | tail -5
  cp common/results/nvidia-h200/"$2".json "$OUT"/ ; tail -60 build/measure/nvidia-h200/"$2".log ;;
esac
