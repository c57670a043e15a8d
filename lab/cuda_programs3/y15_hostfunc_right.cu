// right: a host function in the stream fills pinned memory that the next kernel reads
#include <cstdio>
void fill(void* p) { for (int i = 0; i < 32; i++) ((int*)p)[i] = i; }
__global__ void k(const int* a, int* o) { o[threadIdx.x] = a[threadIdx.x] * 2; }
int main() { int *h, *o, r[32]; cudaMallocHost(&h, 128); cudaMalloc(&o, 128); cudaStream_t s; cudaStreamCreate(&s); cudaLaunchHostFunc(s, fill, h); k<<<1, 32, 0, s>>>(h, o); cudaMemcpyAsync(r, o, 128, cudaMemcpyDeviceToHost, s); cudaStreamSynchronize(s); printf("%d\n", r[5]); cudaStreamDestroy(s); cudaFreeHost(h); cudaFree(o); }
