mkdir -p /tmp/s; X=build/cuda/10_hopper/10_hopper; PATH=$PATH:/usr/local/cuda/bin
for t in memcheck synccheck initcheck; do for d in 64 128; do for r in columns deferred; do for y in bf16 fp16; do for c in causal no-causal; do for n in "200 --seq-k=330" "520 --seq-k=520"; do
 k=$(echo $n | cut -c1-3); echo "$t $r-$d-$y-$c-$k $X --rung=$r --direction=backward --batch=1 --heads=2 --kv-heads=1 --seq-q=$n --head-dim=$d --dtype=$y --$c --check"; done; done; done; done; done; done > /tmp/s/list
wc -l < /tmp/s/list; rm -f /tmp/s/all
xargs -a /tmp/s/list -P 12 -L 1 sh -c 't=$1; n=$2; shift 2; timeout 60 compute-sanitizer --tool $t --error-exitcode=99 "$@" > /tmp/s/$n.$t 2>&1; echo $n $t $? >> /tmp/s/all' x
wc -l < /tmp/s/all; awk '$3' /tmp/s/all; for f in $(awk '$3{print $1"."$2}' /tmp/s/all | head -6); do tail -25 /tmp/s/$f | cut -c1-200; done
for f in columns-64-bf16-causal-520.memcheck columns-128-fp16-no-causal-200.initcheck; do tail -5 /tmp/s/$f; done
