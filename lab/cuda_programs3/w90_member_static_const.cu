// a non-constexpr static const member / a double const used in device code by value and in a host-only inline function
#include <cstdio>
struct Params { static const int N = 8; static const float dt; };
const float Params::dt = 0.5f;
__global__ void k(float* o) { o[threadIdx.x] = Params::N * Params::dt; }
int main() { float *o, h[32]; cudaMalloc(&o, 128); k<<<1, 32>>>(o); cudaMemcpy(h, o, 128, cudaMemcpyDeviceToHost); printf("%g\n", h[2]); cudaFree(o); }
