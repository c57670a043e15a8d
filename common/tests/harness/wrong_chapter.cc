// A chapter with wrong rungs, to see what the program around a chapter makes of it.
#include "tests/mutants/mutants.h"

using mutants::BackwardMutation;
using mutants::Mutation;

// The same for smaller head dims alone.
attention::Forward narrow(attention::Forward forward) {
  forward.unsupported = [](const attention::Problem& problem) {
    return attention::head_dim_unsupported(problem, 8, 64);
  };
  return forward;
}

int lowest_capability() { return 80; }

const attention::Chapter& the_chapter() {
  static const attention::Chapter chapter = {
      .name = "wrong_chapter",
      .idea = "Some rungs are right",
      .rungs = {{"right", "a forward and a backward", mutants::forward(Mutation::none),
                 mutants::backward(BackwardMutation::none)},
                {"wrong", "both are wrong", mutants::forward(Mutation::mask_off_by_one),
                 mutants::backward(BackwardMutation::unscaled_dk)},
                {"rounded",
                 "no element is wrong, and all have lost bits",
                 {},
                 mutants::backward(BackwardMutation::rounded_p_in_ds)},
                {"overflow", "writes where it must not", narrow(mutants::forward(Mutation::writes_past_end)), {}}}};
  return chapter;
}
