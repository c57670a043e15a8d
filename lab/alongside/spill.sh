export PATH=$PATH:/usr/local/cuda/bin
M=TREE; f=${1:-$M/13_fp8/12_alongside.cu}
nvcc -I $M/common -I $M -I $M/13_fp8 -O3 -DNDEBUG -std=c++20 -gencode arch=compute_90a,code=sm_90a -diag-suppress 177 -Xptxas -v -lineinfo -cubin $f -o ${2:-a}.cubin 2>&1 | c++filt | grep -E "error|spill|regis|C75|Compil" | sed -E 's/ptxas info +: //' | grep -vE "^Compiling" | paste - - | sort | uniq -c
