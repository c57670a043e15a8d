// The program around a chapter: reads the flags, checks the chapter against the reference, and hands over to Google
// Benchmark. It never reports a time for a result it has not checked.
//
// Exit status: 0 if everything asked for was right, 1 if a result is wrong or a launch failed, 2 if the question is
// (a flag, a size, something the chapter does not support).
#include <benchmark/benchmark.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <iomanip>
#include <iostream>
#include <limits>
#include <memory>
#include <new>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <tuple>

#include "attention/block_mask.h"
#include "attention/chapter.h"
#include "device/limits.h"
#include "device/trace.h"
#include "harness/diagnosis.h"
#include "harness/kernel_process.h"
#include "harness/tensors.h"
#include "harness/timing.h"
#include "harness/verdict.h"

// Generated for each chapter: common/cmake/the_chapter.cc.in.
const attention::Chapter& the_chapter();
int lowest_capability();

namespace harness {
namespace {

using attention::Problem;
using attention::Rung;

// Ends the program with exit status 2 and one line.
struct Refusal : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Options {
  Problem problem;
  std::vector<bool> directions;    // that are asked for: is it the backward?
  bool backward = false;           // the one of them that is being answered,
  std::vector<const Rung*> rungs;  // and its rungs
  int padded_from = 0;             // columns of Q, K, V and dO that are not zeros; 0: all
  uint64_t seed = 1;
  bool check_only = false;
  bool describe = false;
  bool trace = false;
  bool walk = false;
  bool diagnose = false;
  InputKind inputs = InputKind::spread;
  std::string rung;                                    // the only one that is asked for, empty: all
  bool repetitions_given = false, time_given = false;  // by flags of Google Benchmark
  std::string help;                                    // the text, if --help asked for it
};

void require_rung(const std::string& name) {
  if (const Rung* example = the_chapter().example; example && name == example->name) return;
  std::string names;
  for (const Rung& rung : the_chapter().rungs) {
    if (name == rung.name) return;
    names += (names.empty() ? "" : ", ") + std::string(rung.name);
  }
  throw Refusal("rung is " + name + ": there are " + names);
}

bool has(const Rung& rung, bool backward) { return backward ? bool(rung.backward) : bool(rung.forward); }

// The rungs that are asked for: one, or all that have this direction. Empty if there are none.
std::vector<const Rung*> rungs_with(bool backward, const std::string& name) {
  std::vector<const Rung*> found;
  for (const Rung& rung : the_chapter().rungs)
    if (has(rung, backward) && (name.empty() || name == rung.name)) found.push_back(&rung);
  if (const Rung* example = the_chapter().example; example && name == example->name && has(*example, backward))
    found.push_back(example);
  return found;
}

// Their names.
std::string input_kinds() {
  std::string names;
  for (const InputKind kind : all_input_kinds) names += (names.empty() ? "" : ", ") + std::string(name(kind));
  return names;
}

// The same question about one direction. Where no rung is named, those that lack an extra of the problem are left out.
Options about(bool backward, Options options) {
  options.backward = backward;
  options.rungs = rungs_with(backward, options.rung);
  const auto lacks_extra = [&](const Rung* rung) {
    const unsigned taken = backward ? rung->backward.takes : rung->forward.takes;
    return !extras_unsupported(options.problem, taken).empty();
  };
  if (options.rung.empty() && !std::all_of(options.rungs.begin(), options.rungs.end(), lacks_extra))
    std::erase_if(options.rungs, lacks_extra);
  return options;
}

// Throws CLI::ParseError.
Options parse(int argc, char** argv) {
  Options options;
  Problem& p = options.problem = attention::default_problem();
  std::string dtype = "fp16", direction, device, inputs = name(InputKind::spread);
  bool causal = p.mask == attention::Mask::causal;
  int64_t seed = 1;
  float scale = 0;

  CLI::App app(the_chapter().name + ": " + the_chapter().idea +
               "\nChecks the result against the fp64 reference, then times it. Every --benchmark_... flag of Google "
               "Benchmark works too.");
  app.add_option("--batch", p.batch, "batch size")->capture_default_str();
  app.add_option("--heads", p.heads, "query heads")->capture_default_str();
  CLI::Option* kv_heads =
      app.add_option("--kv-heads", p.kv_heads, "key and value heads; as many as query heads unless given");
  app.add_option("--seq-q", p.seq_q, "number of queries")->capture_default_str();
  CLI::Option* seq_k = app.add_option("--seq-k", p.seq_k, "number of keys; as many as queries unless given");
  app.add_option("--head-dim", p.head_dim, "head dimension")->capture_default_str();
  CLI::Option* padded_from = app.add_option("--padded-from", options.padded_from,
                                            "a head dimension that zeros make up to --head-dim; the scale is its own");
  app.add_option("--dtype", dtype, "storage type: fp16 or bf16")->capture_default_str();
  app.add_flag("--causal,!--no-causal", causal, "query i sees keys j <= i + seq_k - seq_q (the default), or all");
  app.add_option("--rung", options.rung, "one rung of the chapter; all of them unless given");
  app.add_option(
      "--direction", direction,
      "forward or backward; unless given, what there is: with --check or --diagnose both, else the forward first");
  app.add_option("--seed", seed, "of the random inputs")->capture_default_str();
  app.add_option("--device", device, "on the SIMT engine: with the limits of this GPU (" + known_gpus() + ")");
  app.add_flag("--check", options.check_only, "check only, do not time");
  app.add_flag("--trace", options.trace, "count what the kernels do with memory, print it as JSON, do not time");
  app.add_flag("--walk", options.walk,
               "record what every thread block does, step by step, print it as JSON, do not time");
  app.add_flag("--diagnose", options.diagnose,
               "compare the numbers that the kernels show, and print what is wrong first as JSON, do not time");
  app.add_option("--inputs", inputs, "what the random inputs are like: " + input_kinds())->capture_default_str();
  app.add_option("--scale", scale, "of the scores; 1/sqrt(D) unless given");
  std::vector<int> window = {-1, -1};
  app.add_option("--window", window, "keys before and after the query's own that it sees, as 1024,0; -1 is all")
      ->delimiter(',')
      ->expected(2);
  app.add_option("--softcap", p.softcap, "scores become softcap * tanh(score / softcap); 0 is none");
  app.add_flag("--alibi", p.alibi, "a slope for every head takes from each score what lies between key and query");
  app.add_flag("--sink", p.sink, "a number for every head is one more term of each row's sum");
  app.add_option("--head-dim-v", p.head_dim_v, "head dimension of V, which O has too; as of Q and K unless given");
  app.add_flag("--views", p.views, "tensors lie as [B, N, H, D], with gaps");
  app.add_flag("--packed", p.packed,
               "sequences of unequal length, one behind the other: --batch of them, up to --seq-q and --seq-k long");
  std::string blocks = "none";
  app.add_option("--block-mask", blocks, "a block mask: documents, prefix, dilated or scattered");
  app.add_flag("--describe", options.describe, "print what the chapter has, as JSON, and stop");
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    options.help = app.help();
    return options;
  }

  p.window_left = window[0], p.window_right = window[1];
  if (!*kv_heads) p.kv_heads = p.heads;
  if (!*seq_k) p.seq_k = p.seq_q;
  p.total_q = p.total_k = 1;  // until it is known that there are sequences
  if (dtype != "fp16" && dtype != "bf16") throw Refusal("dtype is " + dtype + ": supported are fp16 and bf16");
  const auto* const kind = std::find_if(std::begin(all_input_kinds), std::end(all_input_kinds),
                                        [&](InputKind each) { return inputs == name(each); });
  if (kind == std::end(all_input_kinds)) throw Refusal("inputs is " + inputs + ": there are " + input_kinds());
  options.inputs = *kind;
  if (!std::isfinite(scale)) throw Refusal("scale is " + std::to_string(scale) + ": it must be a number");
  if (!direction.empty() && direction != "forward" && direction != "backward")
    throw Refusal("direction is " + direction + ": it must be forward or backward");
  if (!device.empty() && !is_known_gpu(device)) throw Refusal("device is " + device + ": known are " + known_gpus());
  if (!device.empty() && on_gpu)
    throw Refusal("device is " + device + ": the SIMT engine takes such limits, and this program runs on a GPU");
  if (!device.empty()) take_limits_of(device);
  if (seed < 0) throw Refusal("seed is " + std::to_string(seed) + ": it must not be negative");
  if (seed == std::numeric_limits<int64_t>::max())  // which older CLI11s make of all that is larger
    throw Refusal("seed is " + std::to_string(seed) + " or more: it must be less");
  options.seed = uint64_t(seed);
  p.dtype = dtype == "fp16" ? attention::DType::fp16 : attention::DType::bf16;
  p.mask = causal ? attention::Mask::causal : attention::Mask::none;
  using attention::BlockPattern;
  for (const BlockPattern each :
       {BlockPattern::documents, BlockPattern::prefix, BlockPattern::dilated, BlockPattern::scattered})
    if (blocks == name(each)) p.blocks = each;
  if (blocks != name(p.blocks))
    throw Refusal("block-mask is " + blocks + ": there are documents, prefix, dilated and scattered");
  if (const std::string wrong = attention::invalid(p); !wrong.empty()) throw Refusal(wrong);
  if (*padded_from && (options.padded_from < 1 || options.padded_from > p.head_dim))
    throw Refusal("padded-from is " + std::to_string(options.padded_from) + ": it must lie between 1 and head-dim, " +
                  std::to_string(p.head_dim));
  p.scale = scale != 0 ? scale : attention::default_scale(*padded_from ? options.padded_from : p.head_dim);
  p.rope = the_chapter().rope;
  p.eight_bits = the_chapter().rungs.back().forward.eight_bits;

  if (!options.rung.empty()) require_rung(options.rung);
  for (const bool backward : {false, true}) {
    const bool asked_for = direction.empty() || (direction == "backward") == backward;
    if (asked_for && !rungs_with(backward, options.rung).empty()) options.directions.push_back(backward);
  }
  if (options.directions.empty())
    throw Refusal(options.rung.empty() ? "direction is " + direction + ": " + the_chapter().name + " has none"
                                       : "rung " + options.rung + " has no " + direction);
  if (!options.check_only && !options.diagnose) options.directions.resize(1);
  const Rung* const example = the_chapter().example;
  if (example && options.rung == example->name && !options.check_only && !options.trace && !options.walk &&
      !options.diagnose)
    throw Refusal("rung " + options.rung +
                  " is an example, too small to time: --check, --diagnose, --trace and --walk know it");
  return options;
}

// {"name": .., "idea": .., "problem": .., "flops": {"forward": .., "backward": ..},
//  "rungs": [{"name": .., "idea": .., "forward": true, "backward": false}], "example": ..}, the problem as the flags
// make it, and the example's name if there is one.
void describe(std::ostream& out, const Problem& problem) {
  const auto& chapter = the_chapter();
  out << std::boolalpha << "{\"name\": " << std::quoted(chapter.name) << ", \"idea\": " << std::quoted(chapter.idea)
      << ", \"problem\": " << std::quoted(label(problem)) << std::fixed << std::setprecision(0)
      << ", \"flops\": {\"forward\": " << flops_of_all(problem, false)
      << ", \"backward\": " << flops_of_all(problem, true) << "}, \"rungs\": [";
  for (size_t i = 0; i < chapter.rungs.size(); i++) {
    const Rung& rung = chapter.rungs[i];
    out << (i ? ", " : "") << "{\"name\": " << std::quoted(rung.name) << ", \"idea\": " << std::quoted(rung.idea)
        << ", \"forward\": " << bool(rung.forward) << ", \"backward\": " << bool(rung.backward) << "}";
  }
  out << "]";
  if (chapter.example) out << ", \"example\": " << std::quoted(chapter.example->name);
  out << "}\n";
}

// With what the host finds by going through all packed sequences, or all pairs of a block mask.
Problem counted(const Problem& p) {
  if (p.packed) return packed(p);
  return p.blocks == attention::BlockPattern::none ? p : with_blocks(p, p.blocks);
}

// By the rung, or by the forward that a backward starts from.
std::string unsupported(const Rung& rung, const Options& options) {
  if (!options.backward) return attention::unsupported(rung.forward, options.problem);
  const std::string why = attention::unsupported(rung.backward, options.problem);
  const Rung* const start = the_chapter().starts_from;
  return why.empty() && start ? attention::unsupported(start->forward, options.problem) : why;
}

size_t workspace_bytes(const Rung& rung, const Options& options) {
  return options.backward ? rung.backward.workspace_bytes(options.problem)
                          : rung.forward.workspace_bytes(options.problem);
}

size_t peak_bytes(const Rung& rung, const Options& options) {
  return device_bytes(options.problem, workspace_bytes(rung, options), options.backward);
}

// Sets of tensors to rotate through, so that no launch reads what the one before it left in the L2 cache. Tensors that
// do not fit there evict themselves.
int rotating_sets(const Rung& rung, const Options& options, const Device& device) {
  return peak_bytes(rung, options) <= device.l2_bytes ? 2 : 1;
}

std::string gigabytes(double bytes) {
  std::ostringstream text;
  text << std::setprecision(3) << bytes * 1e-9 << " GB";
  return text.str();
}

std::string decimal(int capability) { return std::to_string(capability / 10) + "." + std::to_string(capability % 10); }

// Before anything is allocated or launched.
void require_support(const Options& options, const Device& device) {
  const Problem& p = options.problem;
  if (const int lowest = lowest_capability(); compute_capability() < lowest)
    throw Refusal("compute capability is " + decimal(compute_capability()) + ": supported are " + decimal(lowest) +
                  " and later, which have the instructions that the chapter's kernels are made of");
  const std::vector<const Rung*> all = rungs_with(options.backward, "");
  const auto takes_it = [&](const Rung* rung) { return unsupported(*rung, options).empty(); };
  for (const Rung* rung : options.rungs)
    if (const std::string why = unsupported(*rung, options); !why.empty()) {
      const auto other = std::find_if(all.rbegin(), all.rend(), takes_it);
      if (other == all.rend()) throw Refusal(unsupported(*options.rungs.back(), options));
      throw Refusal("rung " + std::string(rung->name) + ": " + why + "; --direction=" +
                    (options.backward ? "backward" : "forward") + " --rung=" + (*other)->name + " takes it");
    }
  const auto require = [&](const Rung& rung, double needed) {
    if (needed > double(device.free_bytes))
      throw Refusal(std::string("rung ") + rung.name + " needs " + gigabytes(needed) +
                    " of device memory for this size: " + gigabytes(double(device.free_bytes)) + " are free");
  };
  for (const Rung* rung : options.rungs) {
    // First Q, K, V and O alone, in floating point: of absurd sizes size_t would hold some low bits only.
    require(*rung, 4.0 * p.batch * p.head_dim * (double(p.heads) * p.seq_q + double(p.kv_heads) * p.seq_k));
    const size_t sets = options.check_only ? 1 : size_t(rotating_sets(*rung, options, device));
    require(*rung, double(sets * peak_bytes(*rung, options) + (device.is_gpu ? 2 * device.l2_bytes : 0)));
  }
}

void run(const Rung& rung, const Options& options, const DeviceTensors& tensors) {
  if (options.backward)
    in_kernel_process(rung.backward).run(options.problem, tensors.backward_args(), nullptr);
  else
    in_kernel_process(rung.forward).run(options.problem, tensors.forward_args(), nullptr);
}

void print_verdict(std::ostream& out, const std::string& pass, const Verdict& verdict, bool norms_judged = false) {
  const Comparison& worst = verdict.worst();
  out << the_chapter().name << "/" << pass << ": " << (verdict.passed() ? "PASS" : "FAIL") << "  " << worst.tensor
      << " error " << std::setprecision(3) << worst.error << ", tolerance " << worst.tolerance << ", "
      << verdict.rows_checked << " of " << verdict.rows << " rows compared";
  if (norms_judged) {
    const Comparison& norm = verdict.least_accurate();
    out << ", norm of the error of " << norm.tensor << " " << norm.norm << ", tolerance " << norm.norm_tolerance;
  }
  if (!verdict.passed()) out << "; first wrong: " << verdict.first_wrong();
  out << std::endl;
}

// The reference for what is asked for. A backward starts from what the chapter's forward made, which is checked first;
// nothing, if that is wrong.
std::optional<Reference> make_reference(const Options& options, const HostTensors& inputs) {
  const Rung* const start = the_chapter().starts_from;
  if (!options.backward || !start) return Reference(options.problem, inputs, options.backward);
  ForwardResult given = forward_result(start->forward, options.problem, inputs);
  const Verdict verdict = Reference(options.problem, inputs, false).check_forward(given.o, given.lse);
  if (!verdict.passed()) {
    print_verdict(options.check_only ? std::cout : std::cerr, std::string("forward ") + start->name, verdict);
    return {};
  }
  return Reference(options.problem, inputs, true, std::move(given));
}

// Of a rung's JSON, behind its name: nothing if the rung is right.
std::string wrong_in_json(const Verdict& verdict) {
  std::ostringstream text;
  if (!verdict.passed()) text << ", \"wrong\": " << std::quoted(verdict.first_wrong());
  return text.str();
}

// The options have the problem as the chapter's last rung rounds it; others may round it otherwise.
Problem problem_of(const Rung& rung, const Options& options) {
  Problem p = options.problem;
  if (!options.backward) p.eight_bits = rung.forward.eight_bits;
  return p;
}

// Then they have a reference of their own.
const Reference& reference_of(const Rung& rung, const Options& options, const HostTensors& inputs,
                              const Reference& of_last, std::optional<Reference>& own) {
  const Problem p = problem_of(rung, options);
  if (p.eight_bits == options.problem.eight_bits) return of_last;
  return own.emplace(p, inputs, false);
}

// What the tensors that a rung has just written are worth.
Verdict verdict_of(const Rung& rung, const Options& options, const HostTensors& inputs, const Reference& of_last,
                   const DeviceTensors& tensors) {
  std::optional<Reference> own;
  const Reference& reference = reference_of(rung, options, inputs, of_last, own);
  Verdict verdict = options.backward ? check_backward(tensors, options.problem, reference)
                                     : check_forward(tensors, options.problem, reference, rung.forward.writes_lse);
  const bool norms = norms_count(options.problem);
  if (verdict.passed() && norms) verdict.problem = verdict.inaccurate();
  print_verdict(std::cerr, rung.name, verdict, norms);
  return verdict;
}

// {"chapter": .., "problem": .., "direction": .., "flops": .., "rungs": [{"rung": .., "launches": [..]}]}, the launches
// as simt/trace/counts.h has them. One launch of each, on the inputs of a check. A rung that was wrong has "wrong",
// too. Are all of them right?
bool print_trace(std::ostream& out, const Options& options, const HostTensors& inputs, const Reference& reference) {
  bool passed = true;
  out << "{\"chapter\": " << std::quoted(the_chapter().name) << ", \"problem\": " << std::quoted(label(options.problem))
      << ", \"direction\": \"" << (options.backward ? "backward" : "forward") << "\", \"flops\": " << std::fixed
      << std::setprecision(0) << flops_of_all(options.problem, options.backward) << ", \"rungs\": [";
  for (size_t i = 0; i < options.rungs.size(); i++) {
    const Rung& rung = *options.rungs[i];
    DeviceTensors tensors(options.problem, inputs, workspace_bytes(rung, options), options.backward);
    if (options.backward) upload_forward(tensors, options.problem, reference);
    const std::string launches = traced([&] { run(rung, options, tensors); });
    const Verdict verdict = verdict_of(rung, options, inputs, reference, tensors);
    passed = passed && verdict.passed();
    out << (i > 0 ? "," : "") << "\n{\"rung\": " << std::quoted(rung.name) << wrong_in_json(verdict)
        << ", \"launches\":\n"
        << launches << "}";
  }
  out << "]}\n";
  return passed;
}

// What a walk tells apart, under the names of the problem. A row of a matrix is one of [.., D]; of the workspace, whose
// layout only the kernels know, 128 bytes.
std::vector<NamedRows> named_rows(const Problem& p, const DeviceTensors& tensors) {
  const size_t q_rows = p.lse_size(), k_rows = p.kv_size() / p.head_dim;
  const size_t row = size_t(p.head_dim) * 2, v_row = size_t(p.v_dim()) * 2;
  std::vector<NamedRows> named = {{"Q", tensors.q.data(), q_rows, row},
                                  {"K", tensors.k.data(), k_rows, row},
                                  {"V", tensors.v.data(), k_rows, v_row},
                                  {"O", tensors.o.data(), q_rows, v_row},
                                  {"LSE", tensors.lse.data(), q_rows, sizeof(float)}};
  const auto add = [&](const char* name, const GuardedBuffer& buffer, size_t row_bytes) {
    if (buffer.bytes() > 0)
      named.push_back({name, buffer.data(), (buffer.bytes() + row_bytes - 1) / row_bytes, row_bytes});
  };
  add("dO", tensors.d_o, v_row);
  add("dQ", tensors.dq, row);
  add("dK", tensors.dk, row);
  add("dV", tensors.dv, v_row);
  add("cos", tensors.rope_cos, row);
  add("sin", tensors.rope_sin, row);
  add("workspace", tensors.workspace, 128);
  return named;
}

// JSON has no infinities: a row that sees no key has "-inf".
template <class T>
void print_numbers(std::ostream& out, const std::vector<T>& numbers) {
  out << std::defaultfloat << std::setprecision(5) << "[";
  for (size_t i = 0; i < numbers.size(); i++) {
    out << (i ? "," : "");
    if (std::isfinite(numbers[i]))
      out << numbers[i];
    else
      out << (std::isnan(numbers[i]) ? "\"nan\"" : numbers[i] > 0 ? "\"inf\"" : "\"-inf\"");
  }
  out << "]";
}

// What a rung has made, and beside it what the reference makes, if it makes every row.
void print_results(std::ostream& out, const Rung& rung, const Options& options, const DeviceTensors& tensors,
                   const Reference& reference) {
  const Problem& p = options.problem;
  const auto widened = [&](const GuardedBuffer& buffer) {
    std::vector<uint16_t> stored(buffer.bytes() / sizeof(uint16_t));
    buffer.download(stored.data());
    return from_storage(stored, p.dtype);
  };
  struct Result {
    const char* name;
    std::vector<float> made;
    const std::vector<double>& expected;
  };
  std::vector<Result> results;
  if (options.backward) {
    results.push_back({"dQ", widened(tensors.dq), reference.dq()});
    results.push_back({"dK", widened(tensors.dk), reference.dk()});
    results.push_back({"dV", widened(tensors.dv), reference.dv()});
  } else {
    results.push_back({"O", widened(tensors.o), reference.o()});
    std::vector<float> lse(rung.forward.writes_lse ? p.lse_size() : 0);
    if (!lse.empty()) tensors.lse.download(lse.data());
    results.push_back({"LSE", lse, reference.lse()});
  }
  out << ",\n\"results\": {";
  const char* comma = "";
  for (const auto& [name, made, expected] : results) {
    if (!made.empty() && made.size() != expected.size()) continue;
    out << comma << std::quoted(name) << ": {\"made\": ";
    print_numbers(out, made);
    out << ", \"expected\": ";
    print_numbers(out, expected);
    out << "}";
    comma = ",\n";
  }
  out << "}";
}

// Where packed sequences are, "sequences": [[first query, queries, first key, keys], ..], and which tiles a block mask
// lists, "listed": [[head over all batches, row of tiles, which of it, whether it is cut], ..].
std::string where_in_json(const Problem& p) {
  std::ostringstream out;
  const char* comma = "";
  if (p.packed) {
    out << ", \"sequences\": [";
    int first_q = 0, first_k = 0;
    for (const Problem& one : sequences(p)) {
      out << comma << "[" << first_q << ", " << one.seq_q << ", " << first_k << ", " << one.seq_k << "]";
      comma = ", ";
      first_q += one.seq_q, first_k += one.seq_k;
    }
    out << "]";
  }
  if (p.blocks != attention::BlockPattern::none) {
    const attention::BlockLists lists = attention::block_lists(p);
    constexpr int tile = attention::BlockMask::tile;
    const int rows = ceil_div(p.seq_q, tile), numbers = rows + 1 + ceil_div(p.seq_k, tile) + 1;
    out << ", \"listed\": [";
    for (int head = 0; head < p.batch * p.heads; head++) {
      const int b = lists.batch > 1 ? head / p.heads : 0, h = lists.heads > 1 ? head % p.heads : 0;
      const int* begin = &lists.begin[(b * lists.heads + h) * numbers];
      for (int row = 0; row < rows; row++)
        for (int t = begin[row]; t < begin[row + 1]; t++) {
          out << comma << "[" << head << ", " << row << ", " << lists.tiles[2 * t] << ", "
              << int(lists.tiles[2 * t + 1] >= 0) << "]";
          comma = ", ";
        }
    }
    out << "]";
  }
  return out.str();
}

// {"chapter": .., "problem": .., "direction": .., "sequences" or "listed", "rungs": [{"rung": .., "tensors": [{"name":
// "Q", "rows": .., "row_bytes": ..}], "launches": [..], "results": {"O": {"made": [..], "expected": [..]}, ..}}]}, the
// launches as simt/trace/walk.h has them. Of a forward that does not write LSE, nothing was made. A rung that was wrong
// has "wrong", too. Are all of them right?
bool print_walk(std::ostream& out, const Options& options, const HostTensors& inputs, const Reference& reference) {
  const Problem& p = options.problem;
  bool passed = true;
  out << "{\"chapter\": " << std::quoted(the_chapter().name) << ", \"problem\": " << std::quoted(label(p))
      << ", \"direction\": \"" << (options.backward ? "backward" : "forward") << "\"" << where_in_json(p)
      << ", \"rungs\": [";
  for (size_t i = 0; i < options.rungs.size(); i++) {
    const Rung& rung = *options.rungs[i];
    DeviceTensors tensors(p, inputs, workspace_bytes(rung, options), options.backward);
    if (options.backward) upload_forward(tensors, p, reference);
    const std::vector<NamedRows> named = named_rows(p, tensors);
    const std::string launches = walked(named, [&] { run(rung, options, tensors); });
    const Verdict verdict = verdict_of(rung, options, inputs, reference, tensors);
    passed = passed && verdict.passed();
    out << (i > 0 ? "," : "") << "\n{\"rung\": " << std::quoted(rung.name) << wrong_in_json(verdict)
        << ", \"tensors\": [";
    const char* comma = "";
    for (const NamedRows& each : named) {
      out << comma << "{\"name\": " << std::quoted(each.name) << ", \"rows\": " << each.rows
          << ", \"row_bytes\": " << each.row_bytes << "}";
      comma = ", ";
    }
    out << "], \"launches\":\n" << launches;
    print_results(out, rung, options, tensors, reference);
    out << "}";
  }
  out << "]}\n";
  return passed;
}

// {"chapter": .., "rungs": [{"rung": .., "diagnosis": ..}]}, as harness/diagnosis.h has it: null if the problem is too
// large.
void print_diagnosis(std::ostream& out, const Options& options, const HostTensors& inputs, const Reference& reference) {
  out << "{\"chapter\": " << std::quoted(the_chapter().name) << ", \"rungs\": [";
  const char* comma = "";
  for (const Rung* rung : options.rungs) {
    DeviceTensors tensors(options.problem, inputs, workspace_bytes(*rung, options), options.backward);
    if (options.backward) upload_forward(tensors, options.problem, reference);
    const std::string found =
        first_wrong_stage(problem_of(*rung, options), inputs, reference.given(), [&] { run(*rung, options, tensors); });
    out << comma << "\n{\"rung\": " << std::quoted(rung->name)
        << ", \"diagnosis\": " << (found.empty() ? "null" : found) << "}";
    comma = ",";
  }
  out << "]}" << std::endl;
}

// With and without guard bands; the first verdict that is not a pass, if there is one. Where kernels are traced, the
// engine sees what is out of bounds.
Verdict verdict_on(const Rung& rung, const Options& options, const HostTensors& inputs, const Reference& of_last) {
  std::optional<Reference> own;
  const Reference& reference = reference_of(rung, options, inputs, of_last, own);
  Verdict verdict;
  for (const size_t guard : guards) {
    verdict = options.backward
                  ? run_backward(in_kernel_process(rung.backward), options.problem, inputs, reference, guard)
                  : run_forward(in_kernel_process(rung.forward), options.problem, inputs, reference, guard);
    if (verdict.passed() && norms_count(options.problem)) verdict.problem = verdict.inaccurate();
    if (!verdict.passed() || can_trace()) break;
  }
  return verdict;
}

// What the launches of one rung work on. All repetitions of its benchmark share them; the next rung's take their place.
struct RotatingSets {
  const Rung* rung = nullptr;
  std::vector<std::unique_ptr<DeviceTensors>> sets;

  void make_for(const Rung& wanted, const Options& options, const Device& device, const HostTensors& inputs,
                const Reference& reference) {
    if (rung == &wanted) return;
    sets.clear();  // first, for there may not be memory for both
    for (int i = 0; i < rotating_sets(wanted, options, device); i++) {
      sets.push_back(
          std::make_unique<DeviceTensors>(options.problem, inputs, workspace_bytes(wanted, options), options.backward));
      if (options.backward) upload_forward(*sets.back(), options.problem, reference);
    }
    rung = &wanted;
  }
};

// Every launch is timed on its own; a benchmark's time is the mean of its iterations, and the report gives the median
// of the repetitions.
void register_benchmark(const Rung& rung, const Verdict& verdict, const Options& options, const Device& device,
                        const HostTensors& inputs, const Reference& reference, ColdTimer& timer,
                        RotatingSets& rotating) {
  const std::string title =
      the_chapter().name + "/" + rung.name + (options.backward ? "/bwd/" : "/fwd/") + label(options.problem);
  auto* const benchmark = benchmark::RegisterBenchmark(title.c_str(), [&, rung = &rung](benchmark::State& state) {
    rotating.make_for(*rung, options, device, inputs, reference);
    const auto& sets = rotating.sets;
    run(*rung, options, *sets[0]);  // warm-up: the first launch loads the kernel
    check(cudaDeviceSynchronize());
    size_t turn = 0;
    for (auto _ : state)
      state.SetIterationTime(timer.seconds([&] { run(*rung, options, *sets[turn++ % sets.size()]); }));

    const Comparison& worst = verdict.worst();
    state.counters["FLOP/s"] = benchmark::Counter(flops_of_all(options.problem, options.backward),
                                                  benchmark::Counter::kIsIterationInvariantRate);
    state.counters["bytes"] = double(device_bytes(options.problem, 0, options.backward));  // that must move at least
    state.counters["workspace_bytes"] = double(workspace_bytes(*rung, options));
    state.counters["peak_bytes"] = double(peak_bytes(*rung, options));
    state.counters["error"] = worst.error;
    state.counters["tolerance"] = worst.tolerance;
    state.counters["rows_checked"] = verdict.rows_checked;
  });
  benchmark->UseManualTime()->Unit(benchmark::kMillisecond);
  if (!device.is_gpu) {
    if (!options.time_given) benchmark->Iterations(1);
    return;
  }
  // Manual time knows no limit on the wall clock, so the number of launches is chosen here: 11 repetitions of about 20
  // milliseconds each, or 5 of one launch if that takes longer.
  DeviceTensors probe(options.problem, inputs, workspace_bytes(rung, options), options.backward);
  run(rung, options, probe);
  const double once = timer.seconds([&] { run(rung, options, probe); });
  if (!options.time_given) benchmark->Iterations(int(std::clamp(0.02 / once, 1.0, 50.0)));
  if (!options.repetitions_given) benchmark->Repetitions(once < 0.02 ? 11 : 5)->DisplayAggregatesOnly(true);
}

void add_context(const Device& device) {
  const auto version = [](int v) { return std::to_string(v / 1000) + "." + std::to_string(v % 1000 / 10); };
  benchmark::AddCustomContext("device", device.name);
  benchmark::AddCustomContext("commit",
                              std::getenv("WORKBOOK_COMMIT") ? std::getenv("WORKBOOK_COMMIT") : WORKBOOK_COMMIT);
  if (device.is_gpu) {
    benchmark::AddCustomContext("sm_clock_max_mhz", std::to_string(device.sm_clock_mhz));
    benchmark::AddCustomContext("cuda_driver", version(device.driver));
    benchmark::AddCustomContext("cuda_runtime", version(device.runtime));
    benchmark::AddCustomContext("l2", "flushed before every launch");
    benchmark::AddCustomContext("time", "CUDA events around each launch");
  } else {
    benchmark::AddCustomContext("time", "of the CPU that runs the SIMT engine: says nothing about a GPU");
  }
}

// Rows of `from` numbers, each with zeros up to `to`.
std::vector<float> with_zeros(const std::vector<float>& rows, int from, int to) {
  std::vector<float> padded(rows.size() / from * to);
  for (size_t i = 0; i < rows.size(); i++) padded[i / from * to + i % from] = rows[i];
  return padded;
}

// The inputs of a check, and of what follows it.
HostTensors inputs_of(const Options& options) {
  if (options.padded_from == 0) return make_inputs(options.problem, options.inputs, options.seed);
  Problem narrow = options.problem;
  const int from = narrow.head_dim = options.padded_from, to = options.problem.head_dim;
  const HostTensors t = make_inputs(narrow, options.inputs, options.seed);
  return {with_zeros(t.q, from, to),
          with_zeros(t.k, from, to),
          with_zeros(t.v, from, to),
          with_zeros(t.d_o, from, to),
          t.alibi,
          t.sink};
}

// One direction: checks what is asked for, then counts or times it. Returns the exit status.
int answer(const Options& options, const Device& device) {
  const HostTensors inputs = inputs_of(options);
  const std::optional<Reference> reference = make_reference(options, inputs);
  if (!reference) return 1;
  if (options.diagnose) {
    print_diagnosis(std::cout, options, inputs, *reference);
    return 0;
  }
  // What is counted or walked is the first launch of a process: what kernels that nobody has read had computed before,
  // they could keep. And of a wrong kernel its author wants to see it: only its time says nothing.
  if (options.trace || options.walk) {
    std::ostringstream all;  // nothing is printed of a run that the engine stops
    const bool right = (!options.trace || print_trace(all, options, inputs, *reference)) &&
                       (!options.walk || print_walk(all, options, inputs, *reference));
    std::cout << all.str() << std::flush;
    return right ? 0 : 1;
  }
  std::vector<Verdict> verdicts;
  bool passed = true;
  for (const Rung* rung : options.rungs) {
    verdicts.push_back(verdict_on(*rung, options, inputs, *reference));
    print_verdict(options.check_only ? std::cout : std::cerr, rung->name, verdicts.back(),
                  norms_count(options.problem));
    passed = passed && verdicts.back().passed();
  }
  if (!passed) return 1;
  if (options.check_only) return 0;

  add_context(device);
  ColdTimer timer;
  RotatingSets rotating;
  for (size_t i = 0; i < options.rungs.size(); i++)
    register_benchmark(*options.rungs[i], verdicts[i], options, device, inputs, *reference, timer, rotating);
  if (benchmark::RunSpecifiedBenchmarks() == 0) throw Refusal("no benchmark of this chapter has such a name");
  return 0;
}

int main(int argc, char** argv) {
  // Google Benchmark's flags are its own business, all others are ours.
  std::vector<char*> ours = {argv[0]}, benchmarks = {argv[0]};
  for (int i = 1; i < argc; i++)
    (std::string_view(argv[i]).starts_with("--benchmark_") ? benchmarks : ours).push_back(argv[i]);

  Options options = parse(int(ours.size()), ours.data());
  if (!options.help.empty()) {
    std::cout << options.help;
    return 0;
  }
  if (options.describe) {
    describe(std::cout, counted(options.problem));
    return 0;
  }
  for (const std::string_view flag : benchmarks) {
    const auto value_of = [&](std::string_view name) {
      return flag.starts_with(name) ? flag.data() + name.size() : nullptr;
    };
    if (const char* repetitions = value_of("--benchmark_repetitions=")) {
      options.repetitions_given = true;
      if (std::atoi(repetitions) < 1) throw Refusal(std::string(flag) + ": it must be a whole number of at least 1");
    }
    if (const char* seconds = value_of("--benchmark_min_time=")) {
      options.time_given = true;
      if (const double least = std::atof(seconds); !(least >= 0 && least < 1e6))  // of NaN it would never have enough
        throw Refusal(std::string(flag) + ": it must be a number of seconds");
    }
  }
  for (const auto& [asked, flag, command] : {std::tuple(options.trace, "trace", "trace"),
                                             {options.walk, "walk", "walk"},
                                             {options.diagnose, "diagnose", "check"}})
    if (asked && !can_trace())
      throw Refusal(std::string("--") + flag + " needs traced kernels, on the SIMT engine: ./workbook " + command);
  int benchmark_argc = int(benchmarks.size());
  benchmark::Initialize(&benchmark_argc, benchmarks.data());
  if (benchmark_argc > 1) throw Refusal(std::string("unknown or malformed flag ") + benchmarks[1]);

  const Device device = current_device();
  const auto require_all = [&] {
    for (const bool backward : options.directions) require_support(about(backward, options), device);
  };
  require_all();  // before the host counts what no device holds
  options.problem = counted(options.problem);
  require_all();
  int status = 0;
  for (const bool backward : options.directions) status = std::max(status, answer(about(backward, options), device));
  return status;
}

}  // namespace
}  // namespace harness

int main(int argc, char** argv) {
  const std::string chapter = the_chapter().name;
  try {
    return harness::main(argc, argv);
  } catch (const std::bad_alloc&) {
    std::cerr << chapter << ": the host has not enough memory for a problem of this size\n";
    return 2;
  } catch (const std::exception& error) {
    std::cerr << chapter << ": " << error.what() << "\n";
    const bool question = dynamic_cast<const harness::Refusal*>(&error) || dynamic_cast<const CLI::Error*>(&error);
    return question ? 2 : 1;
  }
}
