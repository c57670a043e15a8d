// Where does a kernel go wrong first? A wrong O says little about a kernel of five steps. But kernels show the numbers
// in between (device/watch.h), and the reference has them too: they are compared in the order in which a thread block
// makes them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "attention/problem.h"
#include "device/trace.h"
#include "harness/tensors.h"
#include "harness/verdict.h"

namespace harness {

// Runs `work`, a pass whose kernels are traced, and returns what is wrong first as a JSON object:
//
//   {"right": ["S", "m"], "wrong": {"name": "P", "how": "differs", "b": 0, "h": 1, "row": 3, "column": 5, "got": 0.3,
//    "want": 2.1, "keys": [0, 63], "kernel": "tiling::scores<__half>", "block": "(1, 0, 0)", "thread": "(3, 0, 0)",
//    "line": "03_tiling/1_tiles.cu:107"}}
//
// `right` is what had been shown before, and compared, and was right; without `wrong`, all that was shown was. `how` is
// "differs"; "hidden" of a P that is not 0 although its row does not see the key; "grows" of a correction above 1;
// "implied" of a delta that is not shown, and with which dS must have been made; or "missing" of an S that no thread
// block has made, and "again" of one that is made for a second time, where nothing else is wrong. "column" is there
// where a row has more than one such number, "keys" where a thread block makes a row tile by tile: those of the tile.
//
// A kernel may choose what P, l and O are relative to: to the running maximum, to an older one, or to the sum of its
// row. So only what must be so is compared: P with exp(S - m), and l and O with the sums of such P over the keys that
// the block has seen. Only an m that is not in base 2 must be the maximum of these keys, in all threads that show it;
// then a correction must be what it has risen by.
//
// `given` is what a backward starts from; of a forward it is empty. "" unless can_trace(), or if the problem is too
// large for that: above 2^18 scores.
std::string first_wrong_stage(const attention::Problem& problem, const HostTensors& inputs, const ForwardResult& given,
                              const std::function<void()>& work);

}  // namespace harness
