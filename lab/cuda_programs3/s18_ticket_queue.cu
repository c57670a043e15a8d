// a queue in one kernel: items are published by a flag for each slot (atomicExch behind a fence), taken by later tickets in the same block set
#include <cstdio>
__global__ void k(int* item, int* ready, int* head, int* tail, int* out, int n) { if (threadIdx.x) return; int b = blockIdx.x; if (b < n) { int s = atomicAdd(tail, 1); item[s] = b * 10; __threadfence(); atomicExch(&ready[s], 1); } else { int s = atomicAdd(head, 1); while (atomicAdd(&ready[s], 0) == 0); __threadfence(); out[s] = item[s]; } }
int main() { int n = 4, *p; cudaMalloc(&p, 4 * 16); cudaMemset(p, 0, 64); k<<<8, 32>>>(p, p + 4, p + 8, p + 9, p + 12, n); int h[4]; cudaMemcpy(h, p + 12, 16, cudaMemcpyDeviceToHost); printf("%d\n", h[0] + h[1] + h[2] + h[3]); cudaFree(p); }
