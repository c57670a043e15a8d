// builtins of the device in host code
#include <cstdio>
int total = 0;
void add(int x) { atomicAdd(&total, x); }
float fast(float x) { return __fdividef(x, 3.f) + __expf(0.f); }
__global__ void k() {}
int main() { k<<<1, 1>>>(); cudaDeviceSynchronize(); add(3); printf("%d %g\n", total, fast(3.f)); }
