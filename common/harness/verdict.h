// Is the result right? Compares what a kernel left in memory with the fp64 reference.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "attention/chapter.h"
#include "harness/tensors.h"

namespace harness {

// The comparison of one tensor.
struct Comparison {
  std::string tensor;  // "o", "lse", "dq", ...
  double error = 0;    // the largest, absolute; NaN if any element is
  double tolerance = 0;
  std::string first_wrong;  // "o[b=0, h=1, i=7, d=3] is 0.5, expected 0.25"; empty if the error is within the tolerance
  double norm = 0;          // |x - expected| / |expected| of all elements compared, as one vector; not of LSE
  double norm_tolerance = std::numeric_limits<double>::infinity();

  bool passed() const { return error <= tolerance; }  // NaN does not pass
};

struct Verdict {
  std::vector<Comparison> comparisons;
  int rows_checked = 0;  // query rows compared with the reference, over all batches and heads
  int rows = 0;          // that there are
  std::string problem;   // anything else that is wrong: memory overwritten, results that differ from run to run

  bool passed() const;
  const Comparison& worst() const;  // the one with the largest error / tolerance, NaN first
  std::string first_wrong() const;  // of the first comparison that failed, or `problem`; empty if passed

  // Takes in that of one of several sequences: of each tensor the worst comparison is kept.
  void add(const Verdict& one, int sequence);

  // The first tensor whose norm is above its tolerance, in a line; empty if there is none. Which problems are large
  // enough to be judged by that, norms_count() says.
  std::string inaccurate() const;
  const Comparison& least_accurate() const;  // the one with the largest norm / norm_tolerance, NaN first
};

// A norm is an average of roundings. From 2^16 scores on it differs by a few percent between kernels that round alike;
// of fewer it may be anything. And with few keys dP and delta nearly cancel: what fp32 loses there is more than a
// rounding. Beyond 4096 keys two right dQ may lie further apart than that: delta made of the stored O has its rounding,
// delta = rowsum(P dP) has not. ./workbook dev accuracy judges long rows.
bool norms_count(const attention::Problem& problem);

// What a forward leaves to its backward, widened.
struct ForwardResult {
  std::vector<float> o;    // [B, H, Nq, D], or of packed sequences as HostTensors has them
  std::vector<float> lse;  // [B, H, Nq], likewise
};

// The reference for one problem and its inputs. Small problems are compared whole. Of large ones every head gives a
// sample of rows (the first, the last, those around multiples of 64, and random ones), others in each head and as many
// as a few seconds allow, and every other element of the result is only checked to be a finite number.
//
// Gradients are those of a backward that starts from the O and LSE of some forward, whose errors are not its own. With
// them a row of dQ needs one row of P, and a row of dK and dV one column of it, so they can be sampled as well.
//
// An element passes if its error is at most
//
//   2 * error of the baseline + 2 * max |(ref + 0.3 - 0.3) - ref|   (the rule of FlashAttention's own tests),
//
// where the baseline is the same mathematics with every intermediate rounded to the storage type, and the second term,
// evaluated in the storage type, is the rounding of numbers as large as the result. Gradients may take 3 instead of 2.
//
// The largest error hides what is lost everywhere: dS that is made of a P which has been rounded already errs by a
// fifth more, and no element of it is wrong. So the norm of the error is compared too. It may be at most
//
//   1.1 * norm of the baseline's error + 2^-20,
//
// where this baseline rounds only what tensor cores need rounded (P and dS where they are multiplied, and the results;
// S, dP and all sums are fp32), and the second term is what fp32 itself loses. Right kernels on tensor cores reach 0.75
// to 1 of that baseline, 1.05 where RoPE stores dQ and dK twice; with such a dS it is 1.17 to 1.32.
//
// In eight bits all of this is about the inputs that have been rounded so: they are given, and their errors are not the
// kernel's. Both baselines round P to e4m3, and O to the storage type, and nothing else.
//
// Packed sequences are compared one by one.
class Reference {
 public:
  // With backward, the gradients too: from O and LSE as `given`, or else from the reference's own, rounded to what a
  // forward would have stored, for which all rows of them are computed. Given them, it is no reference for forwards.
  Reference(const attention::Problem& problem, const HostTensors& inputs, bool backward, ForwardResult given = {});

  // o [B, H, Nq, D] widened, and lse [B, H, Nq], empty if the rung does not write it.
  Verdict check_forward(const std::vector<float>& o, const std::vector<float>& lse) const;

  // Gradients widened; d_sink [H] if the problem has sinks. Only for references made with backward = true.
  Verdict check_backward(const std::vector<float>& dq, const std::vector<float>& dk, const std::vector<float>& dv,
                         const std::vector<float>& d_sink = {}) const;

  // All of it, for a later process: read() gives back what write() wrote, or throws if that is not what is there.
  void write(std::ostream& to) const;
  static Reference read(std::istream& from, const attention::Problem& problem);

  const std::vector<double>& o() const { return o_.expected; }  // [B, H, rows compared, D]
  const std::vector<double>& lse() const { return lse_; }       // [B, H, rows compared]
  const std::vector<double>& dq() const { return dq_.expected; }
  const std::vector<double>& dk() const { return dk_.expected; }  // [B, Hkv, rows compared, D]
  const std::vector<double>& dv() const { return dv_.expected; }
  const ForwardResult& given() const { return given_; }  // what the backward starts from

 private:
  struct Expected {
    std::vector<std::vector<int>> rows;  // compared, of each head; the same number of them, ascending
    std::vector<double> expected;        // [heads, rows compared, D]
    std::vector<double> baseline;        // likewise
    std::vector<double> tensor_cores;    // likewise; empty as soon as its error's norm is known
    double norm_baseline = 0;            // of that error, relative
  };

  Reference() = default;
  void expect_forward(const HostTensors& inputs, bool whole);
  void expect_gradients(const HostTensors& inputs);
  Comparison compare(const char* tensor, const std::vector<float>& got, const Expected& expected, double factor) const;

  attention::Problem problem_;
  std::vector<Reference> sequences_;  // of a packed problem: then only sinks' gradients are below, and what is given
  ForwardResult given_;
  Expected o_, dq_, dk_, dv_;
  std::vector<double> lse_;           // [B, H, rows compared of o]
  std::vector<double> lse_baseline_;  // likewise
  std::vector<double> d_sink_;        // [H]
  std::vector<double> d_sink_size_;   // [H], of what is added up to it, without signs
};

// Gives a backward the O and LSE that its reference starts from.
void upload_forward(DeviceTensors& device, const attention::Problem& problem, const Reference& reference);

// Runs a forward that writes LSE, for a backward to start from.
ForwardResult forward_result(const attention::Forward& pass, const attention::Problem& problem,
                             const HostTensors& inputs);

// Compares what a pass has left there.
Verdict check_forward(const DeviceTensors& device, const attention::Problem& problem, const Reference& reference,
                      bool writes_lse);
Verdict check_backward(const DeviceTensors& device, const attention::Problem& problem, const Reference& reference);

// Runs one pass of the rung once, on fresh device memory, and compares. `guard` bytes around every tensor must
// survive; 0 puts the tensors themselves at the edge of what may be touched.
Verdict run_forward(const attention::Forward& pass, const attention::Problem& problem, const HostTensors& inputs,
                    const Reference& reference, size_t guard);
Verdict run_backward(const attention::Backward& pass, const attention::Problem& problem, const HostTensors& inputs,
                     const Reference& reference, size_t guard);

}  // namespace harness
