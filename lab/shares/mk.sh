M=TREE; export PATH=$PATH:/usr/local/cuda/bin
sed 's/namespace key_parts {/namespace key_parts { inline namespace anew {/; s/}  \/\/ namespace key_parts/} }/' $M/common/attention/key_shares.h > inc/attention/key_shares.h
sed 's/namespace split_kv/namespace new_kv/' $M/11_split_kv/8_even.cu > whole.cu
echo 'void run_whole(const attention::Problem& p, const attention::ForwardArgs& a, cudaStream_t s) { new_kv::even.forward.run(p, a, s); }' >> whole.cu
nvcc -I inc -I $M/common -I $M -I $M/11_split_kv -O3 -DNDEBUG -std=c++20 -gencode arch=compute_90a,code=sm_90a -diag-suppress 177 -Xptxas -v -cubin whole.cu -o whole.cubin 2>&1 | grep -E "error|spill|regis|C75" | sort | uniq -c
nvcc -I inc -I $M/common -I $M -I $M/11_split_kv -O3 -DNDEBUG -std=c++20 -gencode arch=compute_90a,code=sm_90a -diag-suppress 177 -c whole.cu -o whole.o
$M/build/nvidia/nvidia/cu13/bin/nvdisasm -c whole.cubin > whole.s
