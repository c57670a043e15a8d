// a constant array of a class with a constructor: nvcc refuses
#include <cstdio>
struct Vec3 { float x, y, z; __host__ __device__ Vec3() { x = y = z = 0; } __host__ __device__ Vec3(float a, float b, float c) { x = a; y = b; z = c; } };
__constant__ Vec3 lights[4];
__global__ void shade(float* o) { o[threadIdx.x] = lights[threadIdx.x].x; }
int main() { Vec3 h[4]; for (int i = 0; i < 4; i++) h[i] = Vec3(i, 0, 0); cudaMemcpyToSymbol(lights, h, sizeof h); float *o, r[4]; cudaMalloc(&o, 16); shade<<<1, 4>>>(o);
  cudaMemcpy(r, o, 16, cudaMemcpyDeviceToHost); printf("%g %g\n", r[0], r[3]); cudaFree(o); }
