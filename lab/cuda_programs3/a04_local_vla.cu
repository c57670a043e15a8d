// a local array whose length is an argument: nvcc refuses
#include <cstdio>
__global__ void k(const float* a, float* o, int n) { float row[n]; for (int i = 0; i < n; i++) row[i] = a[i] * threadIdx.x; float s = 0; for (int i = 0; i < n; i++) s += row[i]; o[threadIdx.x] = s; }
int main() { float h[8] = {1, 2, 3}, *a, *o, r[32]; cudaMalloc(&a, 32); cudaMalloc(&o, 128); cudaMemcpy(a, h, 32, cudaMemcpyHostToDevice); k<<<1, 32>>>(a, o, 8); cudaMemcpy(r, o, 128, cudaMemcpyDeviceToHost); printf("%g\n", r[2]); cudaFree(a); cudaFree(o); }
