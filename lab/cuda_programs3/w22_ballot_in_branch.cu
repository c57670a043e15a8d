// a vote with the full mask where only half of the lanes come
#include <cstdio>
__global__ void k(int* o) { int l = threadIdx.x; if (l < 16) { unsigned b = __ballot_sync(0xffffffff, l & 1); o[l] = __popc(b); } else o[l] = -1; }
int main() { int *o, r[32]; cudaMalloc(&o, 128); k<<<1, 32>>>(o); cudaMemcpy(r, o, 128, cudaMemcpyDeviceToHost); printf("%d %d\n", r[3], r[20]); cudaFree(o); }
