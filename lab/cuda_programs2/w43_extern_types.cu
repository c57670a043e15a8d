// extern __shared__ of one name and two types: nvcc refuses
#include <cstdio>
__global__ void f(float* a) { extern __shared__ float s[]; s[threadIdx.x] = a[threadIdx.x]; __syncthreads(); a[threadIdx.x] = s[31 - threadIdx.x]; }
__global__ void d(double* a) { extern __shared__ double s[]; s[threadIdx.x] = a[threadIdx.x]; __syncthreads(); a[threadIdx.x] = s[31 - threadIdx.x]; }
int main() { float* a; double* b; cudaMallocManaged(&a, 128); cudaMallocManaged(&b, 256); for (int i = 0; i < 32; i++) a[i] = b[i] = i; f<<<1, 32, 128>>>(a); d<<<1, 32, 256>>>(b); cudaDeviceSynchronize(); printf("%g %g\n", a[1], b[1]); cudaFree(a); cudaFree(b); }
