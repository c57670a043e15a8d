// Kernels that show every number they make, and make one of them wrong.
#pragma once

#include "attention/chapter.h"

namespace stages {

// Of the forward, in the order in which it makes them, and of the backward.
enum class Mistake {
  none,
  short_s,           // the last element of the head dim does not count
  unmasked,          // a hidden key has a weight
  stale_m,           // m stays that of the first tile
  lane_m,            // two threads show m; the first of them has that of the tile before
  inverse,           // the correction is upside down
  late,              // the correction is made when m is the new maximum already, and is 1
  p_in_base_2,       // 2^x instead of exp(x)
  uncorrected_l,     // l is not corrected
  uncorrected_o,     // O is not
  last_tile_left,    // the last tile is left out
  rows_twice,        // two thread blocks make the same rows
  halved_result,     // all that is shown is right
  p_without_lse,     // P is exp(S)
  short_dp,          // the last element of the head dim does not count
  ds_without_d,      // dS is P dP
  doubled_ds,        // dS is twice what it should be
  doubled_gradient,  // all that is shown is right
};

attention::Forward forward(Mistake mistake);
attention::Backward backward(Mistake mistake);

}  // namespace stages
