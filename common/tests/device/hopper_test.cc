// mbarriers, bulk copies and wgmma: where each element lies. PTX ISA, "Asynchronous Warpgroup Level Matrix
// Multiply-Accumulate Instructions", "Swizzling Modes". On the engine and on a GPU of compute capability 9.0.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>

#include "device/cuda_error.h"
#include "device/tensor_map.h"
#include "hopper_kernels.h"
#include "on_device.h"
#include "storage.h"

namespace device_tests {
namespace {

template <class Fixture = testing::Test>
class OnHopper : public OnDevice<Fixture> {
 protected:
  void SetUp() override {
    OnDevice<Fixture>::SetUp();
    if (device_present() && !hopper_present()) GTEST_SKIP() << "needs a GPU of compute capability 9.0";
  }
};

// What a box of a tensor looks like in shared memory: visit(place there, place in the tensor or -1), both in elements.
// Row r of 64 is 128 bytes from its neighbours, and its chunk c lies in place c ^ r % 8. Of rows of 32, two are in 128
// bytes, and the place is c ^ r / 2 % 4.
template <class Visit>
void for_each_element(const Boxes& boxes, const std::vector<int>& at, Visit visit) {
  const int columns = boxes.box[0], chunks = columns / 8;
  int rows = 1;
  for (size_t i = 1; i < boxes.box.size(); i++) rows *= boxes.box[i];
  for (int row = 0; row < rows; row++)
    for (int column = 0; column < columns; column++) {
      int rest = row, index = at[0] + column, stride = boxes.sizes[0];
      bool inside = index >= 0 && index < boxes.sizes[0];
      for (size_t i = 1; i < boxes.box.size(); i++) {
        const int coordinate = at[i] + rest % boxes.box[i];
        rest /= boxes.box[i];
        inside = inside && coordinate >= 0 && coordinate < boxes.sizes[i];
        index += coordinate * stride;
        stride *= boxes.sizes[i];
      }
      visit(row * columns + (column / 8 ^ row * chunks / 8 % chunks) * 8 + column % 8, inside ? index : -1);
    }
}

Halves counted(size_t size, uint16_t first) {
  Halves numbers(size);
  std::iota(numbers.begin(), numbers.end(), first);
  return numbers;
}

size_t product_of(const std::vector<int>& sizes) {
  return size_t(std::accumulate(sizes.begin(), sizes.end(), 1, std::multiplies<>()));
}

struct BoxCase {
  Boxes boxes;
  std::vector<int> at;
};

// Whole, beyond the end and before the beginning, in each dimension.
const BoxCase box_cases[] = {
    {{{64, 40}, {64, 16}}, {0, 8}},
    {{{64, 40}, {64, 16}}, {0, 32}},
    {{{64, 40}, {64, 16}}, {0, -5}},
    {{{72, 11}, {64, 24}}, {16, 3}},
    {{{72, 11}, {64, 24}}, {-16, -4}},
    {{{64, 10, 3}, {64, 8, 2}}, {0, 4, 2}},
    {{{64, 20, 2, 3}, {64, 16, 2, 1}}, {0, 0, 0, 1}},
    {{{64, 20, 2, 3}, {64, 16, 2, 1}}, {0, 16, 0, 2}},
    {{{64, 20, 2, 3}, {64, 16, 2, 1}}, {0, 40, 0, 2}},  // nothing of it is inside
    {{{64, 20, 2, 3, 2}, {64, 16, 2, 1, 2}}, {0, 8, 0, 2, 0}},
    {{{56, 9, 4, 2, 3}, {64, 8, 3, 1, 1}}, {0, 3, 2, 1, 2}},
    {{{32, 40}, {32, 16}}, {0, 9}},  // rows of 64 bytes
    {{{40, 11}, {32, 24}}, {16, 2}},
    {{{40, 11}, {32, 24}}, {-16, -5}},
};

class TensorCopies : public OnHopper<testing::TestWithParam<BoxCase>> {};

TEST_P(TensorCopies, BringEveryElementToItsPlaceAndZerosFromOutside) {
  const auto& [boxes, at] = GetParam();
  const Halves tensor = counted(product_of(boxes.sizes), 1);
  const Halves shared = load_box(boxes, tensor, at);
  for_each_element(boxes, at, [&](int place, int index) {
    ASSERT_EQ(shared[place], index < 0 ? 0 : tensor[index]) << "element " << place << " of the box";
  });
}

class TensorStores : public TensorCopies {};  // from no coordinate below 0: the GPU stops

TEST_P(TensorStores, WriteWhatIsInsideAndNothingElse) {
  const auto& [boxes, at] = GetParam();
  const Halves before(product_of(boxes.sizes), 0xfffe);
  const Halves shared = counted(product_of(boxes.box), 7);
  const Halves after = store_box(boxes, before, at, shared);
  Halves expected = before;
  for_each_element(boxes, at, [&](int place, int index) {
    if (index >= 0) expected[index] = shared[place];
  });
  ASSERT_EQ(after, expected);
}
std::string name_of_box(const testing::TestParamInfo<BoxCase>& info) {
  std::string name = "at";
  for (const int coordinate : info.param.at)
    name += (coordinate < 0 ? "_minus" : "_") + std::to_string(std::abs(coordinate));
  return name;
}

std::vector<BoxCase> without_negative_coordinates() {
  std::vector<BoxCase> cases;
  for (const BoxCase& c : box_cases)
    if (*std::min_element(c.at.begin(), c.at.end()) >= 0) cases.push_back(c);
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Boxes, TensorCopies, testing::ValuesIn(box_cases), name_of_box);
INSTANTIATE_TEST_SUITE_P(Boxes, TensorStores, testing::ValuesIn(without_negative_coordinates()), name_of_box);

class BulkCopies : public OnHopper<> {};

TEST_F(BulkCopies, OfBytesLoadStoreAndAdd) {
  Floats from(512), to(512);
  std::iota(from.begin(), from.end(), 1.f);
  std::iota(to.begin(), to.end(), 5000.f);
  Floats expected(512);
  for (int i = 0; i < 512; i++) expected[i] = to[i] + 2 * from[i];
  EXPECT_EQ(bulk_copies(from, to), expected);
}

TEST(TensorMaps, SayWhatTheyCannotBe) {
  alignas(16) static const __half data[64] = {};
  const auto said = [](auto make) -> std::string {
    try {
      make();
    } catch (const CudaError& error) {
      return error.what();
    }
    return "nothing";
  };
  EXPECT_EQ(said([] {
              tensor_map(data + 1, {64, 8}, {128}, {64, 8});
            }),
            "tensor map: the tensor's address is not a multiple of 16");
  EXPECT_EQ(said([] {
              tensor_map(data, {64, 8}, {136}, {64, 8});
            }),
            "tensor map: the stride of dimension 1 is 136 bytes: must be a multiple of 16 below 2^40");
  EXPECT_EQ(said([] {
              tensor_map(data, {64, 0}, {128}, {64, 8});
            }),
            "tensor map: the size of dimension 1 is 0: must be 1 to 2^32");
  EXPECT_EQ(said([] {
              tensor_map(data, {64, 8}, {128}, {64, 257});
            }),
            "tensor map: the box of dimension 1 is 257: must be 1 to 256");
  EXPECT_EQ(said([] {
              tensor_map(data, {128, 8}, {256}, {128, 8});
            }),
            "tensor map: a row of the box is 256 bytes: must be 128 or 64");
}

class Mbarriers : public OnHopper<> {};

TEST_F(Mbarriers, PassBuffersOfARingFromProducerToConsumer) {
  for (const int rounds : {1, 2, 3, 20}) {
    Words from(32 * rounds);
    std::iota(from.begin(), from.end(), 1u);
    EXPECT_EQ(through_a_ring(from), from);
  }
}

TEST_F(Mbarriers, PassBuffersBetweenBlocksOfACluster) {
  for (const int rounds : {1, 2, 3, 20}) {
    const size_t size = size_t(32) * rounds;
    Words from(size);
    std::iota(from.begin(), from.end(), 1u);
    const Words read = through_clusters(from);
    for (size_t i = 0; i < 2 * size; i++) ASSERT_EQ(read[i], from[i % size]) << i;
    for (size_t block = 0; block < 2; block++)
      for (size_t i = rounds > 2 ? size - 64 : 0; i < size; i++)
        ASSERT_EQ(read[(2 + block) * size + i], from[i] + (block ^ 1)) << block << ", " << i;
  }
}

class Warpgroups : public OnHopper<> {};

TEST_F(Warpgroups, ElectOneLaneOfEachWarpAlwaysTheSame) {
  const std::vector<int> chosen = elected();
  EXPECT_EQ(std::count(chosen.begin(), chosen.begin() + 32, 1), 1);
  EXPECT_TRUE(std::equal(chosen.begin(), chosen.begin() + 32, chosen.begin() + 32));
}

TEST_F(Warpgroups, GiveAndTakeRegisters) {
  EXPECT_EQ(with_other_registers(), (std::vector<int>{127 * 64, 127 * 64 + 128 * 128, 127 * 64 + 128 * 256}));
}

class Wgmma : public OnHopper<testing::TestWithParam<int>> {
 protected:
  const ProductCase& of() const { return product_cases()[GetParam()]; }
  uint16_t bits(int x) const { return integer_bits(of().dtype, x); }

  // A [64, 16] and B [16, N] of these integers, and the product's every element. The first half of the runs adds to D.
  template <class A, class B, class D>
  void expect_product(int run, A a_value, B b_value, D d_value) const {
    const int columns = of().columns;
    Halves a, b;
    Floats before;
    for (int i = 0; i < 64 * 16; i++) a.push_back(bits(a_value(i / 16, i % 16)));
    for (int i = 0; i < 16 * columns; i++) b.push_back(bits(b_value(i / columns, i % columns)));
    for (int i = 0; i < 64 * columns; i++) before.push_back(1000.f + float(i));
    const bool accumulate = run < 8;
    const Floats d = product(of(), a, b, before, accumulate, run % 4);
    for (int i = 0; i < 64 * columns; i++)
      ASSERT_EQ(d[i], float(d_value(i / columns, i % columns)) + (accumulate ? before[i] : 0))
          << "row " << i / columns << ", column " << i % columns << ", run " << run;
  }
};

// Each row of A is 1 in one place: that row of D is a row of B, which is known by its columns, and by its number.
TEST_P(Wgmma, EveryElementOfAFindsItsRowOfB) {
  for (int run = 0; run < 16; run++) {
    const auto chosen = [&](int row) { return (row + run) % 16; };
    const auto a = [&](int row, int k) { return k == chosen(row); };
    expect_product(
        run, a, [](int, int column) { return column + 1; }, [](int, int column) { return column + 1; });
    expect_product(
        run, a, [](int k, int) { return k + 1; }, [&](int row, int) { return chosen(row) + 1; });
  }
}

// The other way round: each column of B is 1 in one place.
TEST_P(Wgmma, EveryElementOfBFindsItsColumnOfA) {
  for (int run = 0; run < 16; run++) {
    const auto chosen = [&](int column) { return (column / 8 + column + run) % 16; };
    const auto b = [&](int k, int column) { return k == chosen(column); };
    expect_product(
        run, [](int row, int) { return row + 1; }, b, [](int row, int) { return row + 1; });
    expect_product(
        run, [](int, int k) { return k + 1; }, b, [&](int, int column) { return chosen(column) + 1; });
  }
}

std::string name_of(const testing::TestParamInfo<int>& info) {
  const ProductCase& of = product_cases()[info.param];
  const char* const names[] = {"K", "Mn", "Registers", "Plain"};
  return name(of.dtype) + std::string("_") + std::to_string(of.columns) + "_" + names[int(of.a)] + "_" +
         names[int(of.b)];
}

INSTANTIATE_TEST_SUITE_P(Forms, Wgmma, testing::Range(0, int(product_cases().size())), name_of);

class Flash : public OnHopper<> {};

TEST_F(Flash, TilesFromTensorCopiesMakeTwoProducts) {
  const auto small = [](int n, int modulus) { return n * 7 % modulus - modulus / 2; };
  const auto matrix = [&](int modulus) {
    Halves elements(64 * 128);
    for (int i = 0; i < 64 * 128; i++) {
      const int x = small(i + i / 128, modulus);
      elements[i] = uint16_t(integer_bits(DType::fp16, std::abs(x)) | (x < 0 ? 0x8000 : 0));
    }
    return elements;
  };
  const auto element = [&](int row, int column, int modulus) { return small(row * 129 + column, modulus); };
  const auto [first, second] = two_products(matrix(5), matrix(7), matrix(3));
  for (int row = 0; row < 64; row++) {
    std::vector<int> s(64);
    for (int key = 0; key < 64; key++) {
      for (int d = 0; d < 128; d++) s[key] += element(row, d, 5) * element(key, d, 7);
      ASSERT_EQ(first[row * 64 + key], s[key]) << row << ", " << key;
    }
    for (int d = 0; d < 128; d++) {
      int o = 0;
      for (int key = 0; key < 64; key++) o += s[key] * element(key, d, 3);
      ASSERT_EQ(second[row * 128 + d], o) << row << ", " << d;
    }
  }
}

}  // namespace
}  // namespace device_tests
