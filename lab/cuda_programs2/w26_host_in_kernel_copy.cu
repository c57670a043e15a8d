// host object with virtual functions, copied member by member by assignment inside a kernel from a managed copy made by memcpy
#include <cstdio>
#include <cstring>
struct Mat { __host__ __device__ virtual float eval(float x) const { return x; } };
struct Lin : Mat { float k; __host__ __device__ Lin(float k = 1) : k(k) {} __host__ __device__ float eval(float x) const override { return k * x; } };
struct Scene { int n; Lin mats[4]; };
__global__ void shade(Scene s, float* o) { const Mat* m = &s.mats[threadIdx.x % s.n]; o[threadIdx.x] = m->eval(2.f); }
int main() {
  Scene s; s.n = 4; for (int i = 0; i < 4; i++) s.mats[i].k = i; float* o; cudaMallocManaged(&o, 128);
  shade<<<1, 32>>>(s, o); cudaDeviceSynchronize(); printf("%g\n", o[3]); cudaFree(o);
}
