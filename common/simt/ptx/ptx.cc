// Carries out inline PTX: one thread, one statement at a time. What several lanes do together has the bodies of the
// wrappers in common/device. Instructions that only calculate are in ptx_arithmetic.cc.
#include "simt/ptx/ptx.h"

#include <chrono>
#include <cstring>
#include <memory>
#include <unordered_map>

#include "device/ldmatrix.h"
#include "device/mma.h"
#include "simt/cuda/warp.h"
#include "simt/engine/engine.h"
#include "simt/ptx/ptx_code.h"

namespace simt {
namespace {

using Bits = std::uint64_t;

Bits mask_of(PtxType type) {
  const int bytes = ptx_bytes(type);
  return bytes == 8 ? ~Bits(0) : (Bits(1) << 8 * bytes) - 1;
}

// ---- special registers

Bits special_register(PtxRun& run, const std::string& name) {
  const Thread& self = run.worker.current();
  const unsigned lane = self.lane, before = (1u << lane) - 1;
  const auto axis = [&](const char* of, const auto& v, Bits& result) {
    const std::size_t length = std::strlen(of);
    if (name.compare(0, length, of) != 0 || name.size() != length + 2 || name[length] != '.') return false;
    result = name.back() == 'x' ? v.x : name.back() == 'y' ? v.y : v.z;
    return name.back() >= 'x' && name.back() <= 'z';
  };
  Bits value = 0;
  if (axis("tid", threadIdx, value) || axis("ntid", blockDim, value) || axis("ctaid", blockIdx, value) ||
      axis("nctaid", gridDim, value))
    return value;
  if (name == "laneid") return lane;
  if (name == "warpid") return self.number / 32;
  if (name == "nwarpid") return (blockDim.x * blockDim.y * blockDim.z + 31) / 32;
  if (name == "lanemask_eq") return 1u << lane;
  if (name == "lanemask_lt") return before;
  if (name == "lanemask_le") return before | 1u << lane;
  if (name == "lanemask_gt") return ~(before | 1u << lane);
  if (name == "lanemask_ge") return ~before;
  if (name == "clock" || name == "clock64" || name == "globaltimer") return static_cast<Bits>(clock64());
  if (name == "smid" || name == "gridid" || name == "globaltimer_hi" || name == "clock_hi") return 0;
  if (name == "nsmid") return 1;
  bool of_cluster = false;
  if (value = cluster_register(run, name, of_cluster); of_cluster) return value;
  if (name == "dynamic_smem_size") return run.worker.launch().shared_bytes;
  run.fail(cudaErrorNotSupported, "the engine does not know this register of PTX: \"%" + name + "\"");
}

// ---- memory

// The state space of an instruction; nothing it does not know may be among its other pieces.
bool choose_memory(PtxInstruction& i, std::size_t known) {
  for (const std::string& piece : i.pieces)
    if (piece == "local" || piece == "param") return false;
  std::size_t next = known;
  std::vector<std::string> rest(i.pieces.begin() + static_cast<std::ptrdiff_t>(next), i.pieces.end());
  for (const std::string& piece : rest) {
    const bool hint = piece.starts_with("L1::") || piece.starts_with("L2::");
    static constexpr std::string_view allowed[] = {"global",  "shared",   "shared::cta", "shared::cluster",
                                                   "const",   "volatile", "relaxed",     "acquire",
                                                   "release", "acq_rel",  "weak",        "cta",
                                                   "cluster", "gpu",      "sys",         "nc",
                                                   "ca",      "cg",       "cs",          "lu",
                                                   "cv",      "wb",       "wt",          "v2",
                                                   "v4",      "noftz"};
    if (!hint && ptx_type(piece) == PtxType::none &&
        std::find(std::begin(allowed), std::end(allowed), piece) == std::end(allowed))
      return false;
  }
  i.type = i.last_type();
  i.count = i.has("v2") ? 2 : i.has("v4") ? 4 : 1;
  i.mode = i.has("shared") || i.has("shared::cta") || i.has("shared::cluster");
  return i.type != PtxType::none && i.type != PtxType::pred;
}

const PtxValue& part(const PtxArgumentOf& argument, int n) { return argument.values[static_cast<std::size_t>(n)]; }

char* checked_pointer(PtxRun& run, const PtxInstruction& i, const PtxArgumentOf& argument) {
  char* p = run.pointer(argument, i.mode != 0);
  const std::size_t bytes = static_cast<std::size_t>(i.count) * ptx_bytes(i.type);
  if (reinterpret_cast<std::uintptr_t>(p) % bytes != 0)
    run.fail(cudaErrorMisalignedAddress,
             i.pieces[0] + " of " + std::to_string(bytes) + " bytes: the address is not a multiple of that");
  return p;
}

void execute_ld(PtxRun& run, const PtxInstruction& i) {
  const char* p = checked_pointer(run, i, i.arguments[1]);
  const std::size_t each = static_cast<std::size_t>(ptx_bytes(i.type));
  run.note(p, i.count * each, PtxRun::Touch::read, i);
  for (int n = 0; n < i.count; ++n) {
    Bits bits = 0;
    if (i.count == 1 && i.has("acquire") && each == 4)
      bits = __atomic_load_n(reinterpret_cast<const std::uint32_t*>(p), __ATOMIC_ACQUIRE);
    else
      std::memcpy(&bits, p + n * each, each);
    if (i.type == PtxType::s8 || i.type == PtxType::s16 || i.type == PtxType::s32) {  // into a wider register
      const int unused = 64 - 8 * static_cast<int>(each);
      bits = static_cast<Bits>(static_cast<std::int64_t>(bits << unused) >> unused);
      run.set(part(i.arguments[0], n), bits, PtxType::b64);
    } else {
      run.set(part(i.arguments[0], n), bits, i.type);
    }
  }
}

void execute_st(PtxRun& run, const PtxInstruction& i) {
  char* p = checked_pointer(run, i, i.arguments[0]);
  const std::size_t each = static_cast<std::size_t>(ptx_bytes(i.type));
  run.note(p, i.count * each, PtxRun::Touch::write, i);
  for (int n = 0; n < i.count; ++n) {
    const Bits bits = run.get(part(i.arguments[1], n), i.type);
    if (i.count == 1 && i.has("release") && each == 4)
      __atomic_store_n(reinterpret_cast<std::uint32_t*>(p), static_cast<std::uint32_t>(bits), __ATOMIC_RELEASE);
    else
      std::memcpy(p + n * each, &bits, each);
  }
}

template <PtxExecute execute>
PtxExecute choose_move(PtxInstruction& i) {
  if (!choose_memory(i, 1) || i.arguments.size() != 2) return nullptr;
  const auto& vector = i.arguments[execute == execute_ld ? 0 : 1];
  return static_cast<int>(vector.values.size()) == i.count ? execute : nullptr;
}

// What an update makes of the old value and its operands.
Bits updated(const PtxInstruction& i, Bits old, Bits v, Bits other) {
  const auto as_float = [](Bits bits) { return __builtin_bit_cast(float, static_cast<std::uint32_t>(bits)); };
  const bool is_signed = i.type == PtxType::s32 || i.type == PtxType::s64;
  const auto less = [&](Bits a, Bits b) {
    if (!is_signed) return a < b;
    return i.type == PtxType::s32 ? static_cast<std::int32_t>(a) < static_cast<std::int32_t>(b)
                                  : static_cast<std::int64_t>(a) < static_cast<std::int64_t>(b);
  };
  if (i.has("exch")) return v;
  if (i.has("cas")) return old == v ? other : old;
  if (i.has("min")) return less(v, old) ? v : old;
  if (i.has("max")) return less(old, v) ? v : old;
  if (i.has("and")) return old & v;
  if (i.has("or")) return old | v;
  if (i.has("xor")) return old ^ v;
  if (i.has("inc")) return old >= v ? 0 : old + 1;
  if (i.has("dec")) return old == 0 || old > v ? v : old - 1;
  switch (i.type) {
    case PtxType::f32:
      return __builtin_bit_cast(std::uint32_t, as_float(old) + as_float(v));
    case PtxType::f64:
      return __builtin_bit_cast(Bits, __builtin_bit_cast(double, old) + __builtin_bit_cast(double, v));
    case PtxType::f16x2: {
      const auto add = [](Bits a, Bits b) {
        return half_bits(half_value(static_cast<std::uint16_t>(a)) + half_value(static_cast<std::uint16_t>(b)));
      };
      return add(old, v) | static_cast<Bits>(add(old >> 16, v >> 16)) << 16;
    }
    case PtxType::bf16x2: {
      const auto add = [](Bits a, Bits b) {
        return bfloat16_bits(bfloat16_value(static_cast<std::uint16_t>(a)) +
                             bfloat16_value(static_cast<std::uint16_t>(b)));
      };
      return add(old, v) | static_cast<Bits>(add(old >> 16, v >> 16)) << 16;
    }
    default:
      return (old + v) & mask_of(i.type);
  }
}

template <class Word>
Bits update(const PtxInstruction& i, char* p, Bits v, Bits other) {
  auto* word = reinterpret_cast<Word*>(p);
  Word before = __atomic_load_n(word, __ATOMIC_RELAXED);
  while (!__atomic_compare_exchange_n(word, &before, static_cast<Word>(updated(i, before, v, other)), true,
                                      __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) {
  }
  return before;
}

// red [a], v;   atom d, [a], v;   atom.cas d, [a], compare, v;
void execute_update(PtxRun& run, const PtxInstruction& i) {
  const std::size_t address = i.pieces[0] == "atom" ? 1 : 0;
  char* p = checked_pointer(run, i, i.arguments[address]);
  const std::size_t each = static_cast<std::size_t>(ptx_bytes(i.type));
  run.note(p, i.count * each, PtxRun::Touch::update, i);
  for (int n = 0; n < i.count; ++n, p += each) {
    const Bits v = run.get(part(i.arguments[address + 1], n), i.type);
    const Bits other = i.arguments.size() > address + 2 ? run.get(i.arguments[address + 2], i.type) : 0;
    const Bits old = each == 8 ? update<std::uint64_t>(i, p, v, other) : update<std::uint32_t>(i, p, v, other);
    if (address == 1) run.set(part(i.arguments[0], n), old, i.type);
  }
}

PtxExecute choose_update(PtxInstruction& i) {
  static constexpr std::string_view operations[] = {"add", "min", "max", "and",  "or",
                                                    "xor", "inc", "dec", "exch", "cas"};
  const auto is_operation = [&](const std::string& piece) {
    return std::find(std::begin(operations), std::end(operations), piece) != std::end(operations);
  };
  const auto operation = std::find_if(i.pieces.begin() + 1, i.pieces.end(), is_operation);
  if (operation == i.pieces.end()) return nullptr;
  PtxInstruction rest = i;
  rest.pieces.erase(rest.pieces.begin() + (operation - i.pieces.begin()));
  if (!choose_memory(rest, 1)) return nullptr;
  i.type = rest.type, i.count = rest.count, i.mode = rest.mode;
  const bool with_result = i.pieces[0] == "atom";
  const std::size_t expected = (with_result ? 3 : 2) + (*operation == "cas");
  const bool whole =
      i.type != PtxType::f32 && i.type != PtxType::f64 && i.type != PtxType::f16x2 && i.type != PtxType::bf16x2;
  if (i.arguments.size() != expected || ptx_bytes(i.type) < 4) return nullptr;
  if (!whole && *operation != "add" && *operation != "exch") return nullptr;
  if (static_cast<int>(i.arguments[with_result ? 2 : 1].values.size()) != i.count) return nullptr;
  return execute_update;
}

PtxExecute choose_cvta(PtxInstruction& i) {
  if (i.arguments.size() != 2 || !i.only(1, {"to", "shared", "shared::cta", "shared::cluster", "global", "const"}))
    return nullptr;
  i.mode = i.has("shared") || i.has("shared::cta") || i.has("shared::cluster");
  i.type = i.last_type();
  if (i.has("to"))
    return [](PtxRun& run, const PtxInstruction& i) {
      const Bits p = run.get(i.arguments[1], PtxType::u64);
      run.set(i.arguments[0], i.mode ? shared_address(reinterpret_cast<const void*>(p)) : p, i.type);
    };
  return [](PtxRun& run, const PtxInstruction& i) {
    const Bits a = run.get(i.arguments[1], i.type);
    run.set(i.arguments[0], i.mode ? reinterpret_cast<Bits>(shared_pointer(static_cast<std::uint32_t>(a))) : a, i.type);
  };
}

// ---- asynchronous copies

PtxExecute choose_cp_async(PtxInstruction& i) {
  if (i.opcode == "cp.async.commit_group")
    return [](PtxRun& run, const PtxInstruction&) { run.worker.copies().commit(); };
  if (i.opcode == "cp.async.wait_group" || i.opcode == "cp.async.wait_all")
    return [](PtxRun& run, const PtxInstruction& i) {
      if (left_out({run.site.file, run.site.line})) return;
      if (i.arguments.empty()) run.worker.copies().commit();
      const int pending = i.arguments.empty() ? 0 : static_cast<int>(run.get(i.arguments[0], PtxType::u32));
      run.worker.copies().wait(pending, run.worker);
    };
  if (i.pieces.size() < 5 || (i.pieces[2] != "ca" && i.pieces[2] != "cg") ||
      (i.pieces[3] != "shared" && i.pieces[3] != "shared::cta") || i.pieces[4] != "global" || i.arguments.size() < 3 ||
      i.arguments.size() > 4)
    return nullptr;
  for (std::size_t n = 5; n < i.pieces.size(); ++n)
    if (!i.pieces[n].starts_with("L2::")) return nullptr;
  return [](PtxRun& run, const PtxInstruction& i) {
    const Bits bytes = run.get(i.arguments[2], PtxType::u32);
    const Bits source = i.arguments.size() > 3 ? run.get(i.arguments[3], PtxType::u32) : bytes;
    start_cp_async(run.worker, run.site.return_address, run.pointer(i.arguments[0], true),
                   run.pointer(i.arguments[1], false), bytes, source);
  };
}

// ---- a warp's matrices

template <int matrices, bool transposed>
void execute_ldmatrix(PtxRun& run, const PtxInstruction& i) {
  std::uint32_t r[4] = {};
  LdmatrixOperands operands = {r, reinterpret_cast<const std::uint16_t*>(run.pointer(i.arguments[1], true))};
  if (run.worker.current().lane < 8 * matrices) {
    if (reinterpret_cast<std::uintptr_t>(operands.row) % 16 != 0)
      run.fail(cudaErrorMisalignedAddress, "ldmatrix: the address of a row is not a multiple of 16");
    run.worker.tell_of_ldmatrix_row(run.site.return_address, operands.row);
  }
  warp_collective(i.opcode.c_str(), 0xffffffff, &operands, ldmatrix_of_lanes<matrices, transposed>, run.site.file,
                  run.site.line);
  for (int m = 0; m < matrices; ++m) run.set(part(i.arguments[0], m), r[m], PtxType::b32);
}

PtxExecute choose_ldmatrix(PtxInstruction& i) {
  if (!i.only(1, {"sync", "aligned", "m8n8", "x1", "x2", "x4", "trans", "shared", "shared::cta"}) ||
      i.last_type() != PtxType::b16 || !i.has("m8n8") || i.arguments.size() != 2)
    return nullptr;
  const bool trans = i.has("trans");
  const std::size_t matrices = i.has("x4") ? 4 : i.has("x2") ? 2 : 1;
  if (i.arguments[0].values.size() != matrices) return nullptr;
  if (matrices == 4) return trans ? execute_ldmatrix<4, true> : execute_ldmatrix<4, false>;
  if (matrices == 2) return trans ? execute_ldmatrix<2, true> : execute_ldmatrix<2, false>;
  return trans ? execute_ldmatrix<1, true> : execute_ldmatrix<1, false>;
}

// As stmatrix_x4() of device/stmatrix.h: each lane stores its own part of each row, or of each column.
template <bool transposed>
void execute_stmatrix(PtxRun& run, const PtxInstruction& i) {
  const Bits row = reinterpret_cast<Bits>(run.pointer(i.arguments[0], true));
  const int lane = static_cast<int>(run.worker.current().lane), g = lane >> 2, t = lane & 3;
  const auto of_lane = [&](Bits value, int from) {
    return shuffle(i.opcode.c_str(), 0xffffffff, value, from, run.site.file, run.site.line);
  };
  for (int m = 0; m < i.count; ++m) {
    auto* to = reinterpret_cast<std::uint32_t*>(of_lane(row, 8 * m + g)) + t;
    Bits value = run.get(part(i.arguments[1], m), PtxType::b32);
    if (transposed) {
      const Bits even = of_lane(value, 4 * (2 * t) + g / 2), odd = of_lane(value, 4 * (2 * t + 1) + g / 2);
      value = (even >> 16 * (g % 2) & 0xffff) | (odd >> 16 * (g % 2) & 0xffff) << 16;
    }
    run.note(to, sizeof *to, PtxRun::Touch::write, i);
    *to = static_cast<std::uint32_t>(value);
  }
}

PtxExecute choose_stmatrix(PtxInstruction& i) {
  if (!i.only(1, {"sync", "aligned", "m8n8", "x1", "x2", "x4", "trans", "shared", "shared::cta"}) ||
      i.last_type() != PtxType::b16 || i.arguments.size() != 2)
    return nullptr;
  i.count = i.has("x4") ? 4 : i.has("x2") ? 2 : 1;
  if (static_cast<int>(i.arguments[1].values.size()) != i.count) return nullptr;
  return i.has("trans") ? execute_stmatrix<true> : execute_stmatrix<false>;
}

template <class T, bool half_sums>
void execute_mma(PtxRun& run, const PtxInstruction& i) {
  std::uint32_t a[4], b[2];
  float c[4];
  for (int r = 0; r < 4; ++r) a[r] = static_cast<std::uint32_t>(run.get(part(i.arguments[1], r), PtxType::b32));
  for (int r = 0; r < 2; ++r) b[r] = static_cast<std::uint32_t>(run.get(part(i.arguments[2], r), PtxType::b32));
  for (int r = 0; r < 4; ++r) {
    const auto bits = static_cast<std::uint32_t>(run.get(part(i.arguments[3], half_sums ? r / 2 : r), PtxType::b32));
    c[r] = half_sums ? half_value(static_cast<std::uint16_t>(bits >> 16 * (r & 1))) : __builtin_bit_cast(float, bits);
  }
  MmaOperands operands = {c, a, b};
  warp_collective("mma.m16n8k16", 0xffffffff, &operands, mma_on_cpu<T>, run.site.file, run.site.line);
  for (int r = 0; r < 4; r += half_sums ? 2 : 1) {
    if (half_sums)
      run.set(part(i.arguments[0], r / 2), half_bits(c[r]) | std::uint32_t(half_bits(c[r + 1])) << 16, PtxType::b32);
    else
      run.set(part(i.arguments[0], r), __builtin_bit_cast(std::uint32_t, c[r]), PtxType::b32);
  }
}

PtxExecute choose_mma(PtxInstruction& i) {
  if (i.arguments.size() != 4) return nullptr;
  if (i.opcode == "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32") return execute_mma<__half, false>;
  if (i.opcode == "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32") return execute_mma<__nv_bfloat16, false>;
  if (i.opcode == "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16") return execute_mma<__half, true>;
  return nullptr;
}

// ---- barriers, and what lanes tell each other

template <bool waits>
void execute_bar(PtxRun& run, const PtxInstruction& i) {
  const char* name = i.opcode.c_str();
  const int number = static_cast<int>(run.get(i.arguments[0], PtxType::u32));
  const int all = static_cast<int>(blockDim.x * blockDim.y * blockDim.z + 31) / 32 * 32;
  const int threads = i.arguments.size() > 1 ? static_cast<int>(run.get(i.arguments[1], PtxType::u32)) : all;
  if (waits && number == 0 && threads == all)
    __syncthreads(run.site.file, run.site.line);
  else
    named_barrier(name, number, threads, waits, run.site.file, run.site.line);
}

PtxExecute choose_bar(PtxInstruction& i) {
  if (i.opcode == "bar.warp.sync" && i.arguments.size() == 1)
    return [](PtxRun& run, const PtxInstruction& i) {
      __syncwarp(static_cast<unsigned>(run.get(i.arguments[0], PtxType::b32)), run.site.file, run.site.line);
    };
  if (!i.only(1, {"cta", "sync", "arrive", "aligned"})) return nullptr;
  if (i.has("sync") && (i.arguments.size() == 1 || i.arguments.size() == 2)) return execute_bar<true>;
  if (i.has("arrive") && i.arguments.size() == 2) return execute_bar<false>;
  return nullptr;
}

PtxExecute choose_shfl(PtxInstruction& i) {
  if (i.pieces.size() != 4 || i.pieces[1] != "sync" || i.pieces[3] != "b32" || i.arguments.size() != 5) return nullptr;
  static constexpr std::string_view modes[] = {"idx", "up", "down", "bfly"};
  i.mode = static_cast<int>(std::find(std::begin(modes), std::end(modes), i.pieces[2]) - std::begin(modes));
  if (i.mode == 4) return nullptr;
  return [](PtxRun& run, const PtxInstruction& i) {
    const auto get = [&](int n) { return static_cast<int>(run.get(i.arguments[n], PtxType::b32)); };
    const int lane = static_cast<int>(run.worker.current().lane), b = get(2) & 31, c = get(3);
    const int segment = c >> 8 & 31, clamp = c & 31, first = lane & segment, last = first | (clamp & ~segment);
    const int from = i.mode == 0 ? first | (b & ~segment) : i.mode == 1 ? lane - b : i.mode == 2 ? lane + b : lane ^ b;
    const bool inside = i.mode == 1 ? from >= last : from <= last;
    const auto value = shuffle(i.opcode.c_str(), static_cast<unsigned>(get(4)), run.get(i.arguments[1], PtxType::b32),
                               inside ? from : lane, run.site.file, run.site.line);
    run.set(i.arguments[0], value, PtxType::b32);
    if (!i.arguments[0].also.empty()) run.set(i.arguments[0].also[0], inside, PtxType::pred);
  };
}

PtxExecute choose_vote(PtxInstruction& i) {
  if (i.pieces.size() != 4 || i.pieces[1] != "sync" || i.arguments.size() != 3) return nullptr;
  if (i.pieces[2] != "ballot" && i.pieces[2] != "any" && i.pieces[2] != "all") return nullptr;
  return [](PtxRun& run, const PtxInstruction& i) {
    const auto mask = static_cast<unsigned>(run.get(i.arguments[2], PtxType::b32));
    const bool predicate = run.get(i.arguments[1], PtxType::pred) != 0;
    const char* file = run.site.file;
    const int line = run.site.line;
    if (i.pieces[2] == "ballot")
      run.set(i.arguments[0], __ballot_sync(mask, predicate, file, line), PtxType::b32);
    else
      run.set(i.arguments[0],
              i.pieces[2] == "any" ? __any_sync(mask, predicate, file, line) : __all_sync(mask, predicate, file, line),
              PtxType::pred);
  };
}

template <class T>
void execute_redux(PtxRun& run, const PtxInstruction& i) {
  const T value = static_cast<T>(run.get(i.arguments[1], PtxType::b32));
  const auto mask = static_cast<unsigned>(run.get(i.arguments[2], PtxType::b32));
  const char *name = i.opcode.c_str(), *file = run.site.file;
  const int line = run.site.line;
  T all = 0;
  const std::string& how = i.pieces[2];
  if (how == "add") all = warp_reduce<Add>(name, mask, value, file, line);
  if (how == "min") all = warp_reduce<Min>(name, mask, value, file, line);
  if (how == "max") all = warp_reduce<Max>(name, mask, value, file, line);
  if (how == "and") all = warp_reduce<And>(name, mask, value, file, line);
  if (how == "or") all = warp_reduce<Or>(name, mask, value, file, line);
  if (how == "xor") all = warp_reduce<Xor>(name, mask, value, file, line);
  run.set(i.arguments[0], static_cast<std::uint32_t>(all), PtxType::b32);
}

PtxExecute choose_redux(PtxInstruction& i) {
  if (i.pieces.size() != 4 || i.pieces[1] != "sync" || i.arguments.size() != 3) return nullptr;
  static constexpr std::string_view operations[] = {"add", "min", "max", "and", "or", "xor"};
  if (std::find(std::begin(operations), std::end(operations), i.pieces[2]) == std::end(operations)) return nullptr;
  return i.last_type() == PtxType::s32                                    ? execute_redux<int>
         : i.last_type() == PtxType::u32 || i.last_type() == PtxType::b32 ? execute_redux<unsigned>
                                                                          : nullptr;
}

PtxExecute choose_activemask(PtxInstruction&) {
  return [](PtxRun& run, const PtxInstruction& i) {
    run.set(i.arguments[0], run.worker.converged({"activemask", run.site}), PtxType::b32);
  };
}

// ---- order, hints and the flow of control

// Fences order what other threads see; one OS thread runs a block, so that for the block's own threads all is in order.
PtxExecute choose_fence(PtxInstruction& i) {
  if (i.has("proxy") || i.has("mbarrier_init")) return nullptr;
  return [](PtxRun&, const PtxInstruction&) {
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    if (worker != nullptr && worker->in_kernel()) worker->observe(&Observer::fence, false);
  };
}
PtxExecute choose_nothing(PtxInstruction&) {
  return [](PtxRun&, const PtxInstruction&) {};
}
PtxExecute choose_createpolicy(PtxInstruction&) {
  return [](PtxRun& run, const PtxInstruction& i) { run.set(i.arguments[0], 0, PtxType::b64); };
}
PtxExecute choose_griddepcontrol(PtxInstruction& i) {
  if (i.opcode == "griddepcontrol.launch_dependents") return [](PtxRun&, const PtxInstruction&) {};
  if (i.opcode != "griddepcontrol.wait") return nullptr;
  return [](PtxRun& run, const PtxInstruction&) { grid_dependency_wait(run.site.file, run.site.line); };
}
PtxExecute choose_bra(PtxInstruction& i) {
  if (!i.only(1, {"uni"}) || i.arguments.size() != 1) return nullptr;
  return [](PtxRun& run, const PtxInstruction& i) { run.jump(i.arguments[0].values[0]); };
}
PtxExecute choose_trap(PtxInstruction&) {
  return [](PtxRun& run, const PtxInstruction&) { run.fail(cudaErrorLaunchFailure, "trap"); };
}

struct Known {
  const char* name;  // what an opcode begins with, up to a dot
  PtxChoose choose;
};
constexpr Known table[] = {
    {"ld", choose_move<execute_ld>},
    {"ldu", choose_move<execute_ld>},
    {"st", choose_move<execute_st>},
    {"red", choose_update},
    {"atom", choose_update},
    {"cvta", choose_cvta},
    {"cp.async", choose_cp_async},
    {"cp.async.bulk", choose_bulk_copy},
    {"cp.reduce.async.bulk", choose_bulk_copy},
    {"mapa", choose_mapa},
    {"getctarank", choose_getctarank},
    {"mbarrier", choose_mbarrier},
    {"ldmatrix", choose_ldmatrix},
    {"stmatrix", choose_stmatrix},
    {"mma", choose_mma},
    {"bar", choose_bar},
    {"barrier", choose_bar},
    {"barrier.cluster", choose_barrier_cluster},
    {"shfl", choose_shfl},
    {"vote", choose_vote},
    {"redux", choose_redux},
    {"activemask", choose_activemask},
    {"fence", choose_fence},
    {"fence.mbarrier_init", choose_fence_mbarrier_init},
    {"fence.proxy.async", choose_fence_proxy_async},
    {"membar", choose_fence},
    {"griddepcontrol", choose_griddepcontrol},
    {"bra", choose_bra},
    {"trap", choose_trap},
    {"createpolicy", choose_createpolicy},
    {"prefetch", choose_nothing},
    {"prefetchu", choose_nothing},
    {"discard", choose_nothing},
    {"applypriority", choose_nothing},
    {"nanosleep", choose_nothing},
    {"pmevent", choose_nothing},
    {"setmaxnreg", choose_nothing},
    {"wgmma", choose_wgmma},
};

}  // namespace

PtxExecute choose_ptx(PtxInstruction& instruction) {
  const Known* found = nullptr;
  for (const Known& each : table)
    if ((instruction.opcode + ".").starts_with(each.name + std::string(".")) &&
        (found == nullptr || std::strlen(each.name) > std::strlen(found->name)))
      found = &each;
  return found != nullptr ? found->choose(instruction) : choose_ptx_arithmetic(instruction);
}

Bits PtxRun::get(const PtxValue& value, PtxType type) {
  Bits bits = 0;
  switch (value.kind) {
    case PtxValue::operand:
      bits = operands_[value.value].bits;
      if (const void* place = operands_[value.value].place) std::memcpy(&bits, place, 4);
      break;
    case PtxValue::local:
      bits = registers_[value.value];
      break;
    case PtxValue::number:
      bits = value.value;
      break;
    case PtxValue::decimal:
      bits = type == PtxType::f64 ? __builtin_bit_cast(Bits, value.decimal_value)
                                  : __builtin_bit_cast(std::uint32_t, static_cast<float>(value.decimal_value));
      break;
    case PtxValue::special:
      bits = special_register(*this, value.text);
      break;
    case PtxValue::sink:
    case PtxValue::label:
      break;
  }
  if (type == PtxType::pred) return (bits != 0) != value.negated;
  return bits & mask_of(type);
}

void PtxRun::set(const PtxValue& value, Bits bits, PtxType type) {
  bits &= mask_of(type);
  if (value.kind == PtxValue::operand) operands_[value.value].bits = bits;
  if (void* const to = place(value)) std::memcpy(to, &bits, 4);
  if (value.kind == PtxValue::local) registers_[value.value] = bits;
}

void* PtxRun::place(const PtxValue& value) const {
  return value.kind == PtxValue::operand ? operands_[value.value].place : nullptr;
}

char* PtxRun::pointer(const PtxArgumentOf& argument, bool shared) {
  const Bits base = get(argument.values[0], shared ? PtxType::u32 : PtxType::u64) + static_cast<Bits>(argument.offset);
  return shared ? static_cast<char*>(shared_pointer(static_cast<std::uint32_t>(base))) : reinterpret_cast<char*>(base);
}

void PtxRun::note(const void* p, std::size_t bytes, Touch touch, const PtxInstruction& i) {
  constexpr Access accesses[] = {Access::read, Access::write, Access::atomic};
  if (i.has("release") || i.has("acq_rel")) worker.observe(&Observer::fence, false);
  const bool is_flag = i.has("volatile") || i.has("relaxed") || i.has("acquire") || i.has("release");
  const Access access = touch == Touch::update && i.has("exch") ? Access::exchange : accesses[static_cast<int>(touch)];
  worker.tell_of_access(site.return_address, p, bytes, access, is_flag);
}

void PtxRun::fail(cudaError_t code, const std::string& what) { worker.fail(code, &worker.current(), text(site), what); }

void PtxRun::all() {
  if (!code_.mistake.empty()) fail(cudaErrorNotSupported, "inline PTX: " + code_.mistake);
  while (next_ < code_.instructions.size()) {
    const PtxInstruction& instruction = code_.instructions[next_++];
    if (instruction.guarded && get(instruction.guard, PtxType::pred) == 0) continue;
    if (instruction.execute == nullptr)
      fail(cudaErrorNotSupported, "the engine does not know this PTX instruction: \"" + instruction.text + "\"");
    instruction.execute(*this, instruction);
  }
}

void run_ptx(const char* file, int line, const char* text, PtxOperand* operands, int count) {
  static thread_local std::unordered_map<const char*, std::unique_ptr<const PtxCode>> read;
  Worker& self = this_worker("inline PTX");
  self.fail_if_overdue();
  auto& code = read[text];
  if (!code) code = std::make_unique<const PtxCode>(read_ptx(text, operands, count));
  constexpr std::size_t most_registers = 128;
  Bits registers[most_registers];
  PtxRun run(self, {file, line, __builtin_return_address(0)}, *code, operands, registers);
  if (code->registers > most_registers)
    run.fail(cudaErrorNotSupported, "inline PTX: " + std::to_string(code->registers) + " registers, at most " +
                                        std::to_string(most_registers) + " are possible");
  run.all();
}

}  // namespace simt
