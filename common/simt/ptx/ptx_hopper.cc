// Inline PTX of compute capability 9.0: clusters, mbarriers, bulk copies of consecutive bytes, wgmma. (Copies of
// tensors need a tensor map, which only device/tensor_map.h makes here.)
#include <algorithm>
#include <cstring>

#include "simt/cuda/thread.h"
#include "simt/cuda/warp.h"
#include "simt/engine/engine.h"
#include "simt/hopper/hopper.h"
#include "simt/hopper/wgmma.h"
#include "simt/ptx/ptx_code.h"

namespace simt {
namespace {

bool is_shared_space(const PtxInstruction& i) {
  return i.has("shared") || i.has("shared::cta") || i.has("shared::cluster");
}

std::uint64_t* mbarrier_of(PtxRun& run, const PtxInstruction& i, const PtxArgumentOf& argument) {
  return reinterpret_cast<std::uint64_t*>(run.pointer(argument, is_shared_space(i)));
}

int number(PtxRun& run, const PtxArgumentOf& argument) { return static_cast<int>(run.get(argument, PtxType::u32)); }

}  // namespace

std::uint64_t cluster_register(PtxRun& run, const std::string& name, bool& known) {
  const dim3 size = cluster_dim();
  const uint3 cluster = cluster_index();
  const auto axis = [&](const char* of, unsigned x, unsigned y, unsigned z) -> std::uint64_t {
    const std::size_t length = std::strlen(of);
    if (name.compare(0, length, of) != 0 || name.size() != length + 2 || name[length] != '.') return 0;
    known = true;
    return name.back() == 'x' ? x : name.back() == 'y' ? y : z;
  };
  const auto one = [&](const char* of, std::uint64_t value) {
    known = known || name == of;
    return name == of ? value : 0;
  };
  const std::uint64_t value = axis("cluster_ctaid", blockIdx.x % size.x, blockIdx.y % size.y, blockIdx.z % size.z) |
                              axis("cluster_nctaid", size.x, size.y, size.z) |
                              axis("clusterid", cluster.x, cluster.y, cluster.z) |
                              axis("nclusterid", gridDim.x / size.x, gridDim.y / size.y, gridDim.z / size.z);
  return value | one("cluster_ctarank", run.worker.rank()) | one("cluster_nctarank", run.worker.cluster().size()) |
         one("is_explicit_cluster", run.worker.cluster().size() > 1);
}

// mapa.shared::cluster.u32 d, a, rank;  mapa.u64 d, a, rank;
PtxExecute choose_mapa(PtxInstruction& i) {
  if (i.arguments.size() != 3 || !i.only(1, {"shared::cluster"})) return nullptr;
  i.mode = is_shared_space(i);
  i.type = i.last_type();
  if (i.type != PtxType::u32 && i.type != PtxType::u64) return nullptr;
  return [](PtxRun& run, const PtxInstruction& i) {
    const std::uint64_t a = run.get(i.arguments[1], i.type);
    const void* p = i.mode ? shared_pointer(static_cast<std::uint32_t>(a)) : reinterpret_cast<const void*>(a);
    const unsigned rank = static_cast<unsigned>(number(run, i.arguments[2]));
    const void* there = map_shared(p, rank, run.site.file, run.site.line);
    run.set(i.arguments[0], i.mode ? shared_address(there) : reinterpret_cast<std::uint64_t>(there), i.type);
  };
}

PtxExecute choose_getctarank(PtxInstruction& i) {
  if (i.arguments.size() != 2 || !i.only(1, {"shared::cluster"})) return nullptr;
  i.mode = is_shared_space(i);
  return [](PtxRun& run, const PtxInstruction& i) {
    const std::uint64_t a = run.get(i.arguments[1], i.mode ? PtxType::u32 : PtxType::u64);
    const void* p = i.mode ? shared_pointer(static_cast<std::uint32_t>(a)) : reinterpret_cast<const void*>(a);
    run.set(i.arguments[0], shared_rank(p), PtxType::u32);
  };
}

PtxExecute choose_barrier_cluster(PtxInstruction& i) {
  if (!i.arguments.empty() || !i.only(2, {"arrive", "wait", "release", "relaxed", "acquire", "aligned"}))
    return nullptr;
  if (i.has("arrive"))
    return
        [](PtxRun& run, const PtxInstruction& i) { cluster_arrive(!i.has("relaxed"), run.site.file, run.site.line); };
  return [](PtxRun& run, const PtxInstruction&) { cluster_wait(run.site.file, run.site.line); };
}

// mbarrier.init [a], n;  mbarrier.arrive{.expect_tx} state, [a]{, n};  mbarrier.try_wait{.parity} p, [a], state;  ..
PtxExecute choose_mbarrier(PtxInstruction& i) {
  if (i.pieces.size() < 2 || !i.only(2, {"expect_tx", "parity", "release", "acquire", "relaxed", "cta", "cluster",
                                         "shared", "shared::cta", "shared::cluster"}))
    return nullptr;
  const std::string& what = i.pieces[1];
  if (what == "init" && i.arguments.size() == 2)
    return [](PtxRun& run, const PtxInstruction& i) {
      mbarrier_init(mbarrier_of(run, i, i.arguments[0]), number(run, i.arguments[1]), run.site.file, run.site.line);
    };
  if (what == "expect_tx" && i.arguments.size() == 2)
    return [](PtxRun& run, const PtxInstruction& i) {
      mbarrier_arrive(mbarrier_of(run, i, i.arguments[0]), 0, number(run, i.arguments[1]), run.site.file,
                      run.site.line);
    };
  if (what == "arrive" && (i.arguments.size() == 2 || i.arguments.size() == 3))
    return [](PtxRun& run, const PtxInstruction& i) {
      const int n = i.arguments.size() == 3 ? number(run, i.arguments[2]) : 1;
      const bool expects = i.has("expect_tx");
      const unsigned phase = mbarrier_arrive(mbarrier_of(run, i, i.arguments[1]), expects ? 1 : n, expects ? n : 0,
                                             run.site.file, run.site.line);
      run.set(i.arguments[0], phase, PtxType::b64);
    };
  // A wait that may return without success never does here.
  if ((what == "try_wait" || what == "test_wait") && (i.arguments.size() == 3 || i.arguments.size() == 4))
    return [](PtxRun& run, const PtxInstruction& i) {
      const std::uint64_t state = run.get(i.arguments[2], i.has("parity") ? PtxType::u32 : PtxType::b64);
      mbarrier_wait(mbarrier_of(run, i, i.arguments[1]), static_cast<unsigned>(i.has("parity") ? state : state % 2),
                    run.site.file, run.site.line);
      run.set(i.arguments[0], 1, PtxType::pred);
    };
  return nullptr;
}

PtxExecute choose_fence_mbarrier_init(PtxInstruction&) {
  return [](PtxRun&, const PtxInstruction&) { fence_mbarrier_init(); };
}

PtxExecute choose_fence_proxy_async(PtxInstruction& i) {
  if (!i.only(3, {"global", "shared", "shared::cta", "shared::cluster"})) return nullptr;
  if (i.has("global")) return [](PtxRun&, const PtxInstruction&) {};  // the engine has one view of global memory
  return [](PtxRun& run, const PtxInstruction&) { fence_proxy_async(run.site.file, run.site.line); };
}

PtxExecute choose_bulk_copy(PtxInstruction& i) {
  if (i.opcode == "cp.async.bulk.commit_group") return [](PtxRun&, const PtxInstruction&) { bulk_commit(); };
  if (i.pieces.size() > 3 && i.pieces[3] == "wait_group" && i.only(4, {"read"}) && i.arguments.size() == 1)
    return [](PtxRun& run, const PtxInstruction& i) {
      bulk_wait(number(run, i.arguments[0]), i.has("read"), run.site.file, run.site.line);
    };
  const bool reduces = i.pieces[1] == "reduce";
  const std::size_t first = reduces ? 4 : 3;
  if (i.pieces.size() < first + 3 || i.arguments.size() < 3) return nullptr;
  const std::string &to = i.pieces[first], &from = i.pieces[first + 1];
  if (to == "global" && from == "shared::cta" && i.has("bulk_group")) {
    if (reduces && (!i.has("add") || i.last_type() != PtxType::f32)) return nullptr;
    if (reduces)
      return [](PtxRun& run, const PtxInstruction& i) {
        bulk_add(reinterpret_cast<float*>(run.pointer(i.arguments[0], false)),
                 reinterpret_cast<const float*>(run.pointer(i.arguments[1], true)), number(run, i.arguments[2]),
                 run.site.return_address);
      };
    return [](PtxRun& run, const PtxInstruction& i) {
      bulk_store(run.pointer(i.arguments[0], false), run.pointer(i.arguments[1], true), number(run, i.arguments[2]),
                 run.site.return_address);
    };
  }
  if (reduces || !i.has("mbarrier::complete_tx::bytes") || i.arguments.size() < 4 ||
      (to != "shared::cluster" && to != "shared::cta"))
    return nullptr;
  if (from == "shared::cta")
    return [](PtxRun& run, const PtxInstruction& i) {
      bulk_to_block(run.pointer(i.arguments[0], true), run.pointer(i.arguments[1], true), number(run, i.arguments[2]),
                    mbarrier_of(run, i, i.arguments[3]), run.site.return_address);
    };
  if (from != "global" || (i.has("multicast::cluster") && i.arguments.size() < 5)) return nullptr;
  return [](PtxRun& run, const PtxInstruction& i) {
    void* const to = run.pointer(i.arguments[0], true);
    const void* const from = run.pointer(i.arguments[1], false);
    std::uint64_t* const mbarrier = mbarrier_of(run, i, i.arguments[3]);
    const int bytes = number(run, i.arguments[2]);
    if (i.has("multicast::cluster"))
      bulk_load_multicast(to, from, bytes, mbarrier, static_cast<std::uint16_t>(run.get(i.arguments[4], PtxType::u16)),
                          run.site.return_address);
    else
      bulk_load(to, from, bytes, mbarrier, run.site.return_address);
  };
}

// wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {d, ..}, a, b, scale d, scale a, scale b, transposed a, b;
// with A in registers: {d, ..}, {a, a, a, a}, b, scale d, scale a, scale b, transposed b;
// m64n64k32.f32.e4m3.e5m2 and the like: the same without transpositions.
static void execute_wgmma(PtxRun& run, const PtxInstruction& i) {
  const bool in_registers = i.arguments[1].form == PtxArgumentOf::vector;
  const auto immediate = [&](std::size_t n, const char* what, int one, int other) {
    const int value = number(run, i.arguments[n]);
    if (value != one && value != other)
      run.fail(cudaErrorNotSupported, std::string("wgmma: ") + what + " is " + std::to_string(value) + ": " +
                                          std::to_string(one) + " or " + std::to_string(other) + " are possible");
    return value == other;
  };
  const auto a_element = static_cast<Element>(i.mode / 4), b_element = static_cast<Element>(i.mode % 4);
  const bool fp8 = is_fp8(a_element);
  ProductForm form = {};
  form.a_in_registers = in_registers;
  form.accumulate = run.get(i.arguments[3], PtxType::pred) != 0;
  form.columns = i.count;
  form.negated = immediate(4, "the scale of A", 1, -1) != immediate(5, "the scale of B", 1, -1);
  form.a.element = a_element;
  form.b = {run.get(i.arguments[2], PtxType::b64), !fp8 && immediate(in_registers ? 6 : 7, "B's transposition", 0, 1),
            b_element};
  std::uint32_t a[4] = {};
  if (in_registers)
    for (std::size_t r = 0; r < 4; ++r)
      a[r] = static_cast<std::uint32_t>(run.get(i.arguments[1].values[r], PtxType::b32));
  else
    form.a = {run.get(i.arguments[1], PtxType::b64), !fp8 && immediate(6, "A's transposition", 0, 1), a_element};
  float* d[128];
  for (int n = 0; n < i.count / 2; ++n) {
    d[n] = static_cast<float*>(run.place(i.arguments[0].values[static_cast<std::size_t>(n)]));
    if (d[n] == nullptr) run.fail(cudaErrorNotSupported, "wgmma: its sums must be \"+f\" operands of the statement");
  }
  wgmma(form, d, in_registers ? a : nullptr, run.site.return_address);
}

PtxExecute choose_wgmma(PtxInstruction& i) {
  if (i.opcode == "wgmma.fence.sync.aligned") return [](PtxRun&, const PtxInstruction&) { wgmma_fence(); };
  if (i.opcode == "wgmma.commit_group.sync.aligned") return [](PtxRun&, const PtxInstruction&) { wgmma_commit(); };
  if (i.opcode == "wgmma.wait_group.sync.aligned" && i.arguments.size() == 1)
    return [](PtxRun& run, const PtxInstruction& i) {
      wgmma_wait(number(run, i.arguments[0]), run.site.file, run.site.line);
    };
  int columns = 0;
  const std::string prefix = "wgmma.mma_async.sync.aligned.m64n";
  if (i.opcode.starts_with(prefix)) columns = std::atoi(i.opcode.c_str() + prefix.size());
  const auto is = [&](const char* types) { return i.opcode == prefix + std::to_string(columns) + types; };
  const struct {
    const char* types;
    Element a, b;
  } forms[] = {
      {"k16.f32.f16.f16", Element::fp16, Element::fp16},   {"k16.f32.bf16.bf16", Element::bf16, Element::bf16},
      {"k32.f32.e4m3.e4m3", Element::e4m3, Element::e4m3}, {"k32.f32.e4m3.e5m2", Element::e4m3, Element::e5m2},
      {"k32.f32.e5m2.e4m3", Element::e5m2, Element::e4m3}, {"k32.f32.e5m2.e5m2", Element::e5m2, Element::e5m2}};
  const auto* const form = std::find_if(std::begin(forms), std::end(forms), [&](const auto& f) { return is(f.types); });
  if (form == std::end(forms))
    return [](PtxRun& run, const PtxInstruction& i) {
      run.fail(cudaErrorNotSupported,
               i.opcode +
                   ": of wgmma, the engine has m64nNk16 of f16 or bf16 and m64nNk32 of e4m3 and e5m2, with sums "
                   "in f32: no tf32, integers, sums in f16 or sparse matrices");
    };
  const bool in_registers = i.arguments.size() > 1 && i.arguments[1].form == PtxArgumentOf::vector;
  const std::size_t arguments = is_fp8(form->a) ? 6 : in_registers ? 7 : 8;
  if (columns < 8 || columns > 256 || columns % 8 != 0 || i.arguments.size() != arguments ||
      i.arguments[0].values.size() != static_cast<std::size_t>(columns / 2) ||
      i.arguments[1].values.size() != (in_registers ? 4 : 1))
    return nullptr;
  i.mode = 4 * static_cast<int>(form->a) + static_cast<int>(form->b);
  i.count = columns;
  return execute_wgmma;
}

}  // namespace simt
