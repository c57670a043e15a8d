// raw pointer of a host_vector, and of a device_vector before it grew
#include <cstdio>
#include <thrust/device_vector.h>
#include <thrust/host_vector.h>
__global__ void k(float* a, int n) { if (threadIdx.x < n) a[threadIdx.x] += 1; }
int main() { thrust::device_vector<float> v(32, 1.0f); float* p = thrust::raw_pointer_cast(v.data()); v.resize(1000); k<<<1, 32>>>(p, 32); cudaDeviceSynchronize(); printf("%g\n", (float)v[0]); }
