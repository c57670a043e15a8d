. .carry/m/common.sh
date; for d in .carry/fa4* .carry/cu[0-9]; do test -d $d && case $d in *fa4*) cp $d/* /tmp/fa4/;; *) cp $d/* /tmp/cudnn/;; esac; done
cp -r .carry/m .carry/acc .carry/fp8 /tmp/w/.carry/; cd /tmp/w; export CPLUS_INCLUDE_PATH=/tmp/w/.carry/cli; cat /tmp/pip.log; cat /tmp/fa4/dsl.a? | tar xJ -C /tmp/site-fa4 & X=$!; mkdir -p /tmp/cudnn/x; cat /tmp/cudnn/cudnn.a? | tar xJ -C /tmp/cudnn/x & wait $X $!
printf '%s\n%s\n' /tmp/site-fa4 /tmp/site-fa4/nvidia_cutlass_dsl/dsl_packages > "$(python3 -c 'import site; print(site.getsitepackages()[0])')/flash_attn_4.pth"
python3 -c 'from flash_attn.cute import flash_attn_func; print("FlashAttention-4 is there")'
ls /tmp/cudnn/x/nvidia/cudnn/lib | wc -l; date
python3 -m pip install -q --no-index --no-deps --no-compile --no-cache-dir --target /tmp/cudnn_frontend .carry/fp8/nvidia_cudnn_frontend-*.whl
while ! test -f /tmp/built; do sleep 1; done; tail -1 /tmp/build.log; grep -E "error|FAILED" /tmp/build.log | head; cp /tmp/build.log $OUT/; date
grep -q FAILED /tmp/build.log && { grep -E "error|FAILED" /tmp/build.log; pack; exit 1; }
bash .carry/m/main2.sh "$@"
