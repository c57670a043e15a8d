. .carry/m/common.sh
date; for d in .carry/fa4* .carry/cu[0-9]; do test -d $d && case $d in *fa4*) cp $d/* /tmp/fa4/;; *) cp $d/* /tmp/cudnn/;; esac; done
cp -r .carry/m /tmp/w/.carry/; cd /tmp/w; export CPLUS_INCLUDE_PATH=/tmp/w/.carry/cli; cat /tmp/pip.log; cat /tmp/fa4/dsl.a? | tar xJ -C /tmp/site-fa4 & X=$!; wait $X
printf '%s\n%s\n' /tmp/site-fa4 /tmp/site-fa4/nvidia_cutlass_dsl/dsl_packages > "$(python3 -c 'import site; print(site.getsitepackages()[0])')/flash_attn_4.pth"
python3 -c 'from flash_attn.cute import flash_attn_func; print("FlashAttention-4 is there")'
ls /tmp/cudnn/x/nvidia/cudnn/lib | wc -l; date
while ! test -f /tmp/built; do sleep 1; done; tail -1 /tmp/build.log; grep -E "error|FAILED" /tmp/build.log | head; cp /tmp/build.log $OUT/; date
grep -q FAILED /tmp/build.log && { grep -E "error|FAILED" /tmp/build.log; pack; exit 1; }
export PYTHONDONTWRITEBYTECODE=1 REQUIRE_GPU=1 WORKBOOK_CUDNN=/tmp/cudnn/x/nvidia/cudnn/lib
touch /tmp/begin
python3 .carry/m/queue.py "$@"; date
find $R -newer /tmp/begin -type f | tar cf - -T - | tar xf - -C $OUT; find $R -newer /tmp/begin -name '*.json'
pack
