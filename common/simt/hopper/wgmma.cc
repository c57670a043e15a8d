#include "simt/hopper/wgmma.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <iterator>

#include "simt/cuda/fp8.h"
#include "simt/cuda/half.h"
#include "simt/engine/engine.h"

namespace simt {
namespace {

// Row and column, within the warp's 16 rows, of float i of a lane's share of D.
int d_row(int lane, int i) { return lane / 4 + i % 4 / 2 * 8; }
int d_column(int lane, int i) { return i / 4 * 8 + lane % 4 * 2 + i % 2; }

template <class Visit>
void for_each_share(int columns, Visit visit) {
  for (int lane = 0; lane < 32; ++lane)
    for (int i = 0; i < columns / 2; ++i) visit(lane, i, d_row(lane, i) * columns + d_column(lane, i));
}

bool is_poison(float x) { return std::bit_cast<std::uint32_t>(x) == 0xffffffff; }

const auto fp8_values = [] {
  std::array<std::array<float, 256>, 2> values;
  for (const auto type : {__NV_E4M3, __NV_E5M2})
    for (unsigned bits = 0; bits < 256; ++bits)
      values[type == __NV_E5M2][bits] = fp8_value(static_cast<unsigned char>(bits), type);
  return values;
}();

template <Element element>
float value_of(const char* at) {
  if constexpr (is_fp8(element)) return fp8_values[element == Element::e5m2][static_cast<unsigned char>(*at)];
  std::uint16_t bits;
  std::memcpy(&bits, at, sizeof bits);
  return element == Element::fp16 ? half_value(bits) : bfloat16_value(bits);
}

// f<element>(), of the one that it is.
template <class F>
void by_element(Element element, F&& f) {
  switch (element) {
    case Element::fp16:
      return f.template operator()<Element::fp16>();
    case Element::bf16:
      return f.template operator()<Element::bf16>();
    case Element::e4m3:
      return f.template operator()<Element::e4m3>();
    case Element::e5m2:
      return f.template operator()<Element::e5m2>();
  }
}

// [rows][depth] or, transposed, [depth][rows] floats of a matrix in shared memory.
template <class Place>
void read_matrix(const MatrixInShared& matrix, int first, int rows, const Worker& worker, Place place) {
  const int row_step = matrix.mn ? 1 : 0, k_step = matrix.mn ? 0 : 1;
  by_element(matrix.element, [&]<Element element>() {
    matrix.for_each_chunk(first, rows, [&](std::uint32_t address, int row, int k) {
      const char* const chunk = static_cast<const char*>(worker.shared().at(address));
      for (int i = 0; i < 16 / bytes_of(element); ++i)
        place(row - first + i * row_step, k + i * k_step) = value_of<element>(chunk + i * bytes_of(element));
    });
  });
}

}  // namespace

void Products::read_operands(const Product& product, const Worker& worker) {
  const ProductForm& form = product.form;
  auto& a = operands_.a;
  auto& b = operands_.b;
  if (form.a_in_registers) {
    by_element(form.a.element, [&]<Element element>() {
      constexpr int elements = 4 / bytes_of(element);  // of a register
      for (int lane = 0; lane < 32; ++lane)
        for (int r = 0; r < 4; ++r)
          for (int i = 0; i < elements; ++i)
            a[lane / 4 + r % 2 * 8][lane % 4 * elements + r / 2 * 4 * elements + i] =
                value_of<element>(reinterpret_cast<const char*>(&product.a[lane][r]) + i * bytes_of(element));
    });
  } else {
    read_matrix(form.a, static_cast<int>(product.warp % 4) * 16, 16, worker,
                [&](int row, int k) -> float& { return a[row][k]; });
  }
  if (form.negated)
    for (auto& row : a)
      for (float& element : row) element = -element;
  read_matrix(form.b, 0, form.columns, worker, [&](int column, int k) -> float& { return b[k][column]; });
}

namespace {

// The exponent of a number, as a significand of 1 to 2 has it; a subnormal one has that of the least normal.
int fp8_exponent(float x, int least) {
  return std::max(static_cast<int>(std::bit_cast<std::uint32_t>(x) >> 23 & 255) - 127, least);
}
constexpr int no_exponent = -1000;

// What a Hopper tensor core makes of a sum of products in eight bits, as far as an H200 was seen to: it aligns the
// products and what they are added to with the largest exponent that there is, keeps 13 bits behind that, and cuts off
// the rest; so it does of the sum. The exponent of a product is the sum of its factors', though it may be 2 or more.
// Eight columns at a time, a[k] and b[k] with their exponents.
constexpr int fp8_sum_bits = 13;
using EightFloats = float __attribute__((vector_size(32), aligned(4)));
using EightIntegers = std::int32_t __attribute__((vector_size(32), aligned(4)));
void add_products_of_eight_bits(const float* a, const int* a_exponents, const float* b, const int* b_exponents,
                                int row_of_b, int depth, float* sum) {
  EightFloats before;
  std::memcpy(&before, sum, sizeof before);
  const auto bits = [](EightFloats x) { return std::bit_cast<EightIntegers>(x); };
  EightFloats finite = before * 0;
  EightIntegers largest = before == 0 ? EightIntegers{} + no_exponent : (bits(before) >> 23 & 255) - 127;
  for (int k = 0; k < depth; ++k) {
    const EightFloats product = a[k] * *reinterpret_cast<const EightFloats*>(b + k * row_of_b);
    const EightIntegers both = a_exponents[k] + *reinterpret_cast<const EightIntegers*>(b_exponents + k * row_of_b);
    finite += product * 0;
    const EightIntegers own = product == 0 ? EightIntegers{} + no_exponent : both;
    largest = own > largest ? own : largest;
  }
  // Without products so small a number is all there is: its own bits are cut off, and nothing is aligned
  constexpr int least = -100;
  const EightIntegers alone = largest < least;
  const EightIntegers unit = alone ? EightIntegers{} : largest - fp8_sum_bits;  // 2^unit is the last bit that is kept
  const EightFloats to_units = std::bit_cast<EightFloats>((127 - unit) << 23),
                    from_units = std::bit_cast<EightFloats>((127 + unit) << 23);
  EightIntegers units = __builtin_convertvector(before * to_units, EightIntegers);
  for (int k = 0; k < depth; ++k)
    units += __builtin_convertvector(a[k] * *reinterpret_cast<const EightFloats*>(b + k * row_of_b) * to_units,
                                     EightIntegers);
  constexpr int kept = ~((1 << (23 - fp8_sum_bits)) - 1);
  const EightFloats after = alone ? before : __builtin_convertvector(units, EightFloats) * from_units;
  EightFloats result = std::bit_cast<EightFloats>(bits(after) & kept);
  for (int i = 0; i < 8; ++i)
    if (!(finite[i] == 0)) {
      result[i] = before[i];
      for (int k = 0; k < depth; ++k) result[i] += a[k] * b[k * row_of_b + i];
    }
  std::memcpy(sum, &result, sizeof result);
}

}  // namespace

// sum[16][columns] += the warp's rows of A times B. Four rows and eight columns at a time, so that no sum waits for the
// one before it; each in the order of k.
void Products::multiply(const Product& product, const Worker& worker, float* sum) {
  read_operands(product, worker);
  const int columns = product.form.columns, depth = depth_of(product.form.b.element);
  if (is_fp8(product.form.b.element)) {
    auto& [a_rows, b_rows, a_exponents, b_exponents] = operands_;
    const int least = product.form.b.element == Element::e4m3 ? -6 : -14;
    for (int k = 0; k < depth; ++k) {
      for (int row = 0; row < 16; ++row) a_exponents[row][k] = fp8_exponent(a_rows[row][k], least);
      for (int column = 0; column < columns; ++column) b_exponents[k][column] = fp8_exponent(b_rows[k][column], least);
    }
    const int row_of_b = static_cast<int>(std::size(b_rows[0]));
    for (int row = 0; row < 16; ++row)
      for (int column = 0; column < columns; column += 8)
        add_products_of_eight_bits(a_rows[row], a_exponents[row], b_rows[0] + column, b_exponents[0] + column, row_of_b,
                                   depth, sum + row * columns + column);
    return;
  }
  using Four = float __attribute__((vector_size(4 * sizeof(float)), aligned(4)));
  const auto& a = operands_.a;
  const auto& b = operands_.b;
  const auto four = [](auto* from) { return reinterpret_cast<const Four*>(from); };
  for (int row = 0; row < 16; row += 4)
    for (int column = 0; column < columns; column += 8) {
      float* const to = sum + row * columns + column;
      Four sums[4][2];
#pragma GCC unroll 4
      for (int r = 0; r < 4; ++r) {
        sums[r][0] = *four(to + r * columns);
        sums[r][1] = *four(to + r * columns + 4);
      }
      for (int k = 0; k < depth; ++k) {
        const Four left = *four(b[k] + column), right = *four(b[k] + column + 4);
#pragma GCC unroll 4
        for (int r = 0; r < 4; ++r) {
          sums[r][0] += a[row + r][k] * left;
          sums[r][1] += a[row + r][k] * right;
        }
      }
#pragma GCC unroll 4
      for (int r = 0; r < 4; ++r) {
        std::memcpy(to + r * columns, &sums[r][0], sizeof(Four));
        std::memcpy(to + r * columns + 4, &sums[r][1], sizeof(Four));
      }
    }
}

void Products::block_begins() {
  for (OfWarp& warp : warps_) warp = {};
  for (auto& forms : forms_) forms.clear();
}

// What no hardware could do, or could do only to matrices that are not laid out as device/wgmma.h says.
void Products::check(const Product& product, Worker& worker) const {
  const ProductForm& form = product.form;
  const auto wrong = [&](const std::string& what) {
    worker.fail(cudaErrorLaunchFailure, &worker.current(), line_of(product.pc), "wgmma: " + what);
  };
  const auto check_matrix = [&](const MatrixInShared& matrix, int rows, const std::string& name) {
    const std::string descriptor = "the descriptor of " + name + " has ";
    const std::uint64_t layout = matrix.descriptor >> 62;
    if ((layout != 1 && (layout == 3 || matrix.mn)) || (matrix.descriptor >> 49 & 7) != 0)
      wrong(descriptor + "another layout than the swizzle of 128 bytes" +
            (matrix.mn ? "" : ", or of 64 for rows of so many, or none for rows of 16"));
    const std::uint32_t row_bytes = matrix.row_bytes(), eight_rows = 8 * row_bytes;
    if (matrix.stride_bytes() == 0 || matrix.stride_bytes() % eight_rows != 0)
      wrong(descriptor + "a stride of " + std::to_string(matrix.stride_bytes()) +
            " bytes from eight rows to the next eight: must be a multiple of " + std::to_string(eight_rows) +
            ", since they take that much");
    if (matrix.mn && rows > 64 && (matrix.page_bytes() == 0 || matrix.page_bytes() % 1024 != 0))
      wrong(descriptor + std::to_string(matrix.page_bytes()) +
            " bytes from a page to the next: must be a multiple of 1024, since a page is whole groups of eight rows");
    if (matrix.start() / row_bytes % 8 != 0)
      wrong(descriptor + "an address that is " + std::to_string(matrix.start() % eight_rows) +
            " bytes behind a multiple of " + std::to_string(eight_rows) + ": must be in the first of eight rows");
    if (matrix.mn ? matrix.start() % 128 != 0 : row_bytes > 16 && matrix.start() % row_bytes > row_bytes - 32)
      wrong(descriptor + "an address at byte " + std::to_string(matrix.start() % row_bytes) +
            " of a row: " + std::to_string(depth_of(matrix.element)) + " elements do not fit behind it");
    matrix.for_each_chunk(0, rows, [&](std::uint32_t address, int, int) {
      if (worker.shared().at(address) == nullptr)
        wrong(descriptor + "address " + std::to_string(matrix.start()) + ", " + std::to_string(matrix.page_bytes()) +
              " bytes from a page to the next and a stride of " + std::to_string(matrix.stride_bytes()) +
              " bytes: with " + std::to_string(rows) + " rows it reaches byte " +
              std::to_string(std::int64_t(address) - first_shared_address) + " of dynamic shared memory");
    });
  };
  const OfWarp& own = warps_[product.warp];
  const auto& forms = forms_[product.warp / 4];
  const bool another_came = own.started < forms.size();
  const bool as_another = another_came && forms[own.started] == form;  // whose matrices have been looked at
  if (!as_another) {
    if (!form.a_in_registers) check_matrix(form.a, 64, "A");
    check_matrix(form.b, form.columns, "B");
  }
  if (own.fences == 0) wrong("no wgmma.fence came before the warp's first product");
  if (another_came && !as_another)
    wrong("product " + std::to_string(own.started) +
          " of this warpgroup is another one in another of its warps: their descriptors or forms differ");
}

void Products::start(const Product& product, Worker& worker) {
  check(product, worker);
  OfWarp& own = warps_[product.warp];
  auto& forms = forms_[product.warp / 4];
  if (own.started++ == forms.size()) forms.push_back(product.form);

  const int columns = product.form.columns;
  Sum& sum = own.sums[product.d[0]];
  if (sum.in_flight++ == 0) {
    bool changed = sum.values.size() != static_cast<std::size_t>(16 * columns);
    sum.values.resize(16 * columns);
    for_each_share(columns, [&](int lane, int i, int place) {
      const float value = product.share(lane, i);
      changed = changed || std::memcmp(&value, &sum.values[place], sizeof value) != 0;
      sum.values[place] = value;
    });
    if (product.form.accumulate && changed && sum.fences == own.fences)
      worker.fail(cudaErrorLaunchFailure, &worker.current(), line_of(product.pc),
                  "wgmma: adds to registers that the threads have written, without a wgmma.fence since then");
  }
  for_each_share(columns, [&](int lane, int i, int) { product.share(lane, i) = std::bit_cast<float>(0xffffffff); });
  own.pending.push_back(product);
  worker.observe(&Observer::product_starts, product);
}

void Products::wait(int pending_groups, Worker& worker) {
  OfWarp& own = warps_[worker.current().number / 32];
  const auto last = own.pending.begin() + static_cast<std::ptrdiff_t>(own.groups.finish(pending_groups));
  for (auto product = own.pending.begin(); product != last; ++product) {
    const int columns = product->form.columns;
    Sum& sum = own.sums[product->d[0]];
    if (!product->form.accumulate) std::fill(sum.values.begin(), sum.values.end(), 0.f);
    multiply(*product, worker, sum.values.data());
    worker.observe(&Observer::product_ends, *product);
    if (--sum.in_flight > 0) continue;
    sum.fences = own.fences;
    for_each_share(columns, [&](int lane, int i, int place) {
      if (!is_poison(product->share(lane, i)))
        worker.fail(cudaErrorLaunchFailure, &worker.current(), line_of(product->pc),
                    "wgmma: lane " + std::to_string(lane) + " of warp " + std::to_string(product->warp) +
                        " has written to D before it waited for this product");
      product->share(lane, i) = sum.values[place];
    });
  }
  own.pending.erase(own.pending.begin(), last);
}

// All lanes of a warp call it between two products: the first to come does it.
void Products::commit(const Worker& worker) {
  OfWarp& own = warps_[worker.current().number / 32];
  if (++own.commits_of_lane[worker.current().lane] <= own.commits) return;
  ++own.commits;
  own.groups.commit(own.pending.size());
}

void Products::fence(const Worker& worker) { ++warps_[worker.current().number / 32].fences; }

const Product* Products::oldest(unsigned warp) const {
  return warps_[warp].pending.empty() ? nullptr : &warps_[warp].pending.front();
}

const Product* Products::owner(const Worker& worker, const void* address) const {
  const auto lane = static_cast<int>(worker.current().lane);
  for (const Product& product : warps_[worker.current().number / 32].pending) {
    const int floats = product.form.columns / 2;
    const float* d = product.d[lane];
    if (product.scattered.empty() && address >= d && address < d + floats) return &product;
    for (int i = 0; i < floats && !product.scattered.empty(); ++i)
      if (address >= &product.share(lane, i) && address < &product.share(lane, i) + 1) return &product;
  }
  return nullptr;
}

std::string Products::left_over() const {
  for (unsigned group = 0; group < forms_.size(); ++group)
    for (unsigned warp = 4 * group; warp < 4 * group + 4; ++warp)
      if (warps_[warp].started != forms_[group].size())
        return "wgmma: warp " + std::to_string(warp) + " has started " + std::to_string(warps_[warp].started) +
               " products, and another warp of its warpgroup " + std::to_string(forms_[group].size());
  return "";
}

}  // namespace simt
