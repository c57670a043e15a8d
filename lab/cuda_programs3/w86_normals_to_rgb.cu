// a ray tracer writes its colours unclamped as unsigned
#include <cstdio>
__global__ void shade(uchar4* img, int n) { int i = threadIdx.x; float s = 1.3f * (i - 8) / 8.f; img[i] = make_uchar4(255 * s, 255.99f * s, (unsigned)(255 * s), 255); }
int main() { uchar4 *d, h[16]; cudaMalloc(&d, sizeof h); shade<<<1, 16>>>(d, 16); cudaMemcpy(h, d, sizeof h, cudaMemcpyDeviceToHost); for (auto p : h) printf("%d %d %d\n", p.x, p.y, p.z); cudaFree(d); }
