// copies more than the host's array has (heap of the host): size in elements times a wrong type
#include <cstdio>
#include <vector>
__global__ void k(float* a) { a[threadIdx.x] = threadIdx.x; }
int main() { const int n = 64; std::vector<float> h(n); float* d; cudaMalloc(&d, n * sizeof(double)); cudaMemset(d, 0, n * sizeof(double)); k<<<1, n>>>(d); cudaMemcpy(h.data(), d, n * sizeof(double), cudaMemcpyDeviceToHost); printf("%g\n", h[5]); cudaFree(d); }
