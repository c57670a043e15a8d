#include <cstdio>
__global__ void k(cudaTextureObject_t t, float* o) { o[threadIdx.x] = tex1Dfetch<float>(t, threadIdx.x); }
int main() { float h[32] = {1}; float *a, *o; cudaMalloc(&a, 128); cudaMalloc(&o, 128); cudaMemcpy(a, h, 128, cudaMemcpyHostToDevice); cudaResourceDesc r = {}; r.resType = cudaResourceTypeLinear; r.res.linear.devPtr = a; r.res.linear.desc = cudaCreateChannelDesc<float>(); r.res.linear.sizeInBytes = 128;
  cudaTextureDesc d = {}; cudaTextureObject_t t; cudaCreateTextureObject(&t, &r, &d, nullptr); k<<<1, 32>>>(t, o); cudaMemcpy(h, o, 128, cudaMemcpyDeviceToHost); printf("%g\n", h[0]); cudaDestroyTextureObject(t); cudaFree(a); cudaFree(o); }
