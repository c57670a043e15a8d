// scrolling an image up by one row within one buffer
#include <cstdio>
int main() { const int w = 64, h = 64; static unsigned char img[w * h]; for (int i = 0; i < w * h; i++) img[i] = i / w; unsigned char* d; cudaMalloc(&d, w * h); cudaMemcpy(d, img, w * h, cudaMemcpyHostToDevice); cudaMemcpy2D(d, w, d + w, w, w, h - 1, cudaMemcpyDeviceToDevice); cudaMemcpy(img, d, w * h, cudaMemcpyDeviceToHost); printf("%d %d\n", img[0], img[62 * w]); cudaFree(d); }
