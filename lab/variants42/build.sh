# Compiles the variants and links them: bash build.sh INCLUDE JOBS [PATTERN]. INCLUDE is the repository's `common`.
cd "$(dirname "$0")" || exit 1
COMMON=$1
mkdir -p obj
F="-O3 -DNDEBUG -std=c++20 -gencode arch=compute_90a,code=sm_90a -I$COMMON -Xcompiler -fPIC"
one() { echo "nvcc $F -DDIM=$2 -DNAME=$3 $4 -Xptxas -v -c $1.cu -o obj/$3.o > obj/$3.log 2>&1"; }
{
for D in 64 128; do
  for V in whole: split:-DSPLIT regs224:-DREGS=224 regs232:-DREGS=232 no_stats:-DNO_STATS no_ds:-DNO_DS; do
    one backward $D backward${D}_${V%%:*} "${V#*:}"
  done
  for V in whole: ; do one forward$D $D forward${D}_${V%%:*} "${V#*:}"; done
done
one backward 64 backward64_columns -DCOLUMNS
one backward 64 backward64_apart -DAPART
one backward 64 backward64_columns_apart "-DCOLUMNS -DAPART"
one backward 128 backward128_columns -DCOLUMNS
one backward 64 backward64_columns_larger "-DCOLUMNS -DLARGER"
one backward 64 backward64_columns_232 "-DCOLUMNS -DREGS=232"
one backward 64 backward64_columns_larger_232 "-DCOLUMNS -DLARGER -DREGS=232"
one forward128 128 forward128_regs152 -DREGS=152
one forward128 128 forward128_early -DEARLY
one forward128 128 forward128_late -DLATE
for S in attention/schedule device/limits device/tensor_map device/cuda_error attention/problem attention/block_mask; do
  echo "nvcc $F -x cu -c $COMMON/$S.cc -o obj/$(basename $S).o > obj/$(basename $S).log 2>&1"
done
} | grep -E "${3:-.}" | xargs -d '\n' -P $2 -n 1 sh -c 'sh -c "$0" || echo "FAILED: $0"'
nvcc -gencode arch=compute_90a,code=sm_90a -shared -Xcompiler -fPIC,-static-libstdc++,-static-libgcc obj/*.o -o variants.so && echo linked
