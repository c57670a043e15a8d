// a record read from a byte buffer at an odd address (file format)
#include <cstdio>
#include <cstring>
__global__ void k(const unsigned char* file, int* o) { const unsigned char* rec = file + threadIdx.x * 7; int id; id = *(const int*)(rec + 3); o[threadIdx.x] = id; }
int main() { unsigned char h[7 * 32 + 8] = {}; for (int i = 0; i < 32; i++) { int v = i * 1000; memcpy(h + i * 7 + 3, &v, 4); } unsigned char* f; int *o, r[32]; cudaMalloc(&f, sizeof h); cudaMalloc(&o, 128); cudaMemcpy(f, h, sizeof h, cudaMemcpyHostToDevice);
  k<<<1, 32>>>(f, o); cudaMemcpy(r, o, 128, cudaMemcpyDeviceToHost); printf("%d\n", r[5]); cudaFree(f); cudaFree(o); }
