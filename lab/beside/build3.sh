cd TREE; export PATH=$PATH:/usr/local/cuda/bin
N="nvcc -gencode arch=compute_90a,code=sm_90a -std=c++20 -O3 -DNDEBUG -I common -I . -I 10_hopper"
rm -f lab/*.o; LIST="V(b0)"
echo "$N -DSLEEP=0 -DASK=0 -DSKIPV=0 -DUNL=0 -DEARLY=0 -DBEFORE=16 -DFN=forward_b0 -c -o lab/b0.o lab/w.cu" > lab/jobs
for v in c0,0,1,0,0,4 d0,0,1,0,1,4 c1,0,1,1,1,4 c2,0,0,0,1,4 e0,1,1,0,1,4 e2,1,0,0,1,4 p2,0,1,0,1,2 p6,0,1,0,1,6 p8,0,1,0,1,8; do IFS=, read n ea pin ask st po <<< $v; LIST="$LIST V($n)"
 echo "$N -DEARLY=$ea -DPIN=$pin -DASKFIRST=$ask -DSTORESLEEPS=$st -DPOLY=$po -DFN=forward_$n -Xptxas -v -c -o lab/$n.o lab/x.cu 2>&1 | grep -E 'error|[1-9][0-9]* bytes spill|C75' | cut -c1-150 | sort | uniq -c | sed 's/^/$n /'"; done >> lab/jobs
cat > lab/stub.cu <<'S'
#include <string>
#include "attention/dispatch.h"
#include "attention/padded.h"
namespace hopper { extern const attention::Forward wide_forward; constinit const attention::Forward wide_forward = {}; void forward_fitted(const attention::Problem&, const attention::ForwardArgs&, cudaStream_t, bool) {} }
namespace attention { std::string not_for_hopper_to_256(const Problem&) { return ""; } }
S
xargs -P 2 -d '\n' -I{} bash -c '{}' < lab/jobs
nvcc -gencode arch=compute_90a,code=sm_90a -std=c++20 -O3 -DNDEBUG "-DVARIANTS=$LIST" -I common -I . -cudart static -o lab/d64 lab/main3.cu lab/*.o lab/stub.cu common/attention/schedule.cc common/attention/padded.cu common/device/{limits,tensor_map,cuda_error}.cc -lcuda 2>&1 | grep -E "error|undefined" | head; ls -la lab/d64; cp lab/d64 TREE/.carry/d64/
