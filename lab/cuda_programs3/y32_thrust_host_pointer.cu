// thrust::device with a pointer of the host
#include <cstdio>
#include <vector>
#include <thrust/sort.h>
#include <thrust/execution_policy.h>
int main() { std::vector<int> v(100); for (int i = 0; i < 100; i++) v[i] = 100 - i; thrust::sort(thrust::device, v.data(), v.data() + 100); printf("%d\n", v[0]); }
