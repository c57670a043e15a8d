// a shared array of a class with a constructor: nvcc refuses
#include <cstdio>
struct Vec3 { float x, y, z; __host__ __device__ Vec3() : x(0), y(0), z(0) {} __host__ __device__ Vec3(float a, float b, float c) : x(a), y(b), z(c) {} };
__global__ void centre(const Vec3* p, Vec3* o) { __shared__ Vec3 s[64]; s[threadIdx.x] = p[threadIdx.x]; __syncthreads();
  if (!threadIdx.x) { Vec3 t; for (int i = 0; i < 64; i++) { t.x += s[i].x; t.y += s[i].y; t.z += s[i].z; } *o = t; } }
int main() { Vec3 h[64]; for (int i = 0; i < 64; i++) h[i] = Vec3(i, 1, 2); Vec3 *p, *o, r; cudaMalloc(&p, sizeof h); cudaMalloc(&o, sizeof r); cudaMemcpy(p, h, sizeof h, cudaMemcpyHostToDevice);
  centre<<<1, 64>>>(p, o); cudaMemcpy(&r, o, sizeof r, cudaMemcpyDeviceToHost); printf("%g %g %g\n", r.x, r.y, r.z); cudaFree(p); cudaFree(o); }
