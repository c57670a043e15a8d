// pageable memory in cudaMemcpyAsync: to the device it is staged, to the host the call waits
#include <cstdio>
#include <vector>
__global__ void k(float* a) { a[threadIdx.x] *= 2; }
int main() { cudaStream_t s; cudaStreamCreate(&s); float* a; cudaMalloc(&a, 128); { std::vector<float> v(32, 3.f); cudaMemcpyAsync(a, v.data(), 128, cudaMemcpyHostToDevice, s); for (float& x : v) x = -1; } k<<<1, 32, 0, s>>>(a); float h[32]; cudaMemcpyAsync(h, a, 128, cudaMemcpyDeviceToHost, s); printf("%g\n", h[4]); cudaStreamSynchronize(s); cudaStreamDestroy(s); cudaFree(a); }
