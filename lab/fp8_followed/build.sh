# build.sh NAME D HEADER
cd lab/src
W=/work/wt/45
nice nvcc -gencode arch=compute_90a,code=sm_90a -std=c++20 -O3 -DNDEBUG -I . -I 13_fp8 -I $W/common -I $W -DDIM=$2 -include $3 -Xptxas -v -cudart static loops.cu $W/common/device/limits.cc $W/common/device/tensor_map.cc $W/common/device/cuda_error.cc $W/common/attention/*.cc -o /tmp/h2/45s17-carry/$1 > lab/$1.log 2>&1; echo $1 $? >> lab/$1.log
