// in shared memory: all read the last element, the last thread rewrites it, no barrier
#include <cstdio>
__global__ void k(const float* a, float* o) { __shared__ float s[128]; int t = threadIdx.x; s[t] = a[t]; __syncthreads(); s[t] = s[t] / s[127]; __syncthreads(); o[t] = s[t]; }
int main() { float *a, *o; cudaMallocManaged(&a, 512); cudaMallocManaged(&o, 512); for (int i = 0; i < 128; i++) a[i] = i + 1; k<<<1, 128>>>(a, o); cudaDeviceSynchronize(); printf("%g\n", o[3]); cudaFree(a); cudaFree(o); }
