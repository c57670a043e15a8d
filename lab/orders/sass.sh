# sass.sh NAME DIM X flags..: cubin of one kernel and its loop
n=$1; d=$2; x=$3; shift 3
cat > one_$n.cu <<F
#include "vf.h"
namespace variants::on_hopper { namespace FN {
template __global__ void forward<__nv_bfloat16, $d, 3, $x>(const __grid_constant__ ForwardMaps, Problem, TileList<Br<3>>, int*, typename $x::Score, float*, const float*, Lists<$x>);
}}
F
nvcc -I TREE/common -I TREE -I TREE/12_variants -I . -O3 -DNDEBUG -std=c++20 -gencode arch=compute_90a,code=sm_90a -DFN=$n -diag-suppress 177 "$@" -cubin one_$n.cu -o $n.cubin && TREE/build/nvidia/nvidia/cu13/bin/nvdisasm -c $n.cubin > $n.s
python3 loop.py $n.s > $n.loop.txt
