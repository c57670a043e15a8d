# Compiles the variants and links them: sh build.sh INCLUDE JOBS. INCLUDE is the repository's `common`.
cd "$(dirname "$0")" || exit 1
COMMON=$1
mkdir -p obj
F="-O3 -DNDEBUG -std=c++20 -gencode arch=compute_90a,code=sm_90a -I$COMMON -Xcompiler -fPIC"
{
for D in 64 128; do
  for V in whole: no_exp:-DNO_EXP no_copies:-DNO_COPIES p_shared:-DP_SHARED products:-DPRODUCTS,-DNO_COPIES; do
    N=forward${D}_${V%%:*}
    echo "nvcc $F -DDIM=$D -DNAME=$N $(echo "${V#*:}" | tr , ' ') -Xptxas -v -c forward$D.cu -o obj/$N.o > obj/$N.log 2>&1"
  done
  for V in whole: no_exp:-DNO_EXP no_copies:-DNO_COPIES no_dq:-DNO_DQ larger:-DLARGER; do
    N=backward${D}_${V%%:*}
    echo "nvcc $F -DDIM=$D -DNAME=$N $(echo "${V#*:}" | tr , ' ') -Xptxas -v -c backward.cu -o obj/$N.o > obj/$N.log 2>&1"
  done
done
echo "nvcc $F -c bare.cu -o obj/bare.o > obj/bare.log 2>&1"
for S in attention/schedule device/limits device/tensor_map device/cuda_error attention/problem; do
  echo "nvcc $F -x cu -c $COMMON/$S.cc -o obj/$(basename $S).o > obj/$(basename $S).log 2>&1"
done
} | grep -E "${3:-.}" | xargs -d '\n' -P $2 -n 1 sh -c 'sh -c "$0" || echo "FAILED: $0"'
nvcc -gencode arch=compute_90a,code=sm_90a -shared -Xcompiler -fPIC,-static-libstdc++,-static-libgcc obj/*.o -o joules.so && echo linked
