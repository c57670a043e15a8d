// recursion 2000 deep: the stack of a thread on a GPU is 1024 bytes unless cudaDeviceSetLimit says more
#include <cstdio>
struct Node { int v; Node* next; };
__device__ __noinline__ long sum(const Node* p) { if (!p) return 0; long rest = sum(p->next); return rest * 3 % 1000003 + p->v; }
__global__ void k(const Node* p, long* out) { out[threadIdx.x] = sum(p + threadIdx.x); }
int main() { const int n = 2000; Node* p; long* o; cudaMallocManaged(&p, n * sizeof(Node)); cudaMallocManaged(&o, 32 * sizeof(long)); for (int i = 0; i < n; i++) p[i] = {i, i + 1 < n ? p + i + 1 : nullptr}; k<<<1, 32>>>(p, o); cudaDeviceSynchronize(); printf("%ld\n", o[0]); cudaFree(p); cudaFree(o); }
