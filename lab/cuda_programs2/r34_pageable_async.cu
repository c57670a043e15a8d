// asynchronous copies from and to pageable memory are staged: host may change, and read, at once
#include <cstdio>
#include <vector>
__global__ void k(int* a) { a[threadIdx.x] *= 2; }
int main() { std::vector<int> h(64, 1); int* d; cudaMalloc(&d, 256); cudaStream_t s; cudaStreamCreate(&s); int sum = 0; for (int r = 0; r < 3; r++) { cudaMemcpyAsync(d, h.data(), 256, cudaMemcpyHostToDevice, s); h[0] = 7; k<<<1, 64, 0, s>>>(d); cudaMemcpyAsync(h.data(), d, 256, cudaMemcpyDeviceToHost, s); cudaStreamSynchronize(s); sum += h[1]; } printf("%d\n", sum); cudaFree(d); cudaStreamDestroy(s); }
