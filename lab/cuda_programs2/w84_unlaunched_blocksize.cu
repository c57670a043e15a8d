// reduction kernel with shared memory for 256 and a launch with 512 (dynamic size given for 256)
#include <cstdio>
__global__ void sum(const float* a, float* o) { extern __shared__ float s[]; int t = threadIdx.x; s[t] = a[blockIdx.x * blockDim.x + t]; __syncthreads(); for (int k = blockDim.x / 2; k; k /= 2) { if (t < k) s[t] += s[t + k]; __syncthreads(); } if (t == 0) atomicAdd(o, s[0]); }
int main() { float *a, *o; cudaMallocManaged(&a, 4096); cudaMallocManaged(&o, 4); *o = 0; for (int i = 0; i < 1024; i++) a[i] = 1; sum<<<2, 512, 256 * sizeof(float)>>>(a, o); cudaDeviceSynchronize(); printf("%g\n", *o); cudaFree(a); cudaFree(o); }
