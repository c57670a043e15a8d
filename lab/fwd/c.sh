# c.sh NAME FLAGS..: compiles, says warnings, spills, and the order of EX2 / waits
F="-O3 -DNDEBUG -std=c++20 -gencode arch=compute_90a,code=sm_90a -I/work/main/common -Xcompiler -fPIC"
n=$1; shift
nice -n -15 nvcc $F ${BC:--DBC=128} -DNAME=$n "$@" -Xptxas -v -c forward64.cu -o obj/$n.o > obj/$n.log 2>&1 || { grep error obj/$n.log; exit 1; }
echo "$n: $(grep -c C75 obj/$n.log) warnings; $(grep -oE 'C75[0-9]+[^(]*due to [a-z ]*' obj/$n.log | head -1); $(grep -E 'spill' obj/$n.log | head -1)"
