// right: structures with padding are written member by member and copied whole, in global and in shared memory
#include <cstdio>
struct P { char c; double d; short s; };
__global__ void make(P* p) { P& q = p[threadIdx.x]; q.c = 1; q.d = threadIdx.x; q.s = 2; }
__global__ void copy(const P* p, P* q) { __shared__ P s[32]; s[threadIdx.x] = p[threadIdx.x]; __syncthreads(); q[threadIdx.x] = s[31 - threadIdx.x]; }
int main() { P *p, *q, h[32]; cudaMalloc(&p, sizeof h); cudaMalloc(&q, sizeof h); make<<<1, 32>>>(p); copy<<<1, 32>>>(p, q); cudaMemcpy(h, q, sizeof h, cudaMemcpyDeviceToHost); printf("%g %d\n", h[0].d, h[3].s); cudaFree(p); cudaFree(q); }
