// a functor without __device__ on a device_vector
#include <cstdio>
#include <thrust/device_vector.h>
#include <thrust/transform.h>
struct Square { float operator()(float x) const { return x * x; } };
int main() { thrust::device_vector<float> v(64, 3.f); thrust::transform(v.begin(), v.end(), v.begin(), Square()); printf("%g\n", (float)v[5]); }
