// What several ranks make of a problem, against the fp64 reference on the whole sequence, and twice the same bits.
// Every rank runs every test; rank 0 has all results, and judges.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

#include "harness/timing.h"
#include "parallel/session.h"

namespace causal_earlystop {
extern const attention::Rung balanced;
extern const attention::Backward ordered_backward;
}  // namespace causal_earlystop

namespace split_kv::parallel {
namespace {

using attention::DType;
using attention::Mask;
using attention::Problem;
using harness::InputKind;

World* world;
Transport* transport;

struct Case {
  const char* name;
  int batch, heads, kv_heads, seq_q, seq_k, head_dim;
  DType dtype = DType::fp16;
  Mask mask = Mask::causal;
  InputKind inputs = InputKind::spread;
  Order order = Order::balanced;
};

const Case cases[] = {
    {"uneven", 1, 2, 1, 259, 259, 64, DType::fp16, Mask::causal, InputKind::growing},
    {"more_keys", 1, 4, 2, 70, 200, 64, DType::bf16, Mask::causal, InputKind::spread},
    {"more_queries", 2, 2, 2, 150, 60, 64, DType::fp16, Mask::causal, InputKind::loud},
    {"no_mask", 2, 2, 1, 65, 127, 128, DType::bf16, Mask::none, InputKind::growing},
    {"a_row_each", 2, 2, 2, 0, 0, 64},  // as many rows as ranks, and messages of a few bytes
    {"in_order", 1, 1, 1, 130, 140, 128, DType::fp16, Mask::causal, InputKind::sink, Order::in_order},
    {"head_dim_72", 1, 2, 1, 70, 90, 72, DType::bf16, Mask::causal, InputKind::growing},
    {"head_dim_136", 1, 1, 1, 40, 50, 136, DType::fp16, Mask::none, InputKind::spread},
};

class Ranks : public testing::TestWithParam<Case> {
 protected:
  // Heads that every number of ranks divides, where heads are dealt.
  Setting setting(bool by_heads) const {
    const Case& c = GetParam();
    Problem p;
    p.batch = c.batch;
    p.heads = c.heads * (by_heads ? world->ranks() : 1);
    p.kv_heads = c.kv_heads * (by_heads ? world->ranks() : 1);
    p.seq_q = c.seq_q ? c.seq_q : world->ranks();
    p.seq_k = c.seq_k ? c.seq_k : world->ranks();
    p.head_dim = c.head_dim;
    p.dtype = c.dtype;
    p.mask = c.mask;
    p.scale = attention::default_scale(p.head_dim);
    return {p,
            shards_of(p, world->ranks(), c.order),
            c.order,
            world->rank(),
            causal_earlystop::balanced.forward,
            causal_earlystop::ordered_backward};
  }

  void check(const StrategyName& named, const Setting& s) const {
    const harness::HostTensors inputs = harness::make_inputs(s.whole, GetParam().inputs, 1);
    const std::unique_ptr<Strategy> strategy = named.make(s, *transport, true);
    const Gathered made = solve(s, *strategy, *world, *transport, inputs, true);
    for (const harness::Verdict& verdict : judge(s, made, inputs, true))
      EXPECT_TRUE(verdict.passed()) << verdict.first_wrong();
    EXPECT_TRUE(made == solve(s, *strategy, *world, *transport, inputs, true)) << "a second run gave other bits";
  }
};

class Ring : public Ranks {};
TEST_P(Ring, ring) { check(strategies[0], setting(false)); }

class AllToAll : public Ranks {};
TEST_P(AllToAll, all_to_all) { check(strategies[1], setting(true)); }

const auto name_of = [](const auto& info) { return std::string(info.param.name); };
INSTANTIATE_TEST_SUITE_P(, Ring, testing::ValuesIn(cases), name_of);
INSTANTIATE_TEST_SUITE_P(, AllToAll, testing::ValuesIn(cases + 1, cases + 5), name_of);

int main(int argc, char** argv) {
  testing::GTEST_FLAG(catch_exceptions) = false;  // a rank that cannot go on must not go on with the next test
  testing::InitGoogleTest(&argc, argv);
  const std::unique_ptr<World> joined = World::join(std::chrono::seconds(30));
  world = joined.get();
  try {
    const Carrier carrier = usual_transport(*world, std::chrono::seconds(30));
    transport = carrier.transport.get();
    auto& listeners = testing::UnitTest::GetInstance()->listeners();
    if (world->rank() != 0) delete listeners.Release(listeners.default_result_printer());
    const int status = RUN_ALL_TESTS();
    return int(world->largest(status));
  } catch (const harness::NoDevice&) {
    const char* const required = std::getenv("REQUIRE_GPU");
    std::puts("NOT RUN: needs a GPU");
    return required && *required == '1';
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rank %d: %s\n", world->rank(), error.what());
    world->abort(1);
    return 1;
  }
}

}  // namespace
}  // namespace split_kv::parallel

int main(int argc, char** argv) { return split_kv::parallel::main(argc, argv); }
