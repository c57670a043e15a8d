#include "simt/cuda/transfers.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "simt/cuda/graphs.h"
#include "simt/cuda/host.h"
#include "simt/cuda/host_checks.h"
#include "simt/engine/device_memory.h"
#include "simt/engine/device_variables.h"
#include "simt/engine/diagnosis.h"
#include "simt/engine/findings.h"
#include "simt/engine/kernel_heap.h"
#include "simt/engine/modules.h"

namespace {

using simt::Transfer;

// Empty if the device may touch the bytes; else what is wrong with them.
std::string not_on_device(const void* address, std::size_t bytes) {
  simt::DeviceMemory& memory = simt::DeviceMemory::instance();
  if (const simt::DeviceVariable* variable = simt::DeviceVariable::at(address)) {
    // In managed and pinned memory, kernels may have left addresses that nobody sees.
    if (simt::watching() && !variable->given() && variable->kind() != simt::DeviceVariable::managed &&
        !simt::host_checks::kernels_reach_host())
      return "what the bare name of a device variable is on the host, not the variable's memory: "
             "cudaMemcpyToSymbol() and cudaMemcpyFromSymbol() copy, cudaGetSymbolAddress() gives its address";
    const auto at = static_cast<std::size_t>(static_cast<const char*>(address) - variable->begin());
    if (bytes <= variable->bytes() - at) return "";
    return "at byte " + std::to_string(at) + " of a variable of " + std::to_string(variable->bytes()) + " bytes";
  }
  if (!memory.contains(address)) return "not device memory";
  if (simt::KernelHeap::instance().has(reinterpret_cast<std::uintptr_t>(address)))
    return simt::KernelHeap::for_kernels_alone;
  return memory.outside(address, bytes);
}

// Empty if the bytes, which begin in the block, end there, too.
std::string beyond(const simt::host_checks::HostBlock& block, const void* address, std::size_t bytes) {
  const auto left = static_cast<std::size_t>(block.begin + block.bytes - static_cast<const char*>(address));
  return bytes <= left ? "" : "in pinned memory, of which " + std::to_string(left) + " bytes are left there";
}

// The host's pages, locked or not, and managed memory: what a call waits for.
bool on_host(const void* address) {
  if (simt::DeviceVariable::at(address) != nullptr) return false;
  const auto block = simt::DeviceMemory::instance().live_block_at(reinterpret_cast<std::uintptr_t>(address));
  return !block || block->managed;
}

bool pageable(const void* address) {
  return on_host(address) && !simt::DeviceMemory::instance().contains(address) &&
         simt::host_checks::registered(address).begin == nullptr;
}

// Of the default stream, as a call does it that has no stream.
template <class Work>
cudaError_t in_default_stream(const Transfer& transfer, const Work& work) {
  if (const cudaError_t error = simt::comes_into_capture(transfer.call, nullptr, true); error != cudaSuccess)
    return error;
  const cudaError_t error = work(transfer);
  if (error == cudaSuccess && transfer.waits) simt::host_checks::waited(nullptr, false);
  return error;
}

// In its stream; or, if that is captured, each time that the graph runs.
template <class Work>
cudaError_t in_its_stream(const Transfer& transfer, const Work& work) {
  if (const cudaError_t error = simt::comes_into_stream(transfer.call, transfer.stream); error != cudaSuccess)
    return error;
  if (simt::is_captured(transfer.stream))
    return simt::capture(transfer.stream, [transfer, work](cudaStream_t stream) {
      Transfer own = transfer;
      own.stream = stream;
      own.waits = false;
      return work(own);
    });
  const cudaError_t error = work(transfer);
  if (error == cudaSuccess && transfer.waits) simt::host_checks::waited(transfer.stream, false);
  return error;
}

// Between two places of the device, nobody waits.
Transfer copying(const char* call, const void* to, const void* from) {
  return {call, nullptr, on_host(to) || on_host(from)};
}
// A copy into pageable memory is done when the call returns, and with it what the stream had before.
Transfer copying(const char* call, const void* to, cudaStream_t stream) {
  return {call, stream, simt::watching() && pageable(to)};
}

}  // namespace

simt::Transfer::Transfer(const char* call, cudaStream_t stream, bool waits)
    : call(call), stream(stream), waits(waits), what(host_checks::call_here(call)) {}

// ---- pieces

bool simt::overlap(const Rows& a, const Rows& b) {
  if (a.width == 0 || b.width == 0 || a.rows == 0 || b.rows == 0) return false;
  if (a.pitch == 0 || b.pitch == 0) return overlap({a.begin, a.width, a.width, 1}, {b.begin, b.width, b.width, 1});
  const auto first = reinterpret_cast<std::uintptr_t>(a.begin), other = reinterpret_cast<std::uintptr_t>(b.begin);
  for (std::size_t row = 0; row < a.rows; ++row) {
    const std::uintptr_t begin = first + row * a.pitch, end = begin + a.width;
    if (end <= other) continue;
    const std::size_t before =
        begin < other ? 0 : (begin - other) / b.pitch;  // the row of b that begins there, or lies before
    for (std::size_t i = before; i < b.rows && other + i * b.pitch < end; ++i)
      if (other + i * b.pitch + b.width > begin) return true;
  }
  return false;
}

// What copies do then, CUDA leaves open.
static void apart(const Transfer& transfer, const simt::Rows& to, const simt::Rows& from) {
  if (!simt::watching() || to.begin == from.begin || !simt::overlap(to, from)) return;
  simt::found_mistake(transfer.what() +
                      ": its source and its destination overlap, and CUDA leaves open what comes of that");
}

cudaError_t simt::copy(const Transfer& transfer, void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  if (const cudaError_t error = broken(); error != cudaSuccess) return error;
  if (kind < cudaMemcpyHostToHost || kind > cudaMemcpyDefault)
    return fail(cudaErrorInvalidMemcpyDirection,
                std::string(transfer.call) + ": kind " + std::to_string(kind) + " is not one");
  if (bytes == 0) return cudaSuccess;
  const DeviceMemory& memory = DeviceMemory::instance();
  const bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  const bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  const auto check = [&](const char* name, const void* address, bool device) -> std::string {
    std::string wrong;
    if (address == nullptr)
      wrong = "a null pointer";
    else if (const auto block = host_checks::registered(address); block.pinned || (device && block.begin != nullptr))
      wrong = beyond(block, address, bytes);
    else if (device || memory.contains(address))
      wrong = not_on_device(address, bytes);
    if (wrong.empty() && !device && kind != cudaMemcpyDefault && memory.contains(address) && !on_host(address))
      wrong = "device memory, which the kind of this copy says it is not";
    if (wrong.empty()) return "";
    return std::string(transfer.call) + " of " + std::to_string(bytes) + " bytes: the " + name + " " +
           address_text(address) + " is " + wrong;
  };
  // Of a device variable, by its address, from the host's variable of that name: here they are one.
  if (to == from)
    if (const DeviceVariable* variable = DeviceVariable::at(to)) variable->use().twin = true;
  std::string wrong = check("destination", to, to_device);
  if (wrong.empty()) wrong = check("source", from, from_device);
  if (!wrong.empty()) return fail(cudaErrorInvalidValue, wrong);
  apart(transfer, {to, bytes, bytes, 1}, {from, bytes, bytes, 1});
  const host_checks::Lifted lifted;
  host_checks::copied(to, from, bytes);
  std::memmove(to, from, bytes);
  if (watching() && (from_device || kind == cudaMemcpyDefault)) DeviceVariable::give_those_in(to, bytes);
  host_checks::copies(transfer, to, from, bytes);
  return cudaSuccess;
}

cudaError_t simt::set(const Transfer& transfer, void* to, int value, std::size_t bytes) {
  if (const cudaError_t error = broken(); error != cudaSuccess) return error;
  if (bytes == 0) return cudaSuccess;
  const host_checks::HostBlock block = host_checks::registered(to);
  const std::string wrong = block.begin == nullptr ? not_on_device(to, bytes) : beyond(block, to, bytes);
  if (!wrong.empty())
    return fail(cudaErrorInvalidValue, std::string(transfer.call) + " of " + std::to_string(bytes) +
                                           " bytes: " + address_text(to) + " is " + wrong);
  const host_checks::Lifted lifted;
  host_checks::written(to, bytes);
  std::memset(to, value, bytes);
  host_checks::sets(transfer, to, bytes);
  return cudaSuccess;
}

cudaError_t simt::copy_rows(const Transfer& transfer, void* to, std::size_t to_pitch, const void* from,
                            std::size_t from_pitch, std::size_t width, std::size_t height, cudaMemcpyKind kind) {
  if (width > to_pitch || width > from_pitch)
    return fail(cudaErrorInvalidPitchValue, std::string(transfer.call) + ": rows of " + std::to_string(width) +
                                                " bytes, " + std::to_string(std::min(to_pitch, from_pitch)) + " apart");
  if (width == to_pitch && width == from_pitch) width *= std::exchange(height, height == 0 ? 0 : 1);
  if (height > 1) apart(transfer, {to, width, to_pitch, height}, {from, width, from_pitch, height});
  for (std::size_t row = 0; row < height; ++row)
    if (const cudaError_t error = copy(transfer, static_cast<char*>(to) + row * to_pitch,
                                       static_cast<const char*>(from) + row * from_pitch, width, kind);
        error != cudaSuccess)
      return error;
  return cudaSuccess;
}

cudaError_t simt::set_rows(const Transfer& transfer, void* to, std::size_t pitch, int value, std::size_t width,
                           std::size_t height) {
  if (width > pitch)
    return fail(cudaErrorInvalidPitchValue, std::string(transfer.call) + ": rows of " + std::to_string(width) +
                                                " bytes, " + std::to_string(pitch) + " apart");
  if (width == pitch) width *= std::exchange(height, height == 0 ? 0 : 1);
  for (std::size_t row = 0; row < height; ++row)
    if (const cudaError_t error = set(transfer, static_cast<char*>(to) + row * pitch, value, width);
        error != cudaSuccess)
      return error;
  return cudaSuccess;
}

namespace {

cudaError_t set_slices(const Transfer& transfer, const cudaPitchedPtr& memory, int value, const cudaExtent& extent) {
  for (std::size_t slice = 0; slice < extent.depth; ++slice)
    if (const cudaError_t error =
            simt::set_rows(transfer, static_cast<char*>(memory.ptr) + slice * memory.pitch * memory.ysize, memory.pitch,
                           value, extent.width, extent.height);
        error != cudaSuccess)
      return error;
  return cudaSuccess;
}

}  // namespace

cudaError_t simt::copy_slices(const Transfer& transfer, const cudaMemcpy3DParms& copy) {
  if (copy.srcArray != nullptr || copy.dstArray != nullptr)
    return fail(cudaErrorNotSupported, std::string(transfer.call) + ": the engine has no arrays");
  const auto place = [](const cudaPitchedPtr& memory, const cudaPos& at, std::size_t slice) {
    return static_cast<char*>(memory.ptr) + ((at.z + slice) * memory.ysize + at.y) * memory.pitch + at.x;
  };
  for (std::size_t slice = 0; slice < copy.extent.depth; ++slice)
    if (const cudaError_t error = copy_rows(transfer, place(copy.dstPtr, copy.dstPos, slice), copy.dstPtr.pitch,
                                            place(copy.srcPtr, copy.srcPos, slice), copy.srcPtr.pitch,
                                            copy.extent.width, copy.extent.height, copy.kind);
        error != cudaSuccess)
      return error;
  return cudaSuccess;
}

// ---- calls

cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  return in_default_stream(copying("cudaMemcpy", to, from), [=](const Transfer& transfer) {
    const cudaError_t error = simt::copy(transfer, to, from, bytes, kind);
    if (error == cudaSuccess) simt::host_checks::copied_to_host(transfer, to, from, bytes);
    return error;
  });
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  return in_its_stream(copying("cudaMemcpyAsync", to, stream), [=](const Transfer& transfer) {
    const cudaError_t error = simt::copy(transfer, to, from, bytes, kind);
    if (error == cudaSuccess) simt::host_checks::copied_to_host(transfer, to, from, bytes);
    return error;
  });
}

cudaError_t cudaMemcpyPeer(void* to, int, const void* from, int, std::size_t bytes) {
  return in_default_stream({"cudaMemcpyPeer", nullptr}, [=](const Transfer& transfer) {
    return simt::copy(transfer, to, from, bytes, cudaMemcpyDeviceToDevice);
  });
}

cudaError_t cudaMemcpyPeerAsync(void* to, int, const void* from, int, std::size_t bytes, cudaStream_t stream) {
  return in_its_stream({"cudaMemcpyPeerAsync", stream}, [=](const Transfer& transfer) {
    return simt::copy(transfer, to, from, bytes, cudaMemcpyDeviceToDevice);
  });
}

cudaError_t cudaMemcpy2D(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch, std::size_t width,
                         std::size_t height, cudaMemcpyKind kind) {
  return in_default_stream(copying("cudaMemcpy2D", to, from), [=](const Transfer& transfer) {
    const cudaError_t error = simt::copy_rows(transfer, to, to_pitch, from, from_pitch, width, height, kind);
    if (error == cudaSuccess) simt::host_checks::copied_to_host(transfer, to, from, width, height, from_pitch);
    return error;
  });
}

cudaError_t cudaMemcpy2DAsync(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                              std::size_t width, std::size_t height, cudaMemcpyKind kind, cudaStream_t stream) {
  return in_its_stream(copying("cudaMemcpy2DAsync", to, stream), [=](const Transfer& transfer) {
    const cudaError_t error = simt::copy_rows(transfer, to, to_pitch, from, from_pitch, width, height, kind);
    if (error == cudaSuccess) simt::host_checks::copied_to_host(transfer, to, from, width, height, from_pitch);
    return error;
  });
}

cudaError_t cudaMemcpy3D(const cudaMemcpy3DParms* copy) {
  if (copy == nullptr) return simt::fail(cudaErrorInvalidValue, "cudaMemcpy3D: a null pointer");
  return in_default_stream(copying("cudaMemcpy3D", copy->dstPtr.ptr, copy->srcPtr.ptr),
                           [&](const Transfer& transfer) { return simt::copy_slices(transfer, *copy); });
}

cudaError_t cudaMemcpy3DAsync(const cudaMemcpy3DParms* copy, cudaStream_t stream) {
  if (copy == nullptr) return simt::fail(cudaErrorInvalidValue, "cudaMemcpy3DAsync: a null pointer");
  return in_its_stream(copying("cudaMemcpy3DAsync", copy->dstPtr.ptr, stream),
                       [own = *copy](const Transfer& transfer) { return simt::copy_slices(transfer, own); });
}

cudaError_t cudaMemset(void* to, int value, std::size_t bytes) {
  return in_default_stream({"cudaMemset", nullptr, on_host(to)},
                           [=](const Transfer& transfer) { return simt::set(transfer, to, value, bytes); });
}

cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t stream) {
  return in_its_stream({"cudaMemsetAsync", stream},
                       [=](const Transfer& transfer) { return simt::set(transfer, to, value, bytes); });
}

cudaError_t cudaMemset2D(void* to, std::size_t pitch, int value, std::size_t width, std::size_t height) {
  return in_default_stream({"cudaMemset2D", nullptr, on_host(to)}, [=](const Transfer& transfer) {
    return simt::set_rows(transfer, to, pitch, value, width, height);
  });
}

cudaError_t cudaMemset2DAsync(void* to, std::size_t pitch, int value, std::size_t width, std::size_t height,
                              cudaStream_t stream) {
  return in_its_stream({"cudaMemset2DAsync", stream}, [=](const Transfer& transfer) {
    return simt::set_rows(transfer, to, pitch, value, width, height);
  });
}

cudaError_t cudaMemset3D(cudaPitchedPtr memory, int value, cudaExtent extent) {
  return in_default_stream({"cudaMemset3D", nullptr, on_host(memory.ptr)},
                           [=](const Transfer& transfer) { return set_slices(transfer, memory, value, extent); });
}

cudaError_t cudaMemset3DAsync(cudaPitchedPtr memory, int value, cudaExtent extent, cudaStream_t stream) {
  return in_its_stream({"cudaMemset3DAsync", stream},
                       [=](const Transfer& transfer) { return set_slices(transfer, memory, value, extent); });
}

// ---- device variables

cudaError_t simt::symbol_address(const void* symbol, void** address, std::size_t* bytes) {
  if (const Module* module = module_at(symbol)) DeviceVariable::find_in(*module);
  const DeviceVariable* variable = DeviceVariable::at(symbol);
  if (variable == nullptr || variable->begin() != symbol)
    return fail(cudaErrorInvalidSymbol, "the symbol is not a __device__, __constant__ or __managed__ variable");
  *address = const_cast<void*>(symbol);
  *bytes = variable->bytes();
  variable->give(true);
  return cudaSuccess;
}

namespace {

// While the runtime itself copies by a variable's address, it has it.
struct Given {
  Given(const simt::DeviceVariable& variable, bool before) : variable(variable), before(before) {}
  ~Given() { variable.give(before); }
  const simt::DeviceVariable& variable;
  bool before;
};

cudaError_t copy_of(const Transfer& transfer, const simt::SymbolCopy& copy) {
  if (const cudaError_t error = simt::broken(); error != cudaSuccess) return error;
  void* address;
  std::size_t all;
  const auto* const variable = simt::DeviceVariable::at(copy.symbol);
  const bool given = variable != nullptr && variable->given(), to_symbol = copy.to == nullptr;
  if (variable != nullptr && simt::DeviceVariable::at(to_symbol ? copy.from : copy.to) == variable)
    variable->use().twin = true;
  if (const cudaError_t error = simt::symbol_address(copy.symbol, &address, &all); error != cudaSuccess) return error;
  const Given for_now(*simt::DeviceVariable::at(copy.symbol), given);
  const auto& [symbol, size, offset, from, to, bytes, kind] = copy;
  if (offset > size || bytes > size - offset)
    return simt::fail(cudaErrorInvalidValue, std::string(transfer.call) + " of " + std::to_string(bytes) +
                                                 " bytes from byte " + std::to_string(offset) +
                                                 " on: the variable has " + std::to_string(size));
  const bool allowed = kind == cudaMemcpyDefault || kind == cudaMemcpyDeviceToDevice ||
                       kind == (to_symbol ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost);
  if (!allowed)
    return simt::fail(cudaErrorInvalidMemcpyDirection, std::string(transfer.call) + ": kind " + std::to_string(kind));
  char* const place = static_cast<char*>(address) + offset;
  return to_symbol ? simt::copy(transfer, place, from, bytes, kind) : simt::copy(transfer, to, place, bytes, kind);
}

}  // namespace

cudaError_t simt::copy_symbol(const char* call, const SymbolCopy& copy) {
  const void* const other = copy.to != nullptr ? copy.to : copy.from;
  return in_default_stream({call, nullptr, on_host(other)},
                           [=](const Transfer& transfer) { return copy_of(transfer, copy); });
}

cudaError_t simt::copy_symbol(const char* call, const SymbolCopy& copy, cudaStream_t stream) {
  return in_its_stream({call, stream, watching() && copy.to != nullptr && pageable(copy.to)},
                       [=](const Transfer& transfer) { return copy_of(transfer, copy); });
}
