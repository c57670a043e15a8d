export PATH=$PATH:/usr/local/cuda/bin
M=TREE
for f in attention/block_mask attention/schedule device/limits device/tensor_map device/cuda_error attention/padded attention/dispatch attention/problem; do
 s=$(ls $M/common/$f.c* 2>/dev/null | head -1); test -n "$s" && nvcc -x cu -I $M/common -O2 -std=c++20 -gencode arch=compute_90a,code=sm_90a -c $s -o l_$(basename $f).o 2>&1 | head -3
done
