// The C interface against its header: the same bits as the chapters themselves, one line for each thing that is wrong,
// from any thread. (On the SIMT engine the shared library carries an engine of its own, and sees this program's device
// memory as the host's.)
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "attention/block_mask.h"
#include "capi/all_chapters.h"
#include "capi/flash_attention_workbook.h"
#include "device/fp8.h"
#include "device/limits.h"
#include "harness/tensors.h"
#include "harness/verdict.h"
#include "tests/chapter/cases.h"
#include "tests/chapter/on_device.h"

namespace {

using attention::Chapter;
using attention::Problem;
using attention::Rung;
using chapter_suite::OnDevice;
using harness::DeviceTensors;

faw_problem as_c(const Problem& p) {
  return {sizeof(faw_problem),
          p.batch,
          p.heads,
          p.kv_heads,
          p.seq_q,
          p.seq_k,
          p.head_dim,
          p.head_dim_v,
          p.dtype == attention::DType::fp16 ? FAW_FP16 : FAW_BF16,
          p.mask == attention::Mask::causal,
          p.scale,
          nullptr,
          nullptr,
          nullptr};
}

#ifdef WORKBOOK_FEW_INSTANCES
constexpr auto other_dtype = attention::DType::fp16;
#else
constexpr auto other_dtype = attention::DType::bf16;
#endif

Problem small_problem(attention::DType dtype = attention::DType::fp16) {
  Problem p = chapter_suite::ragged().problem;
  p.dtype = dtype;
  return p;
}

std::vector<uint16_t> bits(const harness::GuardedBuffer& buffer) {
  std::vector<uint16_t> all(buffer.bytes() / sizeof(uint16_t));
  if (!all.empty()) buffer.download(all.data());
  return all;
}

// The tables are empty unless the problem has RoPE.
faw_problem with_tables(faw_problem problem, const DeviceTensors& t) {
  if (t.rope_cos.bytes() > 0) problem.rope_cos = t.rope_tables().cos, problem.rope_sin = t.rope_tables().sin;
  return problem;
}

faw_status forward(const char* chapter, const char* rung, const faw_problem& given, const DeviceTensors& t,
                   cudaStream_t stream = nullptr) {
  const faw_problem problem = with_tables(given, t);
  return faw_forward(chapter, rung, &problem, t.q.data(), t.k.data(), t.v.data(), t.o.data(),
                     static_cast<float*>(t.lse.data()), t.workspace.data(), t.workspace.bytes(), stream);
}

faw_status backward(const char* chapter, const char* rung, const faw_problem& given, const DeviceTensors& t,
                    cudaStream_t stream = nullptr) {
  const faw_problem problem = with_tables(given, t);
  return faw_backward(chapter, rung, &problem, t.q.data(), t.k.data(), t.v.data(), t.o.data(),
                      static_cast<float*>(t.lse.data()), t.d_o.data(), t.dq.data(), t.dk.data(), t.dv.data(),
                      t.workspace.data(), t.workspace.bytes(), stream);
}

// Calls test(chapter, rung) for every rung of the book.
void for_every_rung(const std::function<void(const Chapter&, const Rung&)>& test) {
  for (const Chapter* chapter : all_chapters())
    for (const Rung& rung : chapter->rungs) test(*chapter, rung);
}

class Capi : public OnDevice {};

TEST(Book, KnowsTheDefaultProblem) {
  faw_problem problem;
  problem.size = sizeof problem;
  ASSERT_EQ(faw_default_problem(&problem), FAW_OK);
  const Problem expected = attention::default_problem();
  const auto fields = [](const faw_problem& p) {
    return std::tuple(p.batch, p.heads, p.kv_heads, p.seq_q, p.seq_k, p.head_dim, p.dtype, p.causal, p.scale,
                      p.rope_cos, p.rope_sin, p.extras, p.head_dim_v, p.size);
  };
  EXPECT_EQ(fields(problem), fields(as_c(expected)));
  EXPECT_EQ(expected.mask, attention::Mask::causal);
  EXPECT_EQ(expected.scale, attention::default_scale(expected.head_dim));
  EXPECT_EQ(faw_default_problem(nullptr), FAW_INVALID);
  EXPECT_STREQ(faw_error(), "problem is NULL");
}

TEST(Book, CountsFlopsAsFlashAttentionDoes) {
  faw_problem problem = {.size = sizeof(faw_problem),
                         .batch = 3,
                         .heads = 4,
                         .kv_heads = 2,
                         .seq_q = 1 << 17,
                         .seq_k = 1 << 18,
                         .head_dim = 128,
                         .head_dim_v = 0,
                         .dtype = FAW_FP16,
                         .causal = 0,
                         .scale = 1,
                         .rope_cos = nullptr,
                         .rope_sin = nullptr,
                         .extras = nullptr};
  const double full = 4.0 * 3 * 4 * 128 * (1 << 17) * (1 << 18);
  double flops = 0;
  ASSERT_EQ(faw_flops(&problem, 0, &flops), FAW_OK);
  EXPECT_EQ(flops, full);
  problem.causal = 1;
  ASSERT_EQ(faw_flops(&problem, 0, &flops), FAW_OK);
  EXPECT_EQ(flops, full / 2);
  ASSERT_EQ(faw_flops(&problem, 1, &flops), FAW_OK);
  EXPECT_EQ(flops, full / 2 * 2.5);
  problem.head_dim_v = 64;  // of one product in two, and of two in five
  ASSERT_EQ(faw_flops(&problem, 0, &flops), FAW_OK);
  EXPECT_EQ(flops, full / 2 * 0.75);
  ASSERT_EQ(faw_flops(&problem, 1, &flops), FAW_OK);
  EXPECT_EQ(flops, full / 2 * 2);
  problem.heads = 0;
  EXPECT_EQ(faw_flops(&problem, 0, &flops), FAW_INVALID);
  EXPECT_STREQ(faw_error(), "heads is 0: it must be at least 1");
  EXPECT_EQ(faw_flops(&problem, 0, nullptr), FAW_INVALID);
}

TEST(Book, IsTheChaptersAndTheirRungsInOrder) {
  int c = 0;
  for (const Chapter* chapter : all_chapters()) {
    ASSERT_STREQ(faw_chapter(c++), chapter->name.c_str());
    int r = 0;
    for (const Rung& rung : chapter->rungs) {
      ASSERT_STREQ(faw_rung(chapter->name.c_str(), r++), rung.name);
      EXPECT_EQ(faw_has_forward(chapter->name.c_str(), rung.name), bool(rung.forward));
      EXPECT_EQ(faw_has_backward(chapter->name.c_str(), rung.name), bool(rung.backward));
      EXPECT_EQ(faw_writes_lse(chapter->name.c_str(), rung.name), rung.forward && rung.forward.writes_lse);
    }
    EXPECT_EQ(faw_rung(chapter->name.c_str(), r), nullptr);
    EXPECT_EQ(
        faw_has_backward(chapter->name.c_str(), nullptr),
        std::any_of(chapter->rungs.begin(), chapter->rungs.end(), [](const Rung& r) { return bool(r.backward); }));
  }
  EXPECT_GE(c, 5);
  EXPECT_EQ(faw_chapter(c), nullptr);
  EXPECT_EQ(faw_chapter(-1), nullptr);
  EXPECT_EQ(faw_rung("05_online_softmax", -1), nullptr);
  EXPECT_EQ(faw_rung("none", 0), nullptr);
  EXPECT_EQ(faw_rung(nullptr, 0), nullptr);
  EXPECT_EQ(faw_has_forward(nullptr, nullptr), 0);
  EXPECT_EQ(faw_has_forward("05_online_softmax", "none"), 0);
  EXPECT_EQ(faw_writes_lse("none", nullptr), 0);
}

// Going back through the book: who rotates, who does not, and who takes such a head.
TEST_F(Capi, KnowsTheChapterToTakeWhereNobodyNamesOne) {
  const auto taken = [](Problem p, int backward) {
    const faw_problem problem = as_c(p);
    const char* chapter = "";
    return std::string(faw_default_chapter(&problem, p.rope, backward, &chapter) == FAW_OK ? chapter : faw_error());
  };
  for (const bool rope : {false, true})
    for (const int backward : {0, 1})
      for (const int head_dim : {40, 64, 128, 192, 256, 264}) {
        Problem p = small_problem();
        p.head_dim = head_dim;
        p.rope = rope;
        std::string expected;
        for (const Chapter* chapter : all_chapters()) {
          const Rung* last = nullptr;  // the chapter's result in that direction
          for (const Rung& rung : chapter->rungs)
            if (backward ? bool(rung.backward) : bool(rung.forward)) last = &rung;
          if (!last || !chapter->general || chapter->rope != rope || (!backward && !last->forward.writes_lse)) continue;
          if ((backward ? attention::unsupported(last->backward, p) : attention::unsupported(last->forward, p)).empty())
            expected = chapter->name;
        }
        const std::string found = taken(p, backward);
        SCOPED_TRACE("rope " + std::to_string(rope) + " backward " + std::to_string(backward) + " head_dim " +
                     std::to_string(head_dim) + ": " + found);
        EXPECT_EQ(expected.empty(), head_dim > (rope ? 128 : 256));
        if (expected.empty())
          EXPECT_NE(found.find("head_dim is " + std::to_string(head_dim) + ": supported are"), std::string::npos);
        else
          EXPECT_EQ(found, expected);
      }
  EXPECT_NE(taken(small_problem(), 0), "11_split_kv");  // the last of the book, for few queries
  Problem few = small_problem();
  few.seq_q = 1, few.seq_k = 256, few.mask = attention::Mask::none;
  EXPECT_EQ(taken(few, 0), "11_split_kv");
  Problem wide = small_problem();
  wide.head_dim = 60;  // what the first chapter that can be taken would have taken
  EXPECT_EQ(taken(wide, 0).rfind("no chapter takes it: head_dim is 60: supported are", 0), 0u) << taken(wide, 0);
  wide.heads = 0;
  EXPECT_EQ(taken(wide, 0), "heads is 0: it must be at least 1");
  const faw_problem problem = as_c(small_problem());
  EXPECT_EQ(faw_default_chapter(&problem, 0, 0, nullptr), FAW_INVALID);
  EXPECT_EQ(faw_on_engine(), !on_gpu);
}

// The rung's kernels give the default's bits; which rung it is at which problem, fastest_default_test.py asks.
TEST_F(Capi, KnowsTheRungWhoseKernelsRunWhereNobodyNamesOne) {
  const char *chapter = "", *rung = "", *of_chapter = "";
  Problem p = small_problem();
  for (const auto& [seq_q, seq_k] : {std::pair(p.seq_q, p.seq_k), std::pair(1, 256), std::pair(40, 256)}) {
    p.seq_q = seq_q, p.seq_k = seq_k, p.mask = attention::Mask::none;
    const faw_problem problem = as_c(p);
    ASSERT_EQ(faw_default_rung(&problem, 0, 0, &chapter, &rung), FAW_OK) << faw_error();
    ASSERT_EQ(faw_default_chapter(&problem, 0, 0, &of_chapter), FAW_OK) << faw_error();
    const std::string taken = std::string(chapter) + "/" + rung;
    SCOPED_TRACE(taken);
    if (seq_q == 1) {
      EXPECT_EQ(taken, "11_split_kv/tall");
    }
    EXPECT_STREQ(chapter, of_chapter);
    EXPECT_STRNE(rung, "chosen");  // has no kernels of its own
    size_t bytes = 0, of_default = 0;
    ASSERT_EQ(faw_forward_workspace(chapter, rung, &problem, &bytes), FAW_OK) << faw_error();
    ASSERT_EQ(faw_forward_workspace(of_chapter, nullptr, &problem, &of_default), FAW_OK) << faw_error();
    EXPECT_EQ(bytes, of_default);
  }
  const faw_problem problem = as_c(small_problem());
  ASSERT_EQ(faw_default_rung(&problem, 0, 1, &chapter, &rung), FAW_OK) << faw_error();
  EXPECT_EQ(faw_has_backward(chapter, rung), 1);
  EXPECT_EQ(faw_is_deterministic(chapter, rung, 1), 1);
  EXPECT_EQ(faw_default_rung(&problem, 0, 0, nullptr, &rung), FAW_INVALID);
  EXPECT_EQ(faw_default_rung(&problem, 0, 0, &chapter, nullptr), FAW_INVALID);
}

TEST(Book, SaysWhichRungsAreDeterministic) {
  for_every_rung([](const Chapter& chapter, const Rung& rung) {
    const char* name = chapter.name.c_str();
    EXPECT_EQ(faw_is_deterministic(name, rung.name, 0), rung.forward && rung.forward.deterministic);
    EXPECT_EQ(faw_is_deterministic(name, rung.name, 1), rung.backward && rung.backward.deterministic);
  });
  EXPECT_EQ(faw_is_deterministic("10_hopper", "bulk", 1), 0);
  EXPECT_EQ(faw_is_deterministic("10_hopper", "none", 1), 0);
}

TEST(Book, ScalesAsTheChaptersDo) { EXPECT_EQ(faw_default_scale(100), 0.1f); }

TEST_F(Capi, GivesTheSameBitsAsTheChapters) {
  const char* const value = std::getenv("WORKBOOK_PASS");
  const bool only_last = value && std::string(value) == "last";
  for (const auto dtype : {attention::DType::fp16, other_dtype}) {
    const auto inputs = harness::make_inputs(small_problem(dtype), harness::InputKind::spread, 7);
    const harness::Reference reference(small_problem(dtype), inputs, true);
    for_every_rung([&](const Chapter& chapter, const Rung& rung) {
      const bool of_all = dtype == attention::DType::fp16 && !only_last;
      if (!of_all && &rung != &chapter.rungs.back()) return;  // one dtype says it of the others
      Problem p = small_problem(dtype);
      p.rope = chapter.rope;
      const faw_problem problem = as_c(p);
      const char* name = chapter.name.c_str();
      SCOPED_TRACE(chapter.name + "/" + rung.name + " " + attention::name(dtype));
      size_t bytes = 0;
      if (rung.forward) {
        ASSERT_EQ(faw_forward_workspace(name, rung.name, &problem, &bytes), FAW_OK) << faw_error();
        EXPECT_EQ(bytes, rung.forward.workspace_bytes(p));
        const DeviceTensors direct(p, inputs, bytes, false), through(p, inputs, bytes, false);
        rung.forward.run(p, direct.forward_args(), nullptr);
        ASSERT_EQ(forward(name, rung.name, problem, through), FAW_OK) << faw_error();
        check(cudaDeviceSynchronize());
        EXPECT_EQ(bits(through.o), bits(direct.o));
        EXPECT_EQ(bits(through.lse), bits(direct.lse));
        EXPECT_FALSE(std::isnan(harness::from_storage(bits(through.o), dtype)[0]));
      }
      if (rung.backward) {
        ASSERT_EQ(faw_backward_workspace(name, rung.name, &problem, &bytes), FAW_OK) << faw_error();
        EXPECT_EQ(bytes, rung.backward.workspace_bytes(p));
        DeviceTensors direct(p, inputs, bytes, true), through(p, inputs, bytes, true);
        harness::upload_forward(direct, p, reference);
        harness::upload_forward(through, p, reference);
        rung.backward.run(p, direct.backward_args(), nullptr);
        ASSERT_EQ(backward(name, rung.name, problem, through), FAW_OK) << faw_error();
        check(cudaDeviceSynchronize());
        EXPECT_EQ(bits(through.dq), bits(direct.dq));
        EXPECT_EQ(bits(through.dk), bits(direct.dk));
        EXPECT_EQ(bits(through.dv), bits(direct.dv));
      }
    });
  }
}

// Whether both directions of the problem are right in the chapter that is chosen for it, which has to be chapter 12's;
// give(tensors) says where the extras lie. Returns the forward's tensors.
template <class Give>
std::unique_ptr<DeviceTensors> chapter_12_solves(const faw_problem& problem, const Problem& p,
                                                 const harness::HostTensors& inputs, const Give& give) {
  const harness::Reference reference(p, inputs, true);
  const char* chapter = "";
  size_t bytes = 0;
  EXPECT_EQ(faw_default_chapter(&problem, 0, 0, &chapter), FAW_OK) << faw_error();
  EXPECT_STREQ(chapter, "12_variants");
  EXPECT_EQ(faw_forward_workspace(chapter, nullptr, &problem, &bytes), FAW_OK) << faw_error();
  auto of_forward = std::make_unique<DeviceTensors>(p, inputs, bytes, false);
  give(*of_forward);
  EXPECT_EQ(forward(chapter, nullptr, problem, *of_forward), FAW_OK) << faw_error();
  check(cudaDeviceSynchronize());
  EXPECT_EQ(check_forward(*of_forward, p, reference, true).first_wrong(), "");

  EXPECT_EQ(faw_default_chapter(&problem, 0, 1, &chapter), FAW_OK) << faw_error();
  EXPECT_STREQ(chapter, "12_variants");
  EXPECT_EQ(faw_backward_workspace(chapter, nullptr, &problem, &bytes), FAW_OK) << faw_error();
  DeviceTensors of_backward(p, inputs, bytes, true);
  harness::upload_forward(of_backward, p, reference);
  give(of_backward);
  EXPECT_EQ(backward(chapter, nullptr, problem, of_backward), FAW_OK) << faw_error();
  check(cudaDeviceSynchronize());
  EXPECT_EQ(check_backward(of_backward, p, reference).first_wrong(), "");
  return of_forward;
}

TEST_F(Capi, TakesAVWithItsOwnHeadDim) {
  for (const auto& [views, unaligned] : {std::pair(false, false), {true, false}, {true, true}}) {
    Problem p = chapter_suite::ragged(192).problem;
    p.head_dim_v = 128;
    p.views = views, p.unaligned = unaligned;
    const auto inputs = harness::make_inputs(p, harness::InputKind::spread, 7);
    faw_problem problem = as_c(p);
    faw_extras extras = FAW_NO_EXTRAS;
    const auto as_strides = [](const attention::Strides& s) { return faw_strides{s.batch, s.head, s.row}; };
    const faw_strides of_q = as_strides(harness::strides(p, p.heads, p.seq_q, 192)),
                      of_k = as_strides(harness::strides(p, p.kv_heads, p.seq_k, 192)),
                      of_v = as_strides(harness::strides(p, p.kv_heads, p.seq_k, 128)),
                      of_o = as_strides(harness::strides(p, p.heads, p.seq_q, 128));
    extras.q = extras.dq = &of_q, extras.k = extras.dk = &of_k;
    extras.v = extras.dv = &of_v, extras.o = extras.d_o = &of_o;
    extras.unaligned = unaligned;
    if (views) problem.extras = &extras;

    chapter_12_solves(problem, p, inputs, [](const DeviceTensors&) {});
  }
}

TEST_F(Capi, TakesPackedSequences) {
  Problem p = chapter_suite::ragged(64).problem;
  p.batch = 6;
  p = harness::packed(p);
  const auto inputs = harness::make_inputs(p, harness::InputKind::spread, 7);
  faw_problem problem = as_c(p);
  faw_extras extras = FAW_NO_EXTRAS;
  problem.extras = &extras;
  extras.total_q = p.total_q, extras.total_k = p.total_k;
  const auto give = [&](const DeviceTensors& t) {
    extras.cu_seqlens_q = t.forward_args().cu_seqlens_q, extras.cu_seqlens_k = t.forward_args().cu_seqlens_k;
  };
  give(DeviceTensors(p, inputs, 0, false));  // for questions, that there are some

  const auto solved = chapter_12_solves(problem, p, inputs, give);
  const DeviceTensors& of_forward = *solved;
  const char* const chapter = "12_variants";

  // Without the last sequence its rows are of none: nobody writes them, or zeros, as the caller likes.
  problem.batch = 5;
  const auto is_zero = [&](const void* o) {
    std::vector<uint16_t> rows(size_t(p.total_q) * p.heads * p.head_dim);
    check(cudaMemcpy(rows.data(), o, rows.size() * sizeof(uint16_t), cudaMemcpyDefault));
    return rows.back() == 0;
  };
  for (const bool zero_rest : {false, true}) {
    give(of_forward);
    extras.zero_rest = zero_rest;
    ASSERT_EQ(forward(chapter, nullptr, problem, of_forward), FAW_OK) << faw_error();
    check(cudaDeviceSynchronize());
    EXPECT_EQ(is_zero(of_forward.forward_args().o), zero_rest);
  }
  problem.batch = 6;

  const auto refused = [&](const std::string& text) {
    EXPECT_EQ(forward(chapter, nullptr, problem, of_forward), FAW_INVALID);
    EXPECT_NE(std::string(faw_error()).find(text), std::string::npos) << faw_error();
  };
  double flops = 0;
  EXPECT_EQ(faw_flops(&problem, 0, &flops), FAW_INVALID);
  give(of_forward);
  extras.cu_seqlens_k = nullptr;
  refused("cu_seqlens_k is NULL");
  extras.cu_seqlens_k = reinterpret_cast<const int*>(reinterpret_cast<uintptr_t>(extras.cu_seqlens_q) + 2);
  refused("cu_seqlens_k is not aligned to 4 bytes");
  extras.cu_seqlens_q = extras.cu_seqlens_k = nullptr;
  refused("and cu_seqlens_q and cu_seqlens_k are NULL: the totals are of packed sequences");
  give(of_forward);
  extras.total_q = 0;
  refused("total_q is 0: it must be at least 1");
  extras.total_q = 10;
  if (!on_gpu) refused("it must be at most total_q, 10");
}

TEST_F(Capi, TakesASinglePackedToken) {
  for (const int head_dim : {64, 128}) {
    Problem p = chapter_suite::ragged(head_dim).problem;
    p.batch = p.seq_q = p.seq_k = 1;
    p = harness::packed(p);
    p.total_q = p.total_k = 1;
    faw_problem problem = as_c(p);
    faw_extras extras = FAW_NO_EXTRAS;
    problem.extras = &extras;
    extras.total_q = extras.total_k = 1;
    const faw_strides strides = {0, head_dim, 0};  // of an axis with one part any stride is as good
    for (const faw_strides* faw_extras::*of : {&faw_extras::q, &faw_extras::k, &faw_extras::v, &faw_extras::o,
                                               &faw_extras::d_o, &faw_extras::dq, &faw_extras::dk, &faw_extras::dv})
      extras.*of = &strides;
    const auto give = [&](const DeviceTensors& t) {
      extras.cu_seqlens_q = t.forward_args().cu_seqlens_q, extras.cu_seqlens_k = t.forward_args().cu_seqlens_k;
    };
    const auto inputs = harness::make_inputs(p, harness::InputKind::spread, 7);
    give(DeviceTensors(p, inputs, 0, false));  // for questions, that there are some
    chapter_12_solves(problem, p, inputs, give);
  }
}

TEST_F(Capi, TakesABlockMask) {
  Problem p = chapter_suite::ragged(64).problem;
  p.mask = attention::Mask::none;
  p = attention::with_blocks(p, attention::BlockPattern::documents);
  const auto inputs = harness::make_inputs(p, harness::InputKind::spread, 7);
  faw_problem problem = as_c(p);
  faw_extras extras = FAW_NO_EXTRAS;
  problem.extras = &extras;
  const auto give = [&](const DeviceTensors& t) {
    const attention::BlockMask mask = t.forward_args().blocks;
    extras.block_begin = mask.begin, extras.block_tiles = mask.tiles, extras.block_bits = mask.bits;
    extras.block_batch = mask.batch, extras.block_heads = mask.heads;
    extras.block_listed = mask.listed, extras.block_cuts = mask.cuts;
  };
  give(DeviceTensors(p, inputs, 0, false));

  const auto solved = chapter_12_solves(problem, p, inputs, give);
  const DeviceTensors& of_forward = *solved;
  const char* const chapter = "12_variants";

  const auto refused = [&](const std::string& text, faw_status status = FAW_INVALID) {
    EXPECT_EQ(forward(chapter, nullptr, problem, of_forward), status);
    EXPECT_NE(std::string(faw_error()).find(text), std::string::npos) << faw_error();
    give(of_forward);
  };
  double flops = 0;
  EXPECT_EQ(faw_flops(&problem, 0, &flops), FAW_INVALID);
  give(of_forward);
  extras.block_tiles = nullptr;
  refused("block_tiles is NULL");
  extras.block_bits++;
  refused("block_bits is not aligned to 16 bytes");
  extras.block_begin = nullptr;
  refused("block_begin is NULL and there are sizes of a block mask: they must be 0");
  extras.block_heads = 3;
  refused("block_heads is 3: it must be 1 or 2");
  extras.block_listed = -1;
  refused("block_listed is -1: it must be from 0 to 536870911");
  extras.block_listed = 1 << 29;
  refused("block_listed is 536870912: it must be from 0 to 536870911");
  extras.softcap = 2;
  refused("beside blocks it takes no softcap: supported there are causal and a sink", FAW_UNSUPPORTED);
  extras.softcap = 0;
  extras.block_cuts = 1;
  if (!on_gpu) refused("has the bits of number 1: it must be from -1 to 0");
}

// A tensor in e4m3, and its scales: one, or one for each tile of a head.
struct InE4m3 {
  std::vector<__nv_fp8_e4m3> bytes;
  std::vector<float> scales;

  InE4m3(const std::vector<float>& x, int rows, int columns, bool of_tiles) : bytes(x.size()) {
    const size_t head = size_t(rows) * columns, tile = size_t(attention::fp8_tile) * columns;
    for (size_t begin = 0, end; begin < x.size(); begin = end) {
      end = of_tiles ? std::min(begin + tile, begin / head * head + head) : x.size();
      float largest = 0;
      for (size_t i = begin; i < end; i++) largest = std::max(largest, std::abs(x[i]));
      scales.push_back(of_tiles ? tile_scale(largest) : largest / largest_e4m3);
      for (size_t i = begin; i < end; i++) bytes[i] = from_float<__nv_fp8_e4m3>(x[i] / scales.back());
    }
  }
};

template <class T>
harness::GuardedBuffer uploaded(const std::vector<T>& values) {
  harness::GuardedBuffer buffer(values.size() * sizeof(T), 256);
  buffer.upload(values.data());
  return buffer;
}

// All that a forward of tensors in e4m3 takes.
struct CallOfE4m3 {
  Problem p;
  InE4m3 q, k, v;
  harness::GuardedBuffer q_bytes, k_bytes, v_bytes, q_scales, k_scales, v_scales;
  DeviceTensors results;
  faw_scales scales;

  CallOfE4m3(const Problem& problem, const harness::HostTensors& rounded, bool of_tiles)
      : p(problem),
        q(rounded.q, p.seq_q, p.head_dim, of_tiles),
        k(rounded.k, p.seq_k, p.head_dim, of_tiles),
        v(rounded.v, p.seq_k, p.head_dim, of_tiles),
        q_bytes(uploaded(q.bytes)),
        k_bytes(uploaded(k.bytes)),
        v_bytes(uploaded(v.bytes)),
        q_scales(uploaded(q.scales)),
        k_scales(uploaded(k.scales)),
        v_scales(uploaded(v.scales)),
        results(p, rounded, workspace_bytes(as_c(p)), false),
        scales{pointer(q_scales), pointer(k_scales), pointer(v_scales), of_tiles} {}

  static const float* pointer(const harness::GuardedBuffer& buffer) { return static_cast<float*>(buffer.data()); }
  static size_t workspace_bytes(const faw_problem& problem) {
    size_t bytes = 0;
    EXPECT_EQ(faw_forward_e4m3_workspace("13_fp8", nullptr, &problem, &bytes), FAW_OK) << faw_error();
    return bytes;
  }
  faw_status run() const {
    const faw_problem problem = as_c(p);
    const faw_status status = faw_forward_e4m3(
        "13_fp8", nullptr, &problem, q_bytes.data(), k_bytes.data(), v_bytes.data(), &scales, results.o.data(),
        static_cast<float*>(results.lse.data()), results.workspace.data(), results.workspace.bytes(), nullptr);
    check(cudaDeviceSynchronize());
    return status;
  }
};

TEST_F(Capi, TakesTensorsInE4m3) {
  EXPECT_EQ(faw_has_forward_e4m3("13_fp8", nullptr), 1);
  EXPECT_EQ(faw_has_forward_e4m3("13_fp8", "direct"), 0);
  EXPECT_EQ(faw_has_forward_e4m3("10_hopper", nullptr), 0);
  for (const int head_dim : {64, 128, 256})
    for (const bool of_tiles : {false, true})
      for (const auto kind : {harness::InputKind::spread, harness::InputKind::spike_last}) {
        SCOPED_TRACE("head_dim " + std::to_string(head_dim) + (of_tiles ? ", scales of tiles, " : ", ") + name(kind));
        const bool many = kind == harness::InputKind::spread;
        Problem p = (many ? chapter_suite::many_tiles(head_dim) : chapter_suite::ragged(head_dim)).problem;
        p.dtype = of_tiles ? other_dtype : attention::DType::fp16;
        if (const std::string why = attention::not_for_hopper_to_256(p); !why.empty()) GTEST_SKIP() << why;
        p.eight_bits = of_tiles ? attention::scale_of_tile : attention::lagging_max;
        auto inputs = harness::make_inputs(p, kind, 7);
        for (size_t i = 0; i < inputs.v.size(); i++)
          inputs.v[i] *= float(1 << i / head_dim / attention::fp8_tile % 3 * 2);
        const harness::HostTensors rounded = in_eight_bits(p, inputs);
        const CallOfE4m3 call(p, rounded, of_tiles);
        ASSERT_EQ(call.run(), FAW_OK) << faw_error();
        const harness::Reference reference(p, rounded, false);
        EXPECT_EQ(check_forward(call.results, p, reference, true).first_wrong(), "");
      }
}

// There are so many heads that V of the last ones is not transposed before the loop, but while it runs.
TEST_F(Capi, TransposesVWhileTheLoopRuns) {
  for (const int head_dim : {64, 128, 256}) {
    SCOPED_TRACE("head_dim " + std::to_string(head_dim));
    Problem p = small_problem();
    p.batch = 1, p.heads = p.kv_heads = 2 * multiprocessors() + 16, p.seq_q = 130, p.seq_k = 150, p.head_dim = head_dim;
    p.scale = attention::default_scale(head_dim);
    if (const std::string why = attention::not_for_hopper_to_256(p); !why.empty()) GTEST_SKIP() << why;
    p.eight_bits = attention::scale_of_tile;
    const auto rounded = in_eight_bits(p, harness::make_inputs(p, harness::InputKind::spread, 7));
    const CallOfE4m3 call(p, rounded, true);
    const harness::Reference reference(p, rounded, false);
    for (int turn = 0; turn < 2; turn++) {  // the second begins with what the first one left
      ASSERT_EQ(call.run(), FAW_OK) << faw_error();
      EXPECT_EQ(check_forward(call.results, p, reference, true).first_wrong(), "");
    }
  }
}

// Only the kernels know what scales in device memory are. On the engine it is the call that refuses them.
TEST_F(Capi, MakesNaNOfWhatNoScaleBelongsTo) {
  Problem p = small_problem();
  if (const std::string why = attention::not_for_hopper(p); !why.empty()) GTEST_SKIP() << why;
  p.eight_bits = attention::scale_of_tile;
  auto rounded = in_eight_bits(p, harness::make_inputs(p, harness::InputKind::spread, 7));
  std::fill(rounded.q.begin(), rounded.q.end(), 0.f);  // scores of 0 are small whatever they are multiplied by
  constexpr float nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();
  for (const char* name : {"q", "k", "v"})
    for (const float wrong : {0.f, -1.f, 1e-40f, nan, infinity}) {
      SCOPED_TRACE(std::string("a scale of ") + name + " is " + std::to_string(wrong));
      CallOfE4m3 call(p, rounded, true);
      const auto [spoilt, buffer] = *name == 'q'   ? std::tie(call.q.scales, call.q_scales)
                                    : *name == 'k' ? std::tie(call.k.scales, call.k_scales)
                                                   : std::tie(call.v.scales, call.v_scales);
      spoilt.back() = wrong;
      buffer.upload(spoilt.data());
      if (faw_on_engine()) {
        EXPECT_EQ(call.run(), FAW_INVALID);
        EXPECT_EQ(std::string(faw_error()).find(std::string("a scale of ") + name + " is "), 0u) << faw_error();
      }
      attention::ForwardArgs args = call.results.forward_args();
      args.q = call.q_bytes.data(), args.k = call.k_bytes.data(), args.v = call.v_bytes.data();
      args.scales = {call.scales.q, call.scales.k, call.scales.v, true};
      all_chapters().back()->rungs.back().from_e4m3.run(p, args, nullptr);
      check(cudaDeviceSynchronize());
      const auto o = harness::from_storage(bits(call.results.o), p.dtype);
      EXPECT_TRUE(std::isnan(o.back()));  // of the last head's last row, which all of them belong to
      EXPECT_FALSE(std::isnan(o.front()));
    }
}

TEST_F(Capi, RefusesWrongTensorsInE4m3) {
  Problem p = small_problem();
  if (const std::string why = attention::not_for_hopper(p); !why.empty()) GTEST_SKIP() << why;
  const auto refused = [&](faw_status status, const std::string& text, const auto& spoil) {
    CallOfE4m3 wrong(p, harness::make_inputs(p, harness::InputKind::spread, 7), false);
    faw_problem problem = as_c(p);
    const char* rung = nullptr;
    const faw_scales* scales = &wrong.scales;
    const void* v = wrong.v_bytes.data();
    spoil(problem, rung, wrong.scales, scales, v);
    EXPECT_EQ(faw_forward_e4m3("13_fp8", rung, &problem, wrong.q_bytes.data(), wrong.k_bytes.data(), v, scales,
                               wrong.results.o.data(), static_cast<float*>(wrong.results.lse.data()),
                               wrong.results.workspace.data(), wrong.results.workspace.bytes(), nullptr),
              status);
    EXPECT_EQ(faw_error(), text);
  };
  using S = faw_scales;
  refused(FAW_INVALID, "scales is NULL", [](auto&, auto&, S&, const S*& scales, auto&) { scales = nullptr; });
  refused(FAW_INVALID, "the scale of k is NULL", [](auto&, auto&, S& s, auto&, auto&) { s.k = nullptr; });
  refused(FAW_INVALID, "the scale of v is not aligned to 4 bytes", [](auto&, auto&, S& s, auto&, auto&) {
    s.v = reinterpret_cast<const float*>(reinterpret_cast<const char*>(s.v) + 2);
  });
  refused(FAW_INVALID, "of_tiles is 2: it must be 0 or 1", [](auto&, auto&, S& s, auto&, auto&) { s.of_tiles = 2; });
  refused(FAW_INVALID, "v is NULL", [](auto&, auto&, auto&, auto&, const void*& v) { v = nullptr; });
  refused(FAW_UNSUPPORTED, "13_fp8: head_dim is 72: of tensors in e4m3 supported are 64, 128 and 256",
          [](faw_problem& problem, auto&, auto&, auto&, auto&) { problem.head_dim = 72; });
  refused(FAW_UNSUPPORTED, "13_fp8, rung direct, has no forward of tensors in e4m3",
          [](auto&, const char*& rung, auto&, auto&, auto&) { rung = "direct"; });
  faw_extras extras = FAW_NO_EXTRAS;
  extras.window_left = 5;
  refused(FAW_UNSUPPORTED, "13_fp8: it takes no window",
          [&](faw_problem& problem, auto&, auto&, auto&, auto&) { problem.extras = &extras; });
}

TEST_F(Capi, TakesTheLastRungUnlessOneIsNamed) {
  const auto inputs = harness::make_inputs(small_problem(), harness::InputKind::spread, 7);
  for (const Chapter* chapter : all_chapters()) {
    Problem p = small_problem();
    p.rope = chapter->rope;
    const faw_problem problem = as_c(p);
    const char* last = nullptr;
    for (const Rung& rung : chapter->rungs)
      if (rung.forward) last = rung.name;
    if (!last) continue;
    size_t bytes = 0;
    ASSERT_EQ(faw_forward_workspace(chapter->name.c_str(), nullptr, &problem, &bytes), FAW_OK) << faw_error();
    const DeviceTensors named(p, inputs, bytes, false), unnamed(p, inputs, bytes, false);
    ASSERT_EQ(forward(chapter->name.c_str(), last, problem, named), FAW_OK) << faw_error();
    ASSERT_EQ(forward(chapter->name.c_str(), nullptr, problem, unnamed), FAW_OK) << faw_error();
    check(cudaDeviceSynchronize());
    EXPECT_EQ(bits(named.o), bits(unnamed.o)) << chapter->name;
  }
}

// One good call of chapter 05, to be spoilt in one place at a time.
struct Call {
  std::string chapter = "05_online_softmax";
  const char* rung = nullptr;
  faw_problem problem = as_c(small_problem());
  char* pointer = nullptr;  // of every tensor: nothing must be read or written
  const void *q, *k, *v;
  void* o;
  float* lse;
  void* workspace = nullptr;
  size_t workspace_bytes = size_t(1) << 40;  // said, and not there

  explicit Call(void* memory) : pointer(static_cast<char*>(memory)) {
    q = k = v = o = memory;
    lse = static_cast<float*>(memory);
  }

  faw_status run() const {
    return faw_forward(chapter.c_str(), rung, &problem, q, k, v, o, lse, workspace, workspace_bytes, nullptr);
  }
};

void expect_refusal(const char* title, const std::function<void(Call&)>& spoil, faw_status status,
                    const std::string& text) {
  const harness::DeviceBuffer memory(4096);
  Call call(memory.data());
  spoil(call);
  EXPECT_EQ(call.run(), status) << title;
  const std::string message = faw_error();
  EXPECT_NE(message.find(text), std::string::npos) << title << " says: " << message;
  EXPECT_EQ(message.find('\n'), std::string::npos) << title << " says: " << message;
}

TEST_F(Capi, RefusesEachWrongArgumentInOneLine) {
  const auto invalid = [](const char* title, const std::function<void(Call&)>& spoil, const std::string& text) {
    expect_refusal(title, spoil, FAW_INVALID, text);
  };
  invalid(
      "chapter", [](Call& c) { c.chapter = "5"; }, "chapter is 5: there are 01_naive, ");
  invalid(
      "newline", [](Call& c) { c.chapter = "0\n5"; }, "chapter is 0 5: there are 01_naive, ");
  invalid(
      "long", [](Call& c) { c.chapter = std::string(5000, 'x'); }, "chapter is xxx");
  invalid(
      "rung", [](Call& c) { c.rung = "none"; }, "rung is none: 05_online_softmax has online, tiles");
  invalid(
      "empty rung", [](Call& c) { c.rung = ""; }, "rung is : 05_online_softmax has online, tiles");
  invalid(
      "q", [](Call& c) { c.q = nullptr; }, "q is NULL");
  invalid(
      "k", [](Call& c) { c.k = nullptr; }, "k is NULL");
  invalid(
      "v", [](Call& c) { c.v = nullptr; }, "v is NULL");
  invalid(
      "o", [](Call& c) { c.o = nullptr; }, "o is NULL");
  invalid(
      "lse", [](Call& c) { c.lse = nullptr; }, "lse is NULL");
  invalid(
      "q + 2", [](Call& c) { c.q = c.pointer + 2; }, "q is not aligned to 16 bytes");
  invalid(
      "k + 8", [](Call& c) { c.k = c.pointer + 8; }, "k is not aligned to 16 bytes");
  invalid(
      "v + 1", [](Call& c) { c.v = c.pointer + 1; }, "v is not aligned to 16 bytes");
  invalid(
      "o + 4", [](Call& c) { c.o = c.pointer + 4; }, "o is not aligned to 16 bytes");
  invalid(
      "lse + 4", [](Call& c) { c.lse += 1; }, "lse is not aligned to 16 bytes");
  invalid(
      "batch", [](Call& c) { c.problem.batch = 0; }, "batch is 0: it must be at least 1");
  invalid(
      "heads", [](Call& c) { c.problem.heads = -4; }, "heads is -4: it must be at least 1");
  invalid(
      "kv_heads", [](Call& c) { c.problem.kv_heads = 3; }, "heads is 2 and kv_heads is 3");
  invalid(
      "seq_q", [](Call& c) { c.problem.seq_q = 0; }, "seq_q is 0");
  invalid(
      "seq_k", [](Call& c) { c.problem.seq_k = std::numeric_limits<int>::min(); }, "seq_k is -2147483648");
  invalid(
      "head_dim_v", [](Call& c) { c.problem.head_dim_v = -1; }, "head_dim_v is -1: it must be at least 1, or 0 for");
  invalid(
      "beyond size_t",
      [](Call& c) { c.problem.batch = c.problem.seq_q = c.problem.seq_k = std::numeric_limits<int>::max(); },
      "batch x heads x seq_q x seq_k is beyond all memory");
  invalid(
      "dtype", [](Call& c) { c.problem.dtype = 2; }, "dtype is 2: it must be 0 (fp16) or 1 (bf16)");
  invalid(
      "causal", [](Call& c) { c.problem.causal = -1; }, "causal is -1: it must be 0 or 1");
  invalid(
      "scale", [](Call& c) { c.problem.scale = std::numeric_limits<float>::infinity(); }, "scale is inf");
  invalid(
      "scale * log2(e)", [](Call& c) { c.problem.scale = 2.36e38f; },
      "scale is 2.36e+38: it must lie between -2.35e+38");
  invalid(
      "-scale * log2(e)", [](Call& c) { c.problem.scale = -2.36e38f; }, "scale is -2.36e+38: it must lie between");
  invalid(
      "workspace", [](Call& c) { c.chapter = "01_naive"; }, "workspace is NULL");
  invalid(
      "workspace + 8", [](Call& c) { c.chapter = "01_naive", c.workspace = c.pointer + 8; },
      "workspace is not aligned to 16 bytes");
  invalid(
      "workspace_bytes", [](Call& c) { c.chapter = "01_naive", c.workspace = c.pointer, c.workspace_bytes = 100; },
      "workspace_bytes is 100: it must be at least ");
  invalid(
      "scale of 0", [](Call& c) { c.problem.scale = 0; }, "scale is 0: it must be another number, such as faw_default");
  invalid(
      "size", [](Call& c) { c.problem.size = 0; }, "problem's size is 0: it must be sizeof(faw_problem), which is ");
  invalid(
      "size of extras",
      [](Call& c) {
        static faw_extras short_by_one = FAW_NO_EXTRAS;
        short_by_one.size--;
        c.chapter = "12_variants", c.problem.extras = &short_by_one;
      },
      "extras's size is " + std::to_string(sizeof(faw_extras) - 1) + ": it must be sizeof(faw_extras), which is ");
}

// A caller with a newer header has a larger problem: it is taken if what the library does not know is 0.
TEST_F(Capi, TakesLargerStructsThatAreZeroBehind) {
  struct Larger {
    faw_problem known = as_c(small_problem());
    int more[4] = {};
  } problem;
  problem.known.size = sizeof problem;
  size_t bytes = 1;
  EXPECT_EQ(faw_forward_workspace("05_online_softmax", nullptr, &problem.known, &bytes), FAW_OK) << faw_error();
  problem.more[3] = 1 << 24;
  EXPECT_EQ(faw_forward_workspace("05_online_softmax", nullptr, &problem.known, &bytes), FAW_INVALID);
  EXPECT_EQ(faw_error(), "problem's size is " + std::to_string(sizeof problem) + ": here it has " +
                             std::to_string(sizeof(faw_problem)) + " bytes, and what is behind them must be 0");
  EXPECT_EQ(faw_default_problem(&problem.known), FAW_OK) << faw_error();
  EXPECT_EQ(problem.more[3], 0);
  EXPECT_EQ(problem.known.size, sizeof problem);
  problem.known.size = sizeof(faw_problem) - 1;
  EXPECT_EQ(faw_default_problem(&problem.known), FAW_INVALID);

  struct {
    faw_extras known = FAW_NO_EXTRAS;
    void* more = nullptr;
  } extras;
  extras.known.size = sizeof extras;
  faw_problem with_extras = as_c(small_problem());
  with_extras.extras = &extras.known;
  EXPECT_EQ(faw_forward_workspace("12_variants", nullptr, &with_extras, &bytes), FAW_OK) << faw_error();
  extras.more = &extras;
  EXPECT_EQ(faw_forward_workspace("12_variants", nullptr, &with_extras, &bytes), FAW_INVALID);
}

TEST_F(Capi, TakesScalesThatAreFiniteInBase2) {
  for (const float scale : {2.35e38f, -2.35e38f, 1e-45f}) {
    faw_problem problem = as_c(small_problem());
    problem.scale = scale;
    size_t bytes = 0;
    EXPECT_EQ(faw_forward_workspace("05_online_softmax", nullptr, &problem, &bytes), FAW_OK) << faw_error();
  }
}

TEST_F(Capi, RefusesWhatAChapterCannotDo) {
  expect_refusal(
      "head_dim", [](Call& c) { c.problem.head_dim = 60; }, FAW_UNSUPPORTED,
      "05_online_softmax: head_dim is 60: supported are");
  expect_refusal(
      "head_dim of a rung",
      [](Call& c) { c.chapter = "05_online_softmax", c.rung = "online", c.problem.head_dim = 60; }, FAW_UNSUPPORTED,
      "05_online_softmax, forward of rung online: head_dim is 60: supported are");
  expect_refusal(
      "head_dim_v", [](Call& c) { c.problem.head_dim_v = 32; }, FAW_UNSUPPORTED,
      "05_online_softmax: it takes no V with a head_dim of its own (32 beside 64)");
  expect_refusal(
      "head_dim_v beside others", [](Call& c) { c.chapter = "12_variants", c.problem.head_dim_v = 32; },
      FAW_UNSUPPORTED,
      "12_variants: the head dim of V is 32 beside 64: supported are the same as of Q and K, and 128 beside 192");
  expect_refusal(
      "head_dim_v with a softcap",
      [](Call& c) {
        static faw_extras capped = FAW_NO_EXTRAS;
        capped.softcap = 30;
        c.chapter = "12_variants", c.problem.extras = &capped, c.problem.head_dim = 192, c.problem.head_dim_v = 128;
      },
      FAW_UNSUPPORTED, "12_variants: the problem has a V with its own head dim and a softcap: supported is one of");
  expect_refusal(
      "too long", [](Call& c) { c.chapter = "04_fusion", c.problem.seq_k = 1 << 20; }, FAW_UNSUPPORTED,
      "04_fusion: seq_k is 1048576");
}

TEST_F(Capi, WantsTablesFromWhoRotatesAndFromNobodyElse) {
  const auto rotating = [](const char* title, const std::function<void(Call&)>& spoil, const std::string& text) {
    expect_refusal(
        title,
        [&](Call& c) {
          c.chapter = "09_rope_fused";
          c.workspace = c.pointer;
          c.problem.rope_cos = c.problem.rope_sin = reinterpret_cast<const float*>(c.pointer);
          spoil(c);
        },
        FAW_INVALID, text);
  };
  rotating(
      "no cos", [](Call& c) { c.problem.rope_cos = nullptr; }, "rope_cos is NULL");
  rotating(
      "no sin", [](Call& c) { c.problem.rope_sin = nullptr; }, "rope_sin is NULL");
  rotating(
      "sin + 4", [](Call& c) { c.problem.rope_sin++; }, "rope_sin is not aligned to 16 bytes");
  rotating(
      "05", [](Call& c) { c.chapter = "05_online_softmax"; },
      "05_online_softmax does not rotate Q and K: rope_cos and rope_sin must be NULL");
  for (const Chapter* chapter : all_chapters()) EXPECT_EQ(faw_rotates(chapter->name.c_str()), chapter->rope);
  EXPECT_EQ(faw_rotates("none"), 0);
  EXPECT_EQ(faw_rotates(nullptr), 0);
  EXPECT_EQ(faw_rounds_to_eight_bits("13_fp8"), 1);
  EXPECT_EQ(faw_rounds_to_eight_bits("12_variants"), 0);
  EXPECT_EQ(faw_rounds_to_eight_bits("none"), 0);
  for (const Chapter* chapter : all_chapters()) EXPECT_EQ(faw_is_general(chapter->name.c_str()), chapter->general);
  EXPECT_EQ(faw_is_general("11_split_kv"), 0);
  EXPECT_EQ(faw_is_general("none"), 0);
}

TEST_F(Capi, NamesTheDirectionThatIsMissing) {
  const faw_problem problem = as_c(small_problem());
  const harness::DeviceBuffer memory(64);
  void* p = memory.data();
  size_t bytes = 0;
  for_every_rung([&](const Chapter& chapter, const Rung& rung) {
    const char* name = chapter.name.c_str();
    if (!rung.forward) {
      EXPECT_EQ(faw_forward_workspace(name, rung.name, &problem, &bytes), FAW_UNSUPPORTED);
      EXPECT_EQ(faw_error(), chapter.name + ", rung " + rung.name + ", has no forward");
    }
    if (!rung.backward) {
      EXPECT_EQ(faw_backward_workspace(name, rung.name, &problem, &bytes), FAW_UNSUPPORTED);
      EXPECT_EQ(faw_error(), chapter.name + ", rung " + rung.name + ", has no backward");
      EXPECT_EQ(
          faw_backward(name, rung.name, &problem, p, p, p, p, static_cast<float*>(p), p, p, p, p, nullptr, 0, nullptr),
          FAW_UNSUPPORTED);
    }
  });
  EXPECT_EQ(faw_backward_workspace("05_online_softmax", nullptr, &problem, &bytes), FAW_UNSUPPORTED);
  EXPECT_STREQ(faw_error(), "05_online_softmax has no backward");
}

TEST_F(Capi, RefusesNullProblemsAndResults) {
  const faw_problem problem = as_c(small_problem());
  size_t bytes = 0;
  EXPECT_EQ(faw_forward_workspace("05_online_softmax", nullptr, nullptr, &bytes), FAW_INVALID);
  EXPECT_STREQ(faw_error(), "problem is NULL");
  EXPECT_EQ(faw_forward_workspace("05_online_softmax", nullptr, &problem, nullptr), FAW_INVALID);
  EXPECT_STREQ(faw_error(), "bytes is NULL");
  EXPECT_EQ(faw_forward_workspace(nullptr, nullptr, &problem, &bytes), FAW_INVALID);
  EXPECT_NE(std::string(faw_error()).find("chapter is NULL: there are 01_naive"), std::string::npos);
  EXPECT_EQ(faw_forward("05_online_softmax", nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, 0,
                        nullptr),
            FAW_INVALID);
}

// A refused launch must be reported once, here: not again by the next one of the caller, who never made it.
TEST_F(Capi, ReportsARefusedLaunchAndLeavesNoErrorBehind) {
  const harness::DeviceBuffer memory(4096);
  Call call(memory.data());
  call.problem.batch = std::numeric_limits<int>::max();  // more thread blocks than a grid can have
  call.problem.seq_q = 1000;
  call.problem.heads = call.problem.kv_heads = 1;
  EXPECT_EQ(call.run(), FAW_CUDA_ERROR);
  EXPECT_NE(std::strlen(faw_error()), 0u);
  EXPECT_EQ(std::string(faw_error()).find('\n'), std::string::npos) << faw_error();
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

TEST(Errors, BelongToTheThread) {
  faw_problem problem = as_c(small_problem());
  size_t bytes = 0;
  problem.batch = -1;
  EXPECT_EQ(faw_forward_workspace("05_online_softmax", nullptr, &problem, &bytes), FAW_INVALID);
  std::thread([] { EXPECT_STREQ(faw_error(), ""); }).join();
  EXPECT_STREQ(faw_error(), "batch is -1: it must be at least 1");
}

TEST_F(Capi, WorksFromSeveralThreadsAtOnce) {
  const Problem p = small_problem();
  const auto inputs = harness::make_inputs(p, harness::InputKind::spread, 7);
  constexpr int n_threads = 4, turns = 3;
  std::vector<std::string> failures(n_threads);
  std::vector<std::vector<uint16_t>> results(n_threads);
  std::vector<std::thread> threads;
  for (int t = 0; t < n_threads; t++)
    threads.emplace_back([&, t] {
      for (int turn = 0; turn < turns; turn++) {
        const DeviceTensors tensors(p, inputs, 0, false);
        faw_problem problem = as_c(p);
        if (forward("05_online_softmax", nullptr, problem, tensors) != FAW_OK) failures[size_t(t)] = faw_error();
        check(cudaDeviceSynchronize());
        results[size_t(t)] = bits(tensors.o);
        problem.batch = -1 - t;  // and each has its own error
        forward("05_online_softmax", nullptr, problem, tensors);
        if (faw_error() != "batch is " + std::to_string(-1 - t) + ": it must be at least 1")
          failures[size_t(t)] = faw_error();
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (int t = 0; t < n_threads; t++) {
    EXPECT_EQ(failures[size_t(t)], "");
    EXPECT_EQ(results[size_t(t)], results[0]);
  }
}

TEST_F(Capi, CanBeCapturedInACudaGraph) {
#ifdef WORKBOOK_SIMT
  GTEST_SKIP() << "needs a GPU: the SIMT engine has no graphs";
#else
  const auto inputs = harness::make_inputs(small_problem(), harness::InputKind::spread, 7);
  for_every_rung([&](const Chapter& chapter, const Rung& rung) {
    if (!rung.forward) return;
    SCOPED_TRACE(chapter.name + "/" + rung.name);
    Problem p = small_problem();
    p.rope = chapter.rope;
    const faw_problem problem = as_c(p);
    const size_t bytes = rung.forward.workspace_bytes(p);
    const DeviceTensors direct(p, inputs, bytes, false), captured(p, inputs, bytes, false);
    ASSERT_EQ(forward(chapter.name.c_str(), rung.name, problem, direct), FAW_OK) << faw_error();
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t executable;
    check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    EXPECT_EQ(forward(chapter.name.c_str(), rung.name, problem, captured, stream), FAW_OK) << faw_error();
    check(cudaStreamEndCapture(stream, &graph));
    check(cudaGraphInstantiate(&executable, graph, 0));
    check(cudaDeviceSynchronize());  // the inputs are there: this stream does not wait for the one that brought them
    for (int replay = 0; replay < 2; replay++) check(cudaGraphLaunch(executable, stream));
    check(cudaDeviceSynchronize());
    EXPECT_EQ(bits(captured.o), bits(direct.o));
    check(cudaGraphExecDestroy(executable));
    check(cudaGraphDestroy(graph));
    check(cudaStreamDestroy(stream));
  });
#endif
}

#ifndef WORKBOOK_SIMT
// Launches on four streams, each with tensors of its own from make(), which are to get the bits that it gets alone.
void expect_the_same_on_several_streams(const std::function<std::unique_ptr<DeviceTensors>()>& make,
                                        const std::function<faw_status(const DeviceTensors&, cudaStream_t)>& run,
                                        std::initializer_list<harness::GuardedBuffer DeviceTensors::*> results) {
  constexpr int n_streams = 4, launches = 13;  // 52 runs that have to be bitwise equal
  const auto alone = make();
  ASSERT_EQ(run(*alone, nullptr), FAW_OK) << faw_error();
  std::vector<std::unique_ptr<DeviceTensors>> tensors;
  for (int i = 0; i < n_streams * launches; i++) tensors.push_back(make());
  std::vector<cudaStream_t> streams(n_streams);
  for (cudaStream_t& stream : streams) check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  check(cudaDeviceSynchronize());  // the inputs are there: these streams do not wait for the one that brought them
  for (int i = 0; i < n_streams * launches; i++)
    EXPECT_EQ(run(*tensors[i], streams[i % n_streams]), FAW_OK) << faw_error();
  check(cudaDeviceSynchronize());
  for (const auto& of_one : tensors)
    for (const auto result : results) ASSERT_EQ(bits((*of_one).*result), bits((*alone).*result));
  for (cudaStream_t stream : streams) check(cudaStreamDestroy(stream));
}
#endif

TEST_F(Capi, RunsOnSeveralStreamsAtOnce) {
#ifdef WORKBOOK_SIMT
  GTEST_SKIP() << "needs a GPU: on the SIMT engine a launch has ended when it returns";
#else
  for (const bool rope : {false, true}) {
    Problem p = chapter_suite::many_tiles().problem;
    p.rope = rope;
    const faw_problem problem = as_c(p);
    const auto inputs = harness::make_inputs(p, harness::InputKind::spread, 7);
    const harness::Reference reference(p, inputs, true);
    for_every_rung([&](const Chapter& chapter, const Rung& rung) {
      if (chapter.rope != rope) return;
      const char* const name = chapter.name.c_str();
      SCOPED_TRACE(chapter.name + "/" + rung.name);
      if (rung.forward)
        expect_the_same_on_several_streams(
            [&] { return std::make_unique<DeviceTensors>(p, inputs, rung.forward.workspace_bytes(p), false); },
            [&](const DeviceTensors& t, cudaStream_t stream) { return forward(name, rung.name, problem, t, stream); },
            {&DeviceTensors::o});
      if (rung.backward && rung.backward.deterministic)
        expect_the_same_on_several_streams(
            [&] {
              auto tensors = std::make_unique<DeviceTensors>(p, inputs, rung.backward.workspace_bytes(p), true);
              harness::upload_forward(*tensors, p, reference);
              return tensors;
            },
            [&](const DeviceTensors& t, cudaStream_t stream) { return backward(name, rung.name, problem, t, stream); },
            {&DeviceTensors::dq, &DeviceTensors::dk, &DeviceTensors::dv});
    });
  }
#endif
}

}  // namespace
