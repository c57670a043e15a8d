// a __device__ object with a constructor that is not constexpr: nvcc refuses
#include <cstdio>
class Counter { int n; public: __host__ __device__ Counter() { n = 10; } __device__ void hit() { atomicAdd(&n, 1); } __device__ int get() const { return n; } };
__device__ Counter counter;
__global__ void hit() { counter.hit(); }
__global__ void get(int* o) { *o = counter.get(); }
int main() { int *o, h; cudaMalloc(&o, 4); hit<<<1, 32>>>(); get<<<1, 1>>>(o); cudaMemcpy(&h, o, 4, cudaMemcpyDeviceToHost); printf("%d\n", h); cudaFree(o); }
