#include "simt/hopper/hopper.h"

#include "simt/engine/engine.h"

namespace simt {
namespace {

HopperState& hopper_of(Worker& worker) {
  HopperState& hopper = worker.hopper();
  if (!hopper.used) hopper.registers.block_begins(worker.block().x * worker.block().y * worker.block().z);
  hopper.used = true;
  return hopper;
}

// Of this block, or of another one of its cluster.
Mbarrier& mbarrier_at(const void* address, const Wait& call, Worker& self) {
  Worker* const block = self.block_with(address);
  Mbarrier* const mbarrier = block == nullptr || block == &self
                                 ? hopper_of(self).mbarriers.find(address)
                                 : block->hopper().mbarriers.find(block->shared().own(address));
  if (block != nullptr && block != &self) self.reaches(*block, call.name, call.site);
  if (mbarrier == nullptr)
    self.fail(cudaErrorLaunchFailure, &self.current(), text(call.site),
              std::string(call.name) + ": no mbarrier was made at this address");
  self.observe(&Observer::mbarrier_used, *mbarrier, call);
  return *mbarrier;
}

// One whose phases the current thread may wait for.
Mbarrier& own_mbarrier_at(const void* address, unsigned parity, const Wait& wait, Worker& self) {
  if (parity > 1)
    self.fail(cudaErrorLaunchFailure, &self.current(), text(wait.site),
              std::string(wait.name) + " " + std::to_string(parity) + ": a parity is 0 or 1");
  Mbarrier& mbarrier = mbarrier_at(address, wait, self);
  if (&mbarrier.block != &self)
    self.fail(cudaErrorLaunchFailure, &self.current(), text(wait.site),
              std::string(wait.name) + ": " + mbarrier.name() +
                  " is another block's, and only its own threads can wait for it");
  return mbarrier;
}

// A copy by the current thread whose shared memory is as it must be.
BulkCopy bulk_copy(BulkCopy::Kind kind, const void* shared, const void* global, int bytes, const void* pc,
                   Worker& self) {
  BulkCopy copy = {};
  copy.kind = kind;
  copy.shared = static_cast<char*>(const_cast<void*>(shared));
  copy.global = static_cast<char*>(const_cast<void*>(global));
  copy.bytes = bytes;
  copy.block = &self;
  copy.thread = self.current().number;
  copy.rank = self.rank();
  copy.pc = pc;
  return copy;
}

void check(const BulkCopy& copy, Worker& self) {
  const auto wrong = [&](cudaError_t code, const std::string& what) {
    self.fail(code, &self.current(), line_of(copy.pc), std::string(copy.name()) + ": " + what);
  };
  const std::uintptr_t alignment = copy.of_a_tensor ? 1024 : 16;
  if (copy.bytes <= 0 || copy.bytes % 16 != 0)
    wrong(cudaErrorLaunchFailure, std::to_string(copy.bytes) + " bytes: must be a multiple of 16");
  const SharedMemory& shared = copy.block->shared();
  if (!shared.contains(copy.shared, static_cast<std::size_t>(copy.bytes)))
    wrong(cudaErrorIllegalAddress,
          std::to_string(copy.bytes) + " bytes from " + shared.place(copy.shared) + " on are not in shared memory");
  if (copy.address_in_shared() % alignment != 0)
    wrong(cudaErrorMisalignedAddress, "the address in shared memory, " + shared.place(copy.shared) +
                                          ", is not a multiple of " + std::to_string(alignment));
  if (reinterpret_cast<std::uintptr_t>(copy.global) % 16 != 0)
    wrong(cudaErrorMisalignedAddress,
          std::string("the address in ") +
              (copy.kind == BulkCopy::remote ? "this block's shared memory" : "global memory") +
              " is not a multiple of 16");
}

BulkCopy tensor_copy(BulkCopy::Kind kind, const void* shared, const TensorMap& map, const Coordinates& at, int rank,
                     const void* pc, Worker& self) {
  int bytes = map.element_bytes;
  for (int i = 0; i < map.rank; ++i) bytes *= map.box[i];
  BulkCopy copy = bulk_copy(kind, shared, map.data, bytes, pc, self);
  copy.of_a_tensor = true;
  copy.map = map;
  copy.at = at;
  if (rank != map.rank)
    self.fail(cudaErrorLaunchFailure, &self.current(), line_of(pc),
              std::string(copy.name()) + ": " + std::to_string(rank) + " coordinates for a tensor map of " +
                  std::to_string(map.rank) + " dimensions");
  if (at[0] * map.element_bytes % 16 != 0)
    self.fail(cudaErrorIllegalInstruction, &self.current(), line_of(pc),
              std::string(copy.name()) + ": the innermost coordinate is " + std::to_string(at[0]) + ", which is " +
                  std::to_string(at[0] * map.element_bytes) + " bytes: must be a multiple of 16");
  for (int i = 0; i < rank && kind == BulkCopy::store; ++i)
    if (at[i] < 0)
      self.fail(cudaErrorIllegalInstruction, &self.current(), line_of(pc),
                std::string(copy.name()) + ": coordinate " + std::to_string(i) + " of a store is " +
                    std::to_string(at[i]) + ": must not be negative");
  return copy;
}

void start_load(BulkCopy copy, std::uint64_t* address, Worker& self) {
  const Wait call = {copy.name(), {nullptr, 0, copy.pc}};
  if (Worker* const block = self.block_with(copy.shared); block != nullptr && block != &self) {
    copy.block = block;
    copy.shared = block->shared().own(copy.shared);
  }
  check(copy, self);
  Mbarrier& mbarrier = mbarrier_at(address, call, self);
  if (&mbarrier.block != copy.block)
    self.fail(
        cudaErrorLaunchFailure, &self.current(), line_of(copy.pc),
        std::string(copy.name()) + ": " + mbarrier.name() + " is not in the shared memory of the block that it fills");
  self.reaches(*copy.block, copy.name(), call.site);
  self.observe(&Observer::bulk_load_starts, copy, mbarrier);
  mbarrier.start(copy, self);
}

void start_multicast(BulkCopy copy, std::uint64_t* address, unsigned blocks, Worker& self) {
  const auto size = static_cast<unsigned>(self.cluster().size());
  if (blocks == 0 || blocks >> size != 0)
    self.fail(cudaErrorLaunchFailure, &self.current(), line_of(copy.pc),
              std::string(copy.name()) + ": multicast to the blocks of mask " + mask_text(blocks) +
                  ": the cluster has blocks 0 to " + std::to_string(size - 1));
  char* const shared = copy.shared;
  for (; blocks != 0; blocks &= blocks - 1, copy.repeated = true) {
    const auto rank = static_cast<unsigned>(std::countr_zero(blocks));
    copy.shared = static_cast<char*>(self.map_shared(shared, rank));
    start_load(copy, static_cast<std::uint64_t*>(self.map_shared(address, rank)), self);
  }
}

void start_store(const BulkCopy& copy, Worker& self) {
  check(copy, self);
  self.observe(&Observer::bulk_store_starts, copy);
  hopper_of(self).stores[copy.thread].start(copy);
}

struct ProductCall {
  ProductForm form;
  float* d;
  const std::uint32_t* a;
  const void* pc;
  float* const* scattered = nullptr;  // where each float of d is, if they do not follow one another
};

void start_product(void* const lanes[32], unsigned) {
  Worker& self = *worker;
  Product product;
  const auto call_of = [&](int lane) -> const ProductCall& { return *static_cast<const ProductCall*>(lanes[lane]); };
  product.form = call_of(0).form;
  product.warp = self.current().number / 32;
  product.pc = call_of(0).pc;
  bool any_scattered = false;
  for (int lane = 0; lane < 32; ++lane) {
    const ProductCall& call = call_of(lane);
    if (!(call.form == product.form))
      self.fail(cudaErrorLaunchFailure, &self.current(), line_of(product.pc),
                "wgmma: lane " + std::to_string(lane) + " has other descriptors than lane 0");
    product.d[lane] = call.d;
    any_scattered = any_scattered || call.scattered != nullptr;
    if (call.a != nullptr) std::copy_n(call.a, 4, product.a[lane].begin());
  }
  for (int lane = 0; lane < 32 && any_scattered; ++lane)
    for (int i = 0; i < product.form.columns / 2; ++i)
      product.scattered.push_back(call_of(lane).scattered != nullptr ? call_of(lane).scattered[i]
                                                                     : call_of(lane).d + i);
  self.hopper().products.start(product, self);
}

void call_product(const ProductCall& call) {
  Worker& self = this_worker("wgmma");
  hopper_of(self);
  const dim3 block = self.block();
  if ((self.current().number / 128 + 1) * 128 > block.x * block.y * block.z)
    self.fail(cudaErrorLaunchFailure, &self.current(), line_of(call.pc),
              "wgmma: the block has not all 128 threads of this warpgroup");
  const auto floats = static_cast<std::size_t>(call.form.columns / 2);  // a thread's, of 64 rows
  const auto is_own = [&](const float* d, std::size_t count) {
    const auto address = reinterpret_cast<std::uintptr_t>(d);
    return self.in_kernels_frames(address) && self.in_kernels_frames(address + count * sizeof(float) - 1);
  };
  if (call.scattered == nullptr
          ? !is_own(call.d, floats)
          : !std::all_of(call.scattered, call.scattered + floats, [&](const float* d) { return is_own(d, 1); }))
    self.fail(cudaErrorLaunchFailure, &self.current(), line_of(call.pc),
              "wgmma: its sums are no variables of the thread");
  ProductCall operand = call;
  self.warp_collective({"wgmma.mma_async", {nullptr, 0, call.pc}}, &operand, start_product);
}

}  // namespace

void HopperState::block_begins() {
  if (!used) return;
  used = false;
  mbarriers.all().clear();
  stores.clear();
  products.block_begins();
}

void HopperState::thread_ends(Worker& worker) {
  const Thread& thread = worker.current();
  const auto found = stores.find(thread.number);
  const BulkCopy* const store = found == stores.end() ? nullptr : found->second.oldest();
  const Product* const product = products.oldest(thread.number / 32);
  if (store != nullptr)
    worker.fail(cudaErrorLaunchFailure, &thread, line_of(store->pc),
                std::string("the thread returned without having waited for this ") + store->name());
  if (product != nullptr)
    worker.fail(cudaErrorLaunchFailure, &thread, line_of(product->pc),
                "the thread returned without having waited for this wgmma");
}

void HopperState::block_ends(Worker& worker) {
  std::string mistake;
  for (const Mbarrier& mbarrier : mbarriers.all())
    if (mistake.empty()) mistake = mbarrier.left_over(worker);
  if (mistake.empty()) mistake = products.left_over();
  if (mistake.empty()) mistake = registers.left_over();
  if (!mistake.empty()) worker.fail(cudaErrorLaunchFailure, nullptr, "", mistake);
}

void mbarrier_init(std::uint64_t* mbarrier, int arrivals, const char* file, int line) {
  Worker& self = this_worker("mbarrier.init");
  const Site site = {file, line, __builtin_return_address(0)};
  const Mbarrier& made = hopper_of(self).mbarriers.make(mbarrier, arrivals, site, self);
  self.observe(&Observer::mbarrier_made, made, site.return_address);
}

void fence_mbarrier_init() {
  Worker& self = this_worker("fence.mbarrier_init");
  for (Mbarrier& mbarrier : hopper_of(self).mbarriers.all())
    mbarrier.fenced = mbarrier.fenced || mbarrier.maker == self.current().number;
}

unsigned mbarrier_arrive(std::uint64_t* address, int arrivals, int expected_bytes, const char* file, int line) {
  const Wait call = {arrivals == 0         ? "mbarrier.expect_tx"
                     : expected_bytes != 0 ? "mbarrier.arrive.expect_tx"
                                           : "mbarrier.arrive",
                     {file, line, __builtin_return_address(0)}};
  Worker& self = this_worker(call.name);
  Mbarrier& mbarrier = mbarrier_at(address, call, self);
  const unsigned phase = mbarrier.phase();
  if (!left_out({file, line})) mbarrier.arrive(arrivals, expected_bytes, call, self);
  return phase;
}

void mbarrier_drop(std::uint64_t* address, const char* file, int line) {
  const Wait call = {"mbarrier.arrive_drop", {file, line, __builtin_return_address(0)}};
  mbarrier_at(address, call, this_worker(call.name)).drop();
}

void mbarrier_cp_async(std::uint64_t* address, void* shared, const void* global, std::size_t bytes) {
  const void* const pc = __builtin_return_address(0);
  Worker& self = this_worker("cp.async");
  Mbarrier& mbarrier = mbarrier_at(address, {"cp.async.mbarrier.arrive", {nullptr, 0, pc}}, self);
  mbarrier.start(cp_async_of(self, pc, shared, global, bytes, bytes), self);
}

void mbarrier_wait(std::uint64_t* address, unsigned parity, const char* file, int line) {
  if (left_out({file, line})) return;
  const Wait wait = {"mbarrier.try_wait.parity", {file, line, __builtin_return_address(0)}};
  Worker& self = this_worker(wait.name);
  own_mbarrier_at(address, parity, wait, self).wait(parity, wait, self);
}

bool mbarrier_test(std::uint64_t* address, unsigned parity, const char* file, int line) {
  if (left_out({file, line})) return true;
  const Wait wait = {"mbarrier.test_wait.parity", {file, line, __builtin_return_address(0)}};
  Worker& self = this_worker(wait.name);
  Mbarrier& mbarrier = own_mbarrier_at(address, parity, wait, self);
  if (mbarrier.phase() % 2 == parity) return false;
  mbarrier.wait(parity, wait, self);  // which returns at once
  return true;
}

void tensor_load(void* shared, const TensorMap& map, std::uint64_t* mbarrier, const Coordinates& at, int rank) {
  Worker& self = this_worker("cp.async.bulk.tensor");
  start_load(tensor_copy(BulkCopy::load, shared, map, at, rank, __builtin_return_address(0), self), mbarrier, self);
}

void bulk_load(void* shared, const void* global, int bytes, std::uint64_t* mbarrier, const void* pc) {
  Worker& self = this_worker("cp.async.bulk");
  start_load(bulk_copy(BulkCopy::load, shared, global, bytes, pc != nullptr ? pc : __builtin_return_address(0), self),
             mbarrier, self);
}

void tensor_load_multicast(void* shared, const TensorMap& map, std::uint64_t* mbarrier, const Coordinates& at, int rank,
                           std::uint16_t blocks) {
  Worker& self = this_worker("cp.async.bulk.tensor");
  start_multicast(tensor_copy(BulkCopy::load, shared, map, at, rank, __builtin_return_address(0), self), mbarrier,
                  blocks, self);
}

void bulk_load_multicast(void* shared, const void* global, int bytes, std::uint64_t* mbarrier, std::uint16_t blocks,
                         const void* pc) {
  Worker& self = this_worker("cp.async.bulk");
  start_multicast(
      bulk_copy(BulkCopy::load, shared, global, bytes, pc != nullptr ? pc : __builtin_return_address(0), self),
      mbarrier, blocks, self);
}

void bulk_to_block(void* to, const void* from, int bytes, std::uint64_t* mbarrier, const void* pc) {
  Worker& self = this_worker("cp.async.bulk");
  start_load(bulk_copy(BulkCopy::remote, to, from, bytes, pc != nullptr ? pc : __builtin_return_address(0), self),
             mbarrier, self);
}

void tensor_store(const TensorMap& map, const void* shared, const Coordinates& at, int rank) {
  Worker& self = this_worker("cp.async.bulk.tensor");
  start_store(tensor_copy(BulkCopy::store, shared, map, at, rank, __builtin_return_address(0), self), self);
}

void bulk_store(void* global, const void* shared, int bytes, const void* pc) {
  Worker& self = this_worker("cp.async.bulk");
  start_store(bulk_copy(BulkCopy::store, shared, global, bytes, pc != nullptr ? pc : __builtin_return_address(0), self),
              self);
}

void bulk_add(float* global, const float* shared, int bytes, const void* pc) {
  Worker& self = this_worker("cp.reduce.async.bulk");
  start_store(bulk_copy(BulkCopy::add, shared, global, bytes, pc != nullptr ? pc : __builtin_return_address(0), self),
              self);
}

void bulk_commit() {
  Worker& self = this_worker("cp.async.bulk.commit_group");
  hopper_of(self).stores[self.current().number].commit();
}

void bulk_wait(int pending_groups, bool only_read, const char* file, int line) {
  if (left_out({file, line})) return;
  Worker& self = this_worker("cp.async.bulk.wait_group");
  for (BulkCopy& copy : hopper_of(self).stores[self.current().number].finish(pending_groups)) {
    copy.carry_out();
    copy.only_read = only_read;
    self.observe(&Observer::bulk_store_ends, copy);
  }
}

void fence_proxy_async(const char* file, int line) {
  if (left_out({file, line})) return;
  Worker& self = this_worker("fence.proxy.async");
  fence_mbarrier_init();
  self.observe(&Observer::proxy_fence);
}

void wgmma(Element element, int columns, float* d, std::uint64_t a, bool a_mn, std::uint64_t b, bool b_mn,
           bool accumulate) {
  call_product(
      {{false, accumulate, columns, {a, a_mn, element}, {b, b_mn, element}}, d, nullptr, __builtin_return_address(0)});
}

void wgmma(Element element, int columns, float* d, const std::uint32_t* a, std::uint64_t b, bool b_mn,
           bool accumulate) {
  call_product(
      {{true, accumulate, columns, {0, false, element}, {b, b_mn, element}}, d, a, __builtin_return_address(0)});
}

void wgmma(const ProductForm& form, float* const* d, const std::uint32_t* a, const void* pc) {
  bool consecutive = true;
  for (int i = 0; i < form.columns / 2; ++i) consecutive = consecutive && d[i] == d[0] + i;
  call_product({form, d[0], a, pc, consecutive ? nullptr : d});
}

void wgmma_fence() {
  Worker& self = this_worker("wgmma.fence");
  hopper_of(self).products.fence(self);
}

void wgmma_commit() {
  Worker& self = this_worker("wgmma.commit_group");
  hopper_of(self).products.commit(self);
}

void wgmma_wait(int pending_groups, const char* file, int line) {
  if (left_out({file, line})) return;
  const Wait wait = {"wgmma.wait_group", {file, line, __builtin_return_address(0)}};
  Worker& self = this_worker(wait.name);
  self.warp_collective(wait, &pending_groups, [](void* const lanes[32], unsigned) {
    worker->hopper().products.wait(*static_cast<const int*>(lanes[0]), *worker);
  });
}

void setmaxnreg(const char* name, int registers, const char* file, int line) {
  Worker& self = this_worker(name);
  hopper_of(self).registers.change({name, {file, line, __builtin_return_address(0)}}, registers, self);
}

}  // namespace simt
