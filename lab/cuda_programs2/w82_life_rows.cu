// heat in place, one row of blocks; the field is constant but for one hot cell that only its own thread changes
#include <cstdio>
__global__ void heat(float* u, int n, int hot) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < 1 || i >= n - 1) return; u[i] = u[i] + .1f * (u[i - 1] - 2 * u[i] + u[i + 1]); }
__global__ void init(float* u, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) u[i] = 20; }
int main() { const int n = 512; float* u; cudaMallocManaged(&u, n * 4); init<<<2, 256>>>(u, n); for (int s = 0; s < 3; s++) heat<<<2, 256>>>(u, n, 0); cudaDeviceSynchronize(); printf("%g\n", u[5]); cudaFree(u); }
