#include <gtest/gtest.h>

#include "simt/front/testing.h"
#include "transpose.cuh"

template <int PADDING>
simt::Traced traced() {
  const int n = 2 * TILE;
  float *in, *out;
  cudaMalloc(&in, n * n * sizeof(float));
  cudaMalloc(&out, n * n * sizeof(float));
  cudaMemset(in, 0, n * n * sizeof(float));
  const simt::Traced traced([&] { transpose<PADDING><<<dim3(2, 2), dim3(TILE, TILE)>>>(out, in, n); });
  cudaFree(in);
  cudaFree(out);
  return traced;
}

TEST(Transpose, KeepsItsPromises) {
  EXPECT_TRUE(simt::no_mistakes(traced<1>()));
  EXPECT_TRUE(simt::no_bank_conflicts(traced<1>()));
  EXPECT_TRUE(simt::sectors_a_request_at_most(traced<1>(), 4));
}

TEST(Transpose, NeedsThePadding) { EXPECT_FALSE(simt::no_bank_conflicts(traced<0>())); }
