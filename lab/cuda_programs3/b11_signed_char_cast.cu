// a negative float to unsigned char in host code (CPU version) and in a kernel: the two versions of a course's check differ on a GPU
#include <cstdio>
__host__ __device__ unsigned char px(float v) { return (unsigned char)v; }
__global__ void k(const float* a, unsigned char* o) { o[threadIdx.x] = px(a[threadIdx.x]); }
int main() { volatile float v[4] = {-5.f, 3.f, -300.f, 260.f}; float h[4]; unsigned char r[4], *o; float* a; for (int i = 0; i < 4; i++) h[i] = v[i]; cudaMalloc(&a, 16); cudaMalloc(&o, 4); cudaMemcpy(a, h, 16, cudaMemcpyHostToDevice); k<<<1, 4>>>(a, o); cudaMemcpy(r, o, 4, cudaMemcpyDeviceToHost); for (int i = 0; i < 4; i++) printf("%d %d%s\n", r[i], px(v[i]), r[i] == px(v[i]) ? "" : " differs"); cudaFree(a); cudaFree(o); }
