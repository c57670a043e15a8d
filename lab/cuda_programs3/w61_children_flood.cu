// each of 4096 threads launches a kernel: more than the 2048 pending launches that a GPU allows by default; the error is not looked at
#include <cstdio>
__global__ void child(int* a, int i) { a[i] = 1; }
__global__ void parent(int* a) { int i = blockIdx.x * blockDim.x + threadIdx.x; child<<<1, 1>>>(a, i); }
int main() { static int h[4096]; int* a; cudaMalloc(&a, sizeof h); cudaMemset(a, 0, sizeof h); parent<<<16, 256>>>(a); cudaDeviceSynchronize(); cudaMemcpy(h, a, sizeof h, cudaMemcpyDeviceToHost); int s = 0; for (int x : h) s += x; printf("%d\n", s); cudaFree(a); }
