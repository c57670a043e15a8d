# sh build.sh REPOSITORY JOBS
cd "$(dirname "$0")" || exit 1
R=$1; mkdir -p obj
F="-O3 -DNDEBUG -std=c++20 -gencode arch=compute_90a,code=sm_90a -I$R/common -Xcompiler -fPIC"
for S in 10_hopper/20_fitted.cu 10_hopper/23_prompt.cu 10_hopper/24_late.cu 10_hopper/25_polynomial.cu 10_hopper/26_chosen.cu 10_hopper/27_clusters.cu 10_hopper/21_shared_backward.cu 10_hopper/27_clusters_backward.cu 10_hopper/28_columns_backward.cu \
  common/attention/padded.cu common/attention/schedule.cc common/attention/problem.cc common/attention/block_mask.cc common/device/limits.cc common/device/tensor_map.cc common/device/cuda_error.cc; do
  echo "nvcc $F -x cu -c $R/$S -o obj/$(basename $S | cut -d. -f1).o > obj/$(basename $S | cut -d. -f1).log 2>&1"
done | xargs -d '\n' -P $2 -n 1 sh -c 'sh -c "$0" || echo "FAILED: $0"'
nvcc $F -c glue.cu -o obj/glue.o
nvcc -gencode arch=compute_90a,code=sm_90a -shared -Xcompiler -fPIC,-static-libstdc++,-static-libgcc obj/*.o -o clusters.so && echo linked
