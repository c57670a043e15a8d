// 300,000 lines of printf: a GPU's buffer of 1 MB keeps the last ones only
#include <cstdio>
__global__ void k() { printf("thread %d %d %g\n", blockIdx.x, threadIdx.x, 1.5); }
int main() { k<<<300, 1000>>>(); cudaDeviceSynchronize(); }
