// CUB's primitives and algorithms, each against a loop of the host.
#include <algorithm>
#include <cstdio>
#include <cub/cub.cuh>
#include <map>
#include <numeric>
#include <random>
#include <vector>

static int wrong = 0;
#define EXPECT(condition) \
  if (!(condition)) std::printf("line %d: not %s\n", __LINE__, #condition), ++wrong

template <class T>
struct Device {
  explicit Device(const std::vector<T>& from) : size(from.size()) {
    cudaMalloc(&memory, size * sizeof(T));
    cudaMemcpy(memory, from.data(), size * sizeof(T), cudaMemcpyHostToDevice);
  }
  explicit Device(std::size_t n) : Device(std::vector<T>(n)) {}
  ~Device() { cudaFree(memory); }
  std::vector<T> host() const {
    std::vector<T> all(size);
    cudaMemcpy(all.data(), memory, size * sizeof(T), cudaMemcpyDeviceToHost);
    return all;
  }
  operator T*() const { return memory; }
  std::size_t size;
  T* memory = nullptr;
};

// As every algorithm of the device is called: once for the size, once for the result.
template <class Call>
static void twice(Call call) {
  std::size_t bytes = 0;
  EXPECT(call(nullptr, bytes) == cudaSuccess && bytes > 0);
  void* storage = nullptr;
  cudaMalloc(&storage, bytes);
  EXPECT(call(storage, bytes) == cudaSuccess);
  cudaFree(storage);
}

static std::vector<int> numbers(int n, int most, unsigned seed = 1) {
  std::mt19937 random(seed);
  std::vector<int> all(n);
  for (int& each : all) each = int(random() % (2 * most)) - most;
  return all;
}

// --- Warps ---

template <int threads>
__global__ void warps(const int* in, int* out) {
  using Reduce = cub::WarpReduce<int, threads>;
  using Scan = cub::WarpScan<int, threads>;
  __shared__ typename Reduce::TempStorage reduce[64 / threads];
  __shared__ typename Scan::TempStorage scan[64 / threads];
  const int warp = threadIdx.x / threads, lane = threadIdx.x % threads, x = in[threadIdx.x];
  const int sum = Reduce(reduce[warp]).Sum(x);
  const int most = Reduce(reduce[warp]).Reduce(x, cub::Max(), threads - 1);
  const int run = Reduce(reduce[warp]).HeadSegmentedSum(x, lane % 3 == 0);
  int until, before, all, highest;
  Scan(scan[warp]).InclusiveSum(x, until, all);
  Scan(scan[warp]).ExclusiveSum(x, before);
  Scan(scan[warp]).ExclusiveScan(x, highest, -1000, cub::Max());
  int* own = out + 7 * threadIdx.x;
  own[0] = lane == 0 ? sum : 0;
  own[1] = lane == 0 ? most : 0;
  own[2] = lane % 3 == 0 ? run : 0;
  own[3] = until, own[4] = before, own[5] = all, own[6] = highest;
}
template <int threads>
static void test_warps() {
  const std::vector<int> in = numbers(64, 100);
  Device<int> d_in(in), d_out(7 * 64);
  warps<threads><<<1, 64>>>(d_in, d_out);
  const std::vector<int> out = d_out.host();
  for (int t = 0; t < 64; ++t) {
    const auto first = in.begin() + t / threads * threads, own = in.begin() + t, last = first + threads;
    const int lane = t % threads, *const found = &out[7 * t];
    EXPECT(found[0] == (lane ? 0 : std::accumulate(first, last, 0)));
    EXPECT(found[1] == (lane ? 0 : *std::max_element(first, last - 1)));
    EXPECT(found[2] == (lane % 3 ? 0 : std::accumulate(own, std::min(own + 3, last), 0)));
    EXPECT(found[3] == std::accumulate(first, own + 1, 0) && found[4] == found[3] - *own);
    EXPECT(found[5] == std::accumulate(first, last, 0));
    EXPECT(found[6] == (lane ? std::max(-1000, *std::max_element(first, own)) : -1000));
  }
}

// --- Blocks ---

struct Running {  // what came before the tile
  int total;
  __device__ int operator()(int tile) {
    const int before = total;
    total += tile;
    return before;
  }
};

template <int threads, int items, cub::BlockLoadAlgorithm loads, cub::BlockStoreAlgorithm stores>
__global__ void blocks(const int* in, int* scanned, int* sums, int valid) {
  using Load = cub::BlockLoad<int, threads, items, loads>;
  using Store = cub::BlockStore<int, threads, items, stores>;
  using Scan = cub::BlockScan<int, threads>;
  using Reduce = cub::BlockReduce<int, threads>;
  __shared__ union {
    typename Load::TempStorage load;
    typename Store::TempStorage store;
    typename Scan::TempStorage scan;
    typename Reduce::TempStorage reduce;
  } temp;
  Running running{1000};
  for (int tile = 0; tile < 2; ++tile) {
    int x[items];
    Load(temp.load).Load(in + tile * threads * items, x, valid, 0);
    __syncthreads();
    const int sum = Reduce(temp.reduce).Sum(x);
    __syncthreads();
    const int most = Reduce(temp.reduce).Reduce(x[0], cub::Max(), threads - 3);
    if (threadIdx.x == 0) sums[2 * tile] = sum, sums[2 * tile + 1] = most;
    __syncthreads();
    Scan(temp.scan).ExclusiveSum(x, x, running);
    __syncthreads();
    Store(temp.store).Store(scanned + tile * threads * items, x, valid);
    __syncthreads();
  }
}
template <int threads, int items, cub::BlockLoadAlgorithm loads, cub::BlockStoreAlgorithm stores>
static void test_blocks() {
  constexpr int n = threads * items, valid = n - 5;
  const std::vector<int> in = numbers(2 * n, 100);
  Device<int> d_in(in), scanned(2 * n), sums(4);
  blocks<threads, items, loads, stores><<<1, threads>>>(d_in, scanned, sums, valid);
  const std::vector<int> out = scanned.host(), sum = sums.host();
  int before = 1000;
  for (int tile = 0; tile < 2; ++tile) {
    const int start = before;
    for (int i = 0; i < valid; before += in[tile * n + i++]) EXPECT(out[tile * n + i] == before);
    for (int i = valid; i < n; ++i) EXPECT(out[tile * n + i] == 0);
    EXPECT(sum[2 * tile] == before - start);
    int most = -1000;
    constexpr bool striped = loads == cub::BLOCK_LOAD_STRIPED;
    for (int t = 0; t < threads - 3; ++t) {
      const int place = striped ? t : t * items;
      most = std::max(most, place < valid ? in[tile * n + place] : 0);
    }
    EXPECT(sum[2 * tile + 1] == most);
  }
}

template <class Key, int threads, int items>
__global__ void sorts(Key* keys, int* values, bool descending) {
  using Sort = cub::BlockRadixSort<Key, threads, items, int>;
  using Exchange = cub::BlockExchange<Key, threads, items>;
  __shared__ typename Sort::TempStorage temp;
  __shared__ typename Exchange::TempStorage exchange;
  Key key[items];
  int value[items];
  cub::LoadDirectStriped<threads>(threadIdx.x, keys, key);
  cub::LoadDirectBlocked(threadIdx.x, values, value);
  Exchange(exchange).StripedToBlocked(key);
  if (descending)
    Sort(temp).SortDescendingBlockedToStriped(key, value);
  else
    Sort(temp).SortBlockedToStriped(key, value);
  cub::StoreDirectStriped<threads>(threadIdx.x, keys, key);
  cub::StoreDirectStriped<threads>(threadIdx.x, values, value);
}
template <class Key>
static void test_sorts(bool descending) {
  constexpr int threads = 96, items = 3, n = threads * items;
  std::vector<std::pair<Key, int>> pairs;
  for (const int x : numbers(n, 50)) pairs.emplace_back(Key(x) / 2, int(pairs.size()));
  std::vector<Key> keys;
  std::vector<int> values;
  for (const auto& [key, value] : pairs) keys.push_back(key), values.push_back(value);
  Device<Key> d_keys(keys);
  Device<int> d_values(values);
  sorts<Key, threads, items><<<1, threads>>>(d_keys, d_values, descending);
  std::stable_sort(pairs.begin(), pairs.end(),
                   [&](const auto& a, const auto& b) { return descending ? b.first < a.first : a.first < b.first; });
  keys = d_keys.host(), values = d_values.host();
  for (int i = 0; i < n; ++i) EXPECT(keys[i] == pairs[i].first && values[i] == pairs[i].second);
}

__global__ void neighbours(const int* in, int* heads, int* differences, unsigned* histogram) {
  using Heads = cub::BlockDiscontinuity<int, 64>;
  using Difference = cub::BlockAdjacentDifference<int, 64>;
  using Histogram = cub::BlockHistogram<int, 64, 2, 8>;
  __shared__ typename Heads::TempStorage a;
  __shared__ typename Difference::TempStorage b;
  __shared__ typename Histogram::TempStorage c;
  __shared__ unsigned bins[8];
  int x[2], flags[2], steps[2];
  cub::LoadDirectBlocked(threadIdx.x, in, x);
  Heads(a).FlagHeads(flags, x, cub::Inequality());
  Difference(b).SubtractLeft(x, steps, cub::Difference());
  Histogram(c).Histogram(x, bins);
  cub::StoreDirectBlocked(threadIdx.x, heads, flags);
  cub::StoreDirectBlocked(threadIdx.x, differences, steps);
  __syncthreads();
  if (threadIdx.x < 8) histogram[threadIdx.x] = bins[threadIdx.x];
}
static void test_neighbours() {
  std::vector<int> in = numbers(128, 4);
  for (int& x : in) x += 4;
  Device<int> d_in(in), heads(128), differences(128);
  Device<unsigned> histogram(8);
  neighbours<<<1, 64>>>(d_in, heads, differences, histogram);
  for (int i = 0; i < 128; ++i) {
    EXPECT(heads.host()[i] == (i == 0 || in[i] != in[i - 1]));
    EXPECT(differences.host()[i] == (i > 0 ? in[i] - in[i - 1] : in[0]));
  }
  for (int bin = 0; bin < 8; ++bin) EXPECT(histogram.host()[bin] == std::count(in.begin(), in.end(), bin));
}

// --- The device ---

struct Even {
  __host__ __device__ bool operator()(int x) const { return x % 2 == 0; }
};
struct Square {
  __host__ __device__ int operator()(int x) const { return x * x; }
};

static void test_device(int n) {
  const std::vector<int> in = numbers(n, 20);
  Device<int> d_in(in), out(n + 1), values(n), lengths(n + 1), found(1);
  twice([&](void* s, std::size_t& b) { return cub::DeviceReduce::Sum(s, b, d_in.memory, found.memory, n); });
  EXPECT(found.host()[0] == std::accumulate(in.begin(), in.end(), 0));
  twice([&](void* s, std::size_t& b) {
    cub::TransformInputIterator<int, Square, int*> squares(d_in, Square());
    return cub::DeviceReduce::Max(s, b, squares, found.memory, n);
  });
  int most = 0;
  for (const int x : in) most = std::max(most, x * x);
  EXPECT(n == 0 || found.host()[0] == most);
  Device<cub::KeyValuePair<int, int>> least(1);
  twice([&](void* s, std::size_t& b) { return cub::DeviceReduce::ArgMin(s, b, d_in.memory, least.memory, n); });
  EXPECT(n == 0 || least.host()[0].key == std::min_element(in.begin(), in.end()) - in.begin());

  twice([&](void* s, std::size_t& b) { return cub::DeviceScan::ExclusiveSum(s, b, d_in.memory, out.memory, n); });
  for (int i = 0, before = 0; i < n; before += in[i++]) EXPECT(out.host()[i] == before);
  twice([&](void* s, std::size_t& b) {
    return cub::DeviceScan::InclusiveScan(s, b, d_in.memory, out.memory, cub::Max(), n);
  });
  for (int i = 0; i < n; ++i) EXPECT(out.host()[i] == *std::max_element(in.begin(), in.begin() + i + 1));

  std::vector<int> sorted = in;
  std::sort(sorted.begin(), sorted.end());
  twice([&](void* s, std::size_t& b) { return cub::DeviceRadixSort::SortKeys(s, b, d_in.memory, out.memory, n); });
  for (int i = 0; i < n; ++i) EXPECT(out.host()[i] == sorted[i]);
  std::vector<int> places(n), order(n);
  std::iota(places.begin(), places.end(), 0);
  order = places;
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return in[b] < in[a]; });
  Device<int> from(places);
  twice([&](void* s, std::size_t& b) {
    return cub::DeviceRadixSort::SortPairsDescending(s, b, d_in.memory, out.memory, from.memory, values.memory, n);
  });
  for (int i = 0; i < n; ++i) EXPECT(values.host()[i] == order[i]);
  Device<int> again(in);
  twice([&](void* s, std::size_t& b) {
    return cub::DeviceMergeSort::SortKeys(s, b, again.memory, n, [] __device__(int a, int b) { return b < a; });
  });
  for (int i = 0; i < n; ++i) EXPECT(again.host()[i] == sorted[n - 1 - i]);

  twice([&](void* s, std::size_t& b) {
    return cub::DeviceSelect::If(s, b, d_in.memory, out.memory, found.memory, n, Even());
  });
  std::vector<int> chosen;
  std::copy_if(in.begin(), in.end(), std::back_inserter(chosen), Even());
  EXPECT(found.host()[0] == int(chosen.size()));
  for (std::size_t i = 0; i < chosen.size(); ++i) EXPECT(out.host()[i] == chosen[i]);
  Device<int> in_order(sorted);
  twice([&](void* s, std::size_t& b) {
    return cub::DeviceRunLengthEncode::Encode(s, b, in_order.memory, out.memory, lengths.memory, found.memory, n);
  });
  const std::map<int, int> runs = [&] {
    std::map<int, int> counts;
    for (const int x : in) ++counts[x];
    return counts;
  }();
  EXPECT(found.host()[0] == int(runs.size()));
  int run = 0;
  for (const auto& [key, length] : runs) {
    EXPECT(out.host()[run] == key && lengths.host()[run] == length);
    ++run;
  }
  Device<int> bins(4);
  twice([&](void* s, std::size_t& b) {
    return cub::DeviceHistogram::HistogramEven(s, b, d_in.memory, bins.memory, 5, -20, 20, n);
  });
  for (int bin = 0; bin < 4; ++bin)
    EXPECT(bins.host()[bin] ==
           std::count_if(in.begin(), in.end(), [&](int x) { return x >= 10 * bin - 20 && x < 10 * bin - 10; }));
}

int main() {
  test_warps<32>();
  test_warps<8>();
  test_blocks<128, 4, cub::BLOCK_LOAD_TRANSPOSE, cub::BLOCK_STORE_TRANSPOSE>();
  test_blocks<64, 3, cub::BLOCK_LOAD_WARP_TRANSPOSE, cub::BLOCK_STORE_WARP_TRANSPOSE>();
  test_blocks<40, 2, cub::BLOCK_LOAD_DIRECT, cub::BLOCK_STORE_DIRECT>();
  test_sorts<int>(false);
  test_sorts<float>(true);
  test_sorts<double>(false);
  test_neighbours();
  test_device(0);
  test_device(1);
  test_device(300);
  return wrong != 0;
}
