. .carry/m/common.sh
cd /tmp/w; export CPLUS_INCLUDE_PATH=/tmp/w/.carry/cli PYTHONDONTWRITEBYTECODE=1; date
if [ "$1" = quarters ]; then cp .carry/45/quarters_forward.h 13_fp8/forward.h; fi
while ! test -f /tmp/built2; do sleep 1; done; cmake --build build/cuda -j32 > /tmp/build3.log 2>&1; tail -1 /tmp/build2.log /tmp/build3.log; date
site=/tmp/cudnn_frontend; python3 -m pip install -q --no-index --no-deps --no-compile --no-cache-dir --target $site .carry/fp8/nvidia_cudnn_frontend-*.whl
touch /tmp/begin
( export CUDA_VISIBLE_DEVICES=1 PYTHONPATH=$site; for p in fp8 fp8-b2b; do timeout 150 ./workbook dev measure $p > $OUT/$p.txt 2>&1; date; tail -3 $OUT/$p.txt; done ) > $OUT/g1.txt 2>&1 & G=$!
( export CUDA_VISIBLE_DEVICES=0; bash .carry/45/gpu.sh > $OUT/45.txt 2>&1; date
  unset CPLUS_INCLUDE_PATH; timeout 70 ctest --preset cuda -R "^python\.(with_pytorch|variants|own_libstdcxx)$" --timeout 70 > $OUT/py.txt 2>&1; tail -12 $OUT/py.txt; date ) > $OUT/g0.txt 2>&1 &
wait $G; tail -5 $OUT/g1.txt; for i in $(seq ${2:-60}); do kill -0 $! 2>/dev/null || break; sleep 1; done; cat $OUT/g0.txt; tail -60 $OUT/45.txt | cut -c1-300
find $R -newer /tmp/begin -name '*.json' | tar cf - -T - | tar xf - -C $OUT
pack
