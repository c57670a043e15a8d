# build.sh NAME FLAGS: /tmp/h2/45/tl/NAME
name=$1; shift
cd /work/wt/45; mkdir -p /tmp/h2/45/tl/lib
if [ ! -e /tmp/h2/45/tl/lib/done ]; then
  for f in common/device/*.cc common/attention/*.cc common/attention/*.cu; do nice nvcc -gencode arch=compute_90a,code=sm_90a -std=c++20 -O2 -Icommon -I. -c $f -o /tmp/h2/45/tl/lib/$(basename $f).o || echo FAIL $f; done; touch /tmp/h2/45/tl/lib/done
fi
nice nvcc -gencode arch=compute_90a,code=sm_90a -std=c++20 -O3 -I/tmp/h2/45/tl/13_fp8 -Icommon -I. "$@" -DVARIANT="\"$name\"" -Xptxas -v -o /tmp/h2/45/tl/$name /tmp/h2/45/tl/times.cu /tmp/h2/45/tl/lib/*.o 2>&1 | grep -E "error|warning|[1-9][0-9]* bytes spill|C75" | head -20
ls -la /tmp/h2/45/tl/$name
