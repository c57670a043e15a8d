// a __host__ __device__ function that uses std::vector / std::string inside
#include <cstdio>
#include <vector>
__host__ __device__ float mean(const float* a, int n) { std::vector<float> v(a, a + n); float s = 0; for (float x : v) s += x; return s / n; }
__global__ void k(const float* a, float* o, int n) { o[threadIdx.x] = mean(a, n); }
int main() { float h[4] = {1, 2, 3, 4}, *a, *o; cudaMalloc(&a, 16); cudaMalloc(&o, 128); cudaMemcpy(a, h, 16, cudaMemcpyHostToDevice); k<<<1, 32>>>(a, o, 4); float r; cudaMemcpy(&r, o, 4, cudaMemcpyDeviceToHost); printf("%g\n", r); cudaFree(a); cudaFree(o); }
