. .carry/m/common.sh; export PYTHONDONTWRITEBYTECODE=1 REQUIRE_GPU=1; date
setsid bash -c 'cmake --preset cuda -DCMAKE_CUDA_ARCHITECTURES=90a -DPython3_EXECUTABLE="$(command -v python3)" > /tmp/cmake.log 2>&1; cmake --build build/cuda -j14 > /tmp/build.log 2>&1; touch /tmp/built' < /dev/null > /dev/null 2>&1 &
( timeout 45 .carry/pl/roundsb 64 160 1 2 4 8 16 32; timeout 45 .carry/pl/roundsb 128 160 1 2 4 8 16 ) > $OUT/roundsb.txt 2>&1; cat $OUT/roundsb.txt | cut -c1-75; date
while ! test -f /tmp/built; do sleep 1; done; tail -1 /tmp/build.log; date; grep -hE "error|FAILED" /tmp/build.log | head
site=/tmp/cudnn_frontend; python3 -m pip install -q --no-index --no-deps --no-compile --no-cache-dir --target $site .carry/fp8/nvidia_cudnn_frontend-*.whl
for p in fp8-b2b fp8; do PYTHONPATH=$site timeout 150 ./workbook dev measure $p > $OUT/$p.txt 2>&1; tail -3 $OUT/$p.txt; date; cp common/results/nvidia-h200/$p.json $OUT/; done
