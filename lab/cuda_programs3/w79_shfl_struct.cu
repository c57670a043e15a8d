// shuffle of a structure and of a bool pair
#include <cstdio>
struct Best { float v; int i; };
__global__ void argmax(const float* a, int* o) { Best b{a[threadIdx.x], (int)threadIdx.x}; for (int d = 16; d; d /= 2) { Best c = __shfl_down_sync(0xffffffffu, b, d); if (c.v > b.v) b = c; } if (!threadIdx.x) *o = b.i; }
int main() { float h[32]; for (int i = 0; i < 32; i++) h[i] = i * 13 % 32; float* a; int *o, r; cudaMalloc(&a, 128); cudaMalloc(&o, 4); cudaMemcpy(a, h, 128, cudaMemcpyHostToDevice); argmax<<<1, 32>>>(a, o); cudaMemcpy(&r, o, 4, cudaMemcpyDeviceToHost); printf("%d\n", r); cudaFree(a); cudaFree(o); }
