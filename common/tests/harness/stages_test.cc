#include "tests/harness/stages.h"

#include <gtest/gtest.h>

#include "harness/diagnosis.h"

namespace {

using attention::DType;
using attention::Mask;
using attention::Problem;
using harness::HostTensors;
using harness::InputKind;
using stages::Mistake;

Problem problem(Mask mask = Mask::none) { return {1, 2, 1, 40, 70, 64, DType::fp16, mask, 0.125f}; }

std::string forward(Mistake mistake, const Problem& p, InputKind kind = InputKind::growing) {
  const HostTensors inputs = make_inputs(p, kind, 1);
  const harness::DeviceTensors device(p, inputs, 0, false);
  return harness::first_wrong_stage(p, inputs, {},
                                    [&] { stages::forward(mistake).run(p, device.forward_args(), nullptr); });
}

std::string backward(Mistake mistake, const Problem& p) {
  const HostTensors inputs = make_inputs(p, InputKind::spread, 1);
  const harness::Reference reference(p, inputs, true);
  harness::DeviceTensors device(p, inputs, 0, true);
  upload_forward(device, p, reference);
  return harness::first_wrong_stage(p, inputs, reference.given(),
                                    [&] { stages::backward(mistake).run(p, device.backward_args(), nullptr); });
}

testing::AssertionResult begins(const std::string& said, const std::string& start) {
  if (said.starts_with(start)) return testing::AssertionSuccess();
  return testing::AssertionFailure() << said << " does not begin with " << start;
}

TEST(FirstWrongStage, OfARightKernelThereIsNone) {
  for (const Mask mask : {Mask::none, Mask::causal})
    for (const InputKind kind : harness::all_input_kinds) {
      if (kind == InputKind::overflow) continue;  // only in bf16
      EXPECT_EQ(forward(Mistake::none, problem(mask), kind),
                "{\"right\": [\"S\", \"m\", \"P\", \"l\", \"O\", \"correction\"]}");
    }
  for (const Mask mask : {Mask::none, Mask::causal})
    EXPECT_EQ(backward(Mistake::none, problem(mask)), "{\"right\": [\"S\", \"P\", \"dP\", \"dS\"]}");
}

TEST(FirstWrongStage, RowsThatSeeNoKeyAreNotWrong) {
  const Problem p = {1, 1, 1, 70, 20, 64, DType::fp16, Mask::causal, 0.125f};
  EXPECT_FALSE(forward(Mistake::none, p).find("wrong") != std::string::npos);
  EXPECT_FALSE(backward(Mistake::none, p).find("wrong") != std::string::npos);
}

TEST(FirstWrongStage, IsTheFirstThatIsWrongAndNotWhatFollowsFromIt) {
  // Nothing has been summed up before the first tile: its correction can be anything.
  const std::string first_tile = "{\"right\": [\"S\", \"m\", \"P\", \"l\", \"O\"], \"wrong\": ";
  const std::string tiles = "{\"right\": [\"S\", \"m\", \"P\", \"l\", \"O\", \"correction\"], \"wrong\": ";
  EXPECT_TRUE(
      begins(forward(Mistake::short_s, problem()),
             "{\"right\": [], \"wrong\": {\"name\": \"S\", \"how\": \"differs\", \"b\": 0, \"h\": 0, \"row\": 0, "
             "\"column\": 0, "));
  EXPECT_TRUE(begins(forward(Mistake::unmasked, problem(Mask::causal)),
                     first_tile + "{\"name\": \"P\", \"how\": \"hidden\", \"b\": 0, \"h\": 0, \"row\": 0, \"column\": "
                                  "31, \"keys\": [16, 31], "));
  EXPECT_TRUE(begins(
      forward(Mistake::stale_m, problem()),
      first_tile + "{\"name\": \"m\", \"how\": \"differs\", \"b\": 0, \"h\": 0, \"row\": 0, \"keys\": [16, 31], "));
  EXPECT_TRUE(begins(forward(Mistake::lane_m, problem()),
                     "{\"right\": [\"S\"], \"wrong\": {\"name\": \"m\", \"how\": \"differs\", \"b\": 0, \"h\": 0, "
                     "\"row\": 0, "));
  EXPECT_TRUE(begins(forward(Mistake::late, problem()),
                     first_tile + "{\"name\": \"correction\", \"how\": \"differs\", \"b\": 0, \"h\": 0, \"row\": 0, "
                                  "\"keys\": [16, 31], \"got\": 1, \"want\": 0."));
  EXPECT_TRUE(begins(forward(Mistake::inverse, problem()),
                     "{\"right\": [\"S\", \"m\"], \"wrong\": {\"name\": \"correction\", \"how\": \"grows\", "));
  EXPECT_TRUE(begins(forward(Mistake::p_in_base_2, problem()),
                     "{\"right\": [\"S\", \"m\"], \"wrong\": {\"name\": \"P\", \"how\": \"differs\", "));
  EXPECT_TRUE(begins(forward(Mistake::uncorrected_l, problem()), tiles + "{\"name\": \"l\", \"how\": \"differs\", "));
  EXPECT_TRUE(begins(forward(Mistake::uncorrected_o, problem()), tiles + "{\"name\": \"O\", \"how\": \"differs\", "));
  EXPECT_TRUE(
      begins(forward(Mistake::last_tile_left, problem()),
             tiles + "{\"name\": \"S\", \"how\": \"missing\", \"b\": 0, \"h\": 0, \"row\": 0, \"column\": 64, "));
  EXPECT_TRUE(begins(forward(Mistake::rows_twice, problem()),
                     tiles + "{\"name\": \"S\", \"how\": \"again\", \"b\": 0, \"h\": 0, \"row\": 0, \"column\": 0, "));
  EXPECT_EQ(forward(Mistake::halved_result, problem()),
            "{\"right\": [\"S\", \"m\", \"P\", \"l\", \"O\", \"correction\"]}");
}

TEST(FirstWrongStage, OfABackward) {
  EXPECT_TRUE(begins(backward(Mistake::p_without_lse, problem()),
                     "{\"right\": [\"S\"], \"wrong\": {\"name\": \"P\", \"how\": \"differs\", "));
  EXPECT_TRUE(begins(backward(Mistake::short_dp, problem()),
                     "{\"right\": [\"S\", \"P\"], \"wrong\": {\"name\": \"dP\", \"how\": \"differs\", "));
  EXPECT_TRUE(begins(backward(Mistake::ds_without_d, problem(Mask::causal)),
                     "{\"right\": [\"S\", \"P\", \"dP\"], \"wrong\": {\"name\": \"delta\", \"how\": \"implied\", "
                     "\"b\": 0, \"h\": 0, \"row\": 0, \"got\": "));
  EXPECT_TRUE(begins(backward(Mistake::doubled_ds, problem()),
                     "{\"right\": [\"S\", \"P\", \"dP\"], \"wrong\": {\"name\": \"dS\", \"how\": \"differs\", "));
  EXPECT_EQ(backward(Mistake::doubled_gradient, problem()), "{\"right\": [\"S\", \"P\", \"dP\", \"dS\"]}");
}

TEST(FirstWrongStage, SaysWhoShowedItAndWhere) {
  const std::string said = forward(Mistake::short_s, problem());
  EXPECT_NE(said.find("\"block\": \"(0, 0, 0)\", \"thread\": \"(0, 0, 0)\", \"line\": \"harness/stages.cu:"),
            std::string::npos)
      << said;
}

TEST(FirstWrongStage, OfALargeProblemNothingIsSaid) {
  EXPECT_EQ(forward(Mistake::short_s, {1, 1, 1, 1024, 1024, 8, DType::fp16, Mask::none, 0.125f}), "");
}

}  // namespace
