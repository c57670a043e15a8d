# v.sh NAME FLAGS.. : compiles lab/v.cu (or SRC) to cubin, prints spills, lists the loop
cd TREE; n=$1; shift
export PATH=$PATH:TREE/build/nvidia/nvidia/cu13/bin
nvcc -arch=sm_90a -std=c++20 -O3 -DNDEBUG -DFN=forward_$n "$@" -I common -I . -I 10_hopper -Xptxas -v -cubin -o lab/$n.cubin ${SRC:-lab/v.cu} 2>&1 | grep -E "error|[1-9][0-9]* bytes spill|C75" | cut -c1-200 | sort | uniq -c
nvdisasm -c lab/$n.cubin > lab/$n.full
