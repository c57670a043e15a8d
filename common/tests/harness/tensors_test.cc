// Are the inputs what they claim to be, and does device memory notice who writes next to it?
#include "harness/tensors.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "tests/chapter/on_device.h"

namespace harness {
namespace {

using attention::DType;
using attention::Problem;

Problem problem(int seq_q, int seq_k, int head_dim = 64, DType dtype = DType::fp16) {
  return {1, 2, 1, seq_q, seq_k, head_dim, dtype, attention::Mask::none, attention::default_scale(head_dim)};
}

// scale * q_i . k_j of the first head.
double logit(const Problem& p, const HostTensors& t, int i, int j) {
  double sum = 0;
  for (int d = 0; d < p.head_dim; d++) sum += double(t.q[i * p.head_dim + d]) * t.k[j * p.head_dim + d];
  return p.scale * sum;
}

// FNV-1a over the bits.
uint64_t fingerprint(const HostTensors& t) {
  uint64_t hash = 14695981039346656037u;
  for (const auto* tensor : {&t.q, &t.k, &t.v, &t.d_o})
    for (const float x : *tensor) {
      uint32_t bits;
      std::memcpy(&bits, &x, sizeof bits);
      hash = (hash ^ bits) * 1099511628211u;
    }
  return hash;
}

TEST(Inputs, AreTheSameForTheSameSeedAndOthersForAnother) {
  const Problem p = problem(33, 40);
  EXPECT_EQ(fingerprint(make_inputs(p, InputKind::spread, 1)), fingerprint(make_inputs(p, InputKind::spread, 1)));
  EXPECT_NE(fingerprint(make_inputs(p, InputKind::spread, 1)), fingerprint(make_inputs(p, InputKind::spread, 2)));
}

TEST(Inputs, AreTheSameOnEveryMachine) {
  EXPECT_EQ(fingerprint(make_inputs(problem(33, 40), InputKind::spread, 1)), 9861391986702190373u);
  EXPECT_EQ(fingerprint(make_inputs(problem(33, 40, 72, DType::bf16), InputKind::growing, 1)), 318464356220984229u);
}

TEST(Inputs, FitTheStorageType) {
  for (const DType dtype : {DType::fp16, DType::bf16})
    for (const InputKind kind : all_input_kinds) {
      if (kind == InputKind::overflow && dtype == DType::fp16) continue;  // is bf16's
      const HostTensors t = make_inputs(problem(33, 40, 64, dtype), kind, 1);
      for (const auto* tensor : {&t.q, &t.k, &t.v, &t.d_o}) {
        EXPECT_EQ(from_storage(to_storage(*tensor, dtype), dtype), *tensor) << name(kind);
        EXPECT_TRUE(std::all_of(tensor->begin(), tensor->end(), [](float x) { return std::isfinite(x); }));
      }
    }
}

TEST(Inputs, SpreadLogitsByTwo) {
  for (const int head_dim : {8, 64, 256}) {
    const Problem p = problem(200, 200, head_dim);
    const HostTensors t = make_inputs(p, InputKind::spread, 1);
    double sum = 0, squares = 0;
    for (int i = 0; i < 200; i++)
      for (int j = 0; j < 200; j++) {
        sum += logit(p, t, i, j);
        squares += std::pow(logit(p, t, i, j), 2);
      }
    EXPECT_NEAR(sum / 40000, 0, 0.3) << head_dim;
    EXPECT_NEAR(std::sqrt(squares / 40000), 2, 0.4) << head_dim;
  }
}

TEST(Inputs, GrowSoThatEveryTileRaisesTheMaximum) {
  const Problem p = problem(64, 256);
  const HostTensors t = make_inputs(p, InputKind::growing, 1);
  for (int i = 0; i < 64; i++) {
    double previous = -INFINITY;
    for (int tile = 0; tile < 256; tile += 64) {
      double largest = -INFINITY;
      for (int j = tile; j < tile + 64; j++) largest = std::max(largest, logit(p, t, i, j));
      EXPECT_GT(largest, previous) << "row " << i << ", tile " << tile;
      previous = largest;
    }
  }
}

// The keys that get more weight than all others together.
std::vector<int> dominating_keys(InputKind kind, const Problem& p) {
  const HostTensors t = make_inputs(p, kind, 1);
  std::vector<int> keys;
  for (int i = 0; i < p.seq_q; i++) {
    std::vector<double> logits;
    for (int j = 0; j < p.seq_k; j++) logits.push_back(logit(p, t, i, j));
    keys.push_back(int(std::max_element(logits.begin(), logits.end()) - logits.begin()));
  }
  return keys;
}

TEST(Inputs, SpikeWhereTheySay) {
  const Problem p = problem(40, 97);
  for (const int j : dominating_keys(InputKind::spike_first, p)) EXPECT_EQ(j, 0);
  for (const int j : dominating_keys(InputKind::spike_last, p)) EXPECT_EQ(j, 96);
  const std::vector<int> keys = dominating_keys(InputKind::spike_tiles, p);
  for (int i = 0; i < p.seq_q; i++) EXPECT_EQ(keys[i] % 32, i % 2 == 0 ? 0 : 31) << "row " << i;
}

// Key 0 outweighs any other key 2^18-fold, give or take 2^2, so that P of the others has few bits in fp16, or none.
TEST(Inputs, SinkIntoTheFirstKey) {
  for (const int head_dim : {64, 128}) {
    const Problem p = problem(3, 4096, head_dim);
    const HostTensors t = make_inputs(p, InputKind::sink, 1);
    double v = 0;
    for (const float x : t.v) v += x;
    EXPECT_NEAR(v / double(t.v.size()), 1, 0.1);
    for (int i = 0; i < 3; i++)
      for (int j = 1; j < 4096; j++)
        ASSERT_NEAR((logit(p, t, i, 0) - logit(p, t, i, j)) / M_LN2, 18, 2.5) << "row " << i << ", key " << j;
  }
}

// Below -FLT_MAX in bf16; and those that count so far below 0 that a maximum of 0 would leave nothing of them.
TEST(Inputs, OfOverflowBeginWithScoresThatFp32DoesNotHave) {
  Problem p = problem(3, 10);
  p.dtype = DType::bf16;
  const HostTensors t = make_inputs(p, InputKind::overflow, 1);
  for (int i = 0; i < 3; i++)
    for (int j = 0; j < 10; j++)
      if (j < 5) {
        EXPECT_LT(logit(p, t, i, j), -3.5e38);
      } else {
        EXPECT_NEAR(logit(p, t, i, j), -120, 10);
      }
}

// exp(89) is infinite in fp32, unless the maximum is subtracted.
TEST(Inputs, AreLargeEnoughForExpToOverflow) {
  const Problem p = problem(8, 64);
  const HostTensors t = make_inputs(p, InputKind::large, 1);
  for (int i = 0; i < 8; i++) {
    double largest = -INFINITY, smallest = INFINITY;
    for (int j = 0; j < 64; j++) {
      largest = std::max(largest, logit(p, t, i, j));
      smallest = std::min(smallest, logit(p, t, i, j));
    }
    if (i % 2 == 0)
      EXPECT_GT(largest, 89) << "row " << i;
    else
      EXPECT_LT(smallest, -89) << "row " << i;
  }
}

class Memory : public chapter_suite::OnDevice {};

TEST_F(Memory, StartsAsNaN) {
  for (const size_t guard : guards) {
    const GuardedBuffer buffer(100 * sizeof(float), guard);
    std::vector<float> values(100);
    buffer.download(values.data());
    EXPECT_TRUE(std::all_of(values.begin(), values.end(), [](float x) { return std::isnan(x); }));
  }
}

TEST_F(Memory, NoticesOneByteOnEitherSide) {
  const Problem p = problem(5, 7);
  const HostTensors inputs = make_inputs(p, InputKind::spread, 1);
  DeviceTensors device(p, inputs, 10, true, 256);
  EXPECT_EQ(device.broken_guard(), "");
  char* const dk = static_cast<char*>(device.dk.data());
  for (const ptrdiff_t offset :
       {ptrdiff_t(-256), ptrdiff_t(-1), ptrdiff_t(device.dk.bytes()), ptrdiff_t(device.dk.bytes()) + 255}) {
    check(cudaMemset(dk + offset, 0, 1));
    EXPECT_EQ(device.broken_guard(), "memory next to dk was written to") << offset;
    check(cudaMemset(dk + offset, 0xff, 1));
  }
  check(cudaMemset(dk, 0, device.dk.bytes()));
  EXPECT_EQ(device.broken_guard(), "");
}

TEST_F(Memory, TakesWhatWasAnnounced) {
  const Problem p = problem(5, 7);
  const HostTensors inputs = make_inputs(p, InputKind::spread, 1);
  for (const bool backward : {false, true}) {
    const DeviceTensors t(p, inputs, 10, backward);
    size_t bytes = 0;
    for (const auto* buffer : {&t.q, &t.k, &t.v, &t.o, &t.lse, &t.workspace, &t.d_o, &t.dq, &t.dk, &t.dv})
      bytes += buffer->bytes();
    EXPECT_EQ(bytes, device_bytes(p, 10, backward));
  }
}

TEST_F(Memory, MovesWithItsOwner) {
  DeviceBuffer a(16), b(32);
  void* const data = a.data();
  b = std::move(a);
  EXPECT_EQ(b.data(), data);
  EXPECT_EQ(b.bytes(), 16u);
  const DeviceBuffer c(std::move(b));
  EXPECT_EQ(c.data(), data);
  EXPECT_EQ(b.data(), nullptr);
}

}  // namespace
}  // namespace harness
