# How kernels are compiled for the engine: simt_plain_flags, or simt_traced_flags.
#
# Sources of kernels are CUDA C++, which g++ reads as C++ with the flags that keep CUDA's rules: pointers of one type may read
# another's bytes, and -g1 gives the engine's messages their source lines.
#
# In traced kernels each load and store is a call of the engine (trace/tsan.cc stands in for GCC's library). The other flags keep
# a float4 one access, and one access in the source one instruction. These calls are what takes the time: with -O2 the kernels
# would run no faster, and compile for half as long again.
set(simt_plain_flags -O2 -fno-strict-aliasing -g1)
set(simt_traced_flags -O1 -fno-strict-aliasing -g1 -DSIMT_TRACED -fsanitize=thread --param=tsan-instrument-func-entry-exit=0
    -fno-tree-sra -fno-tree-vectorize -fno-tree-slp-vectorize -fno-tree-loop-distribute-patterns -fno-thread-jumps
    -freorder-blocks-algorithm=simple -Wno-attributes -Wno-tsan)
