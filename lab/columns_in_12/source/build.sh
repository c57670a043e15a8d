# bash build.sh BASE_TREE COLUMNS_TREE
set -e
cd $(dirname $0)
f="-gencode arch=compute_90a,code=sm_90a -std=c++20 -O3 -DNDEBUG"
nice nvcc $f -DVERSION=base -I$1/common -I$1 -I$1/12_variants -c kernels.cu -o lab/k0.o
nice nvcc $f -DVERSION=columns -I$2/common -I$2 -I$2/12_variants -c kernels.cu -o lab/k1.o
for s in 10_hopper/29_columns_backward 10_hopper/21_shared_backward 10_hopper/wide/backward; do nice nvcc $f -I$1/common -I$1 -I$1/10_hopper/wide -c $1/$s.cu -o lab/ten_$(basename $s).o; done
nice nvcc $f -I$1/common -I$1 -c main.cu -o lab/main.o
c=$1/common
for s in attention/padded.cu; do nice nvcc $f -I$c -I$1 -c $c/$s -o lab/padded.o; done
for s in device/cuda_error.cc device/limits.cc device/tensor_map.cc attention/schedule.cc attention/problem.cc attention/block_mask.cc; do nice nvcc $f -x cu -I$c -I$1 -c $c/$s -o lab/cc_$(basename $s).o; done
nvcc $f lab/{k0,k1,main,padded,ten_29_columns_backward,ten_21_shared_backward,ten_backward}.o lab/cc_*.o -o ../columns_12
