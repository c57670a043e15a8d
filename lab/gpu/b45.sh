. .carry/m/common.sh
if ! test -f /tmp/begun; then touch /tmp/begun; mkdir /tmp/w; tar c --exclude=./build . | tar x -C /tmp/w; cd /tmp/w; export CPLUS_INCLUDE_PATH=/tmp/w/.carry/cli; setsid bash -c 'cmake --preset cuda -DCMAKE_CUDA_ARCHITECTURES=90a -DPython3_EXECUTABLE="$(command -v python3)" > /tmp/cmake.log 2>&1; cmake --build build/cuda -j30 --target 13_fp8 13_fp8_tests flash_attention_workbook > /tmp/build.log 2>&1; touch /tmp/built; cmake --build build/cuda -j16 > /tmp/build2.log 2>&1; touch /tmp/built2' < /dev/null > /dev/null 2>&1 &
fi; cd /tmp/w
export CUDA_VISIBLE_DEVICES=0
while ! test -f /tmp/built; do sleep 1; done; tail -1 /tmp/build.log; date
for n in 1 2; do for v in halves quarters halves_no_turns quarters_no_turns; do echo "== $v"; timeout 20 .carry/45/$v; done; done 2>&1 | tee $OUT/wide.jsonl; date
