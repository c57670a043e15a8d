#include <iostream>
__global__ void k() { std::cout << "thread " << threadIdx.x << std::endl; }
int main() { k<<<1, 4>>>(); cudaDeviceSynchronize(); }
