// cudaMemcpy (from pageable memory) and cudaMemset, then a kernel in a non-blocking stream without a wait
#include <cstdio>
#include <vector>
__global__ void k(const int* a, int* o) { int i = blockIdx.x * 256 + threadIdx.x; o[i] += a[i]; }
int main() { int *a, *o; std::vector<int> v(4096, 2); cudaMalloc(&a, 16384); cudaMalloc(&o, 16384); cudaMemset(o, 0, 16384); cudaDeviceSynchronize(); cudaMemcpy(a, v.data(), 16384, cudaMemcpyHostToDevice); cudaStream_t s; cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking); k<<<16, 256, 0, s>>>(a, o); cudaStreamSynchronize(s); cudaMemcpy(v.data(), o, 16384, cudaMemcpyDeviceToHost); printf("%d\n", v[9]); cudaStreamDestroy(s); cudaFree(a); cudaFree(o); }
