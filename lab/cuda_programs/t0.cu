#include <cstdio>
__global__ void k(int*a){a[threadIdx.x]=threadIdx.x;}
int main(){int*d;cudaMalloc(&d,128);k<<<1,32>>>(d);int h[32];cudaMemcpy(h,d,128,cudaMemcpyDeviceToHost);printf("%d\n",h[31]);cudaFree(d);}
