// conversions by intrinsics out of range
#include <cstdio>
__global__ void k(const float* a, int* o) { o[0] = __float2int_rn(a[0]); o[1] = (int)__float2uint_rn(a[1]); o[2] = __float2int_rz(a[2]); o[3] = __double2int_rn((double)a[0]); o[4] = (int)rintf(a[0]); o[5] = lroundf(a[1]); o[6] = (int)__saturatef(a[2]); o[7] = (short)a[3]; }
int main() { float h[4] = {1e20f, -7, 0.0f / 0.0f, 70000.f}; float* a; int *o, r[8]; cudaMalloc(&a, 16); cudaMalloc(&o, 32); cudaMemcpy(a, h, 16, cudaMemcpyHostToDevice); k<<<1, 1>>>(a, o); cudaMemcpy(r, o, 32, cudaMemcpyDeviceToHost); for (int x : r) printf("%d\n", x); cudaFree(a); cudaFree(o); }
