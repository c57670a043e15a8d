// Attention over a sequence that several ranks share, one rank a GPU:
//
//   mpirun -n 4 11_split_kv_ring --seq-q=1000 --check
//
// Without a GPU each rank's kernels run on the SIMT engine. Exit status: 0 if the result was right, 1 if it was wrong,
// a launch failed or a rank was lost, 2 if the arguments are wrong.
#include <CLI/CLI.hpp>
#include <fstream>
#include <future>
#include <iomanip>
#include <iostream>
#include <sstream>

#include "measure.h"

namespace causal_earlystop {
extern const attention::Rung balanced;
extern const attention::Backward ordered_backward;
}  // namespace causal_earlystop

namespace hopper {
extern const attention::Rung dynamic;
extern const attention::Backward ordered_backward;
}  // namespace hopper

namespace split_kv::parallel {
namespace {

using attention::Problem;

constexpr const char* program = "11_split_kv_ring";

struct Options {
  Problem problem;
  std::string way = "ring", order = "balanced", kernel = "08_causal_earlystop", transport, direction;
  double patience = 60;  // seconds
  uint64_t seed = 1;
  bool check_only = false;
  std::string measure;   // the file
  double seconds = 600;  // that it may take
  std::string help, refusal;
};

std::string one_of(const char* flag, const std::string& value, std::initializer_list<const char*> allowed) {
  std::string names;
  for (const char* each : allowed) {
    if (value == each) return "";
    names += (names.empty() ? "" : ", ") + std::string(each);
  }
  return std::string(flag) + " is " + value + ": there are " + names;
}

std::string seconds_refused(const char* flag, double seconds) {
  if (seconds >= 0.1 && seconds <= 86400) return "";
  std::ostringstream line;
  line << flag << " is " << seconds << ": it must lie between 0.1 and 86400 seconds";
  return line.str();
}

// What is wrong goes to `refusal`: every rank must get as far as telling the others.
Options parse(int argc, char** argv) {
  Options options;
  Problem& p = options.problem = attention::default_problem();
  std::string dtype = "fp16";
  bool causal = true;
  int64_t seed = 1;
  CLI::App app("Attention over a sequence that is dealt to several ranks, started by mpirun; one rank without it.");
  app.add_option("--batch", p.batch, "batch size")->capture_default_str();
  app.add_option("--heads", p.heads, "query heads")->capture_default_str();
  CLI::Option* kv_heads =
      app.add_option("--kv-heads", p.kv_heads, "key and value heads; as many as query heads unless given");
  app.add_option("--seq-q", p.seq_q, "number of queries, of all ranks together")->capture_default_str();
  CLI::Option* seq_k = app.add_option("--seq-k", p.seq_k, "number of keys; as many as queries unless given");
  app.add_option("--head-dim", p.head_dim, "head dimension")->capture_default_str();
  app.add_option("--dtype", dtype, "storage type: fp16 or bf16")->capture_default_str();
  app.add_flag("--causal,!--no-causal", causal, "query i sees keys j <= i + seq_k - seq_q (the default), or all");
  app.add_option("--way", options.way, "ring: K and V travel; all_to_all: each rank gets some of the heads")
      ->capture_default_str();
  app.add_option("--order", options.order,
                 "balanced: a rank has rows from the front and the back; in_order: neighbours")
      ->capture_default_str();
  app.add_option("--kernel", options.kernel, "whose kernels compute a part: 08_causal_earlystop or 10_hopper")
      ->capture_default_str();
  app.add_option("--transport", options.transport,
                 "nccl or mpi; nccl unless given, where each rank has a GPU of its own");
  app.add_option("--direction", options.direction,
                 "forward or backward, which has a forward before it; both unless given");
  app.add_option("--patience", options.patience,
                 "seconds that a rank waits for another one, and twice that until it ends")
      ->capture_default_str();
  app.add_option("--seed", seed, "of the random inputs")->capture_default_str();
  app.add_flag("--check", options.check_only, "check only, do not time");
  app.add_option("--measure", options.measure,
                 "take the measurement of the lesson, whatever the problem, and keep it as JSON");
  app.add_option("--seconds", options.seconds, "that it may take")->capture_default_str();
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    options.help = app.help();
    return options;
  } catch (const CLI::Error& error) {
    options.refusal = error.what();
    return options;
  }
  if (!*kv_heads) p.kv_heads = p.heads;
  if (!*seq_k) p.seq_k = p.seq_q;
  p.dtype = dtype == "bf16" ? attention::DType::bf16 : attention::DType::fp16;
  p.mask = causal ? attention::Mask::causal : attention::Mask::none;
  p.scale = attention::default_scale(p.head_dim);
  options.seed = uint64_t(seed);
  const std::string none;
  for (const std::string& wrong : std::initializer_list<std::string>{
           one_of("dtype", dtype, {"fp16", "bf16"}), one_of("way", options.way, {"ring", "all_to_all"}),
           one_of("order", options.order, {"balanced", "in_order"}),
           one_of("kernel", options.kernel, {"08_causal_earlystop", "10_hopper"}),
           options.transport.empty() ? none : one_of("transport", options.transport, {"nccl", "mpi"}),
           options.direction.empty() ? none : one_of("direction", options.direction, {"forward", "backward"}),
           seed < 0 ? "seed is " + std::to_string(seed) + ": it must not be negative" : "",
           seconds_refused("patience", options.patience), seconds_refused("seconds", options.seconds),
           attention::invalid(p)})
    if (options.refusal.empty()) options.refusal = wrong;
  return options;
}

// False on every rank if any rank has something to say against it; then rank 0 writes one line.
bool all_agree(World& world, const std::string& against) {
  int refused = 0;
  const std::vector<std::string> all = world.gather(against);
  for (size_t rank = 0; rank < all.size() && !refused; rank++)
    if (!all[rank].empty()) {
      refused = 1;
      std::cerr << program << ": " << (all[rank] == all[0] ? "" : "rank " + std::to_string(rank) + ": ") << all[rank]
                << "\n";
    }
  world.broadcast(&refused, sizeof refused);
  return !refused;
}

// Empty if all ranks were started with the same arguments.
std::string other_arguments(World& world, int argc, char** argv) {
  std::string own;
  for (int i = 1; i < argc; i++) own += std::string(i > 1 ? " " : "") + argv[i];
  const std::vector<std::string> all = world.gather(own);
  for (size_t rank = 1; rank < all.size(); rank++)
    if (all[rank] != all[0])
      return "rank " + std::to_string(rank) + " was started with \"" + all[rank] + "\" and rank 0 with \"" + all[0] +
             "\": all ranks need the same arguments";
  return "";
}

// Before the measurement, which takes minutes. The file is rank 0's.
std::string file_refused(const std::string& file, const World& world) {
  const bool refused = world.rank() == 0 && !std::ofstream(file, std::ios::app);
  return refused ? "measure is " + file + ": this file cannot be written" : "";
}

attention::Rung rung_of(const Options& options) {
  const bool on_hopper = options.kernel == "10_hopper";
  attention::Rung rung = on_hopper ? hopper::dynamic : causal_earlystop::balanced;
  rung.backward = on_hopper ? hopper::ordered_backward : causal_earlystop::ordered_backward;
  return rung;
}

// A line if these ranks cannot solve the problem: before anything is allocated or launched.
std::string unsupported(const Options& options, const World& world, bool backward) {
  const Problem& p = options.problem;
  const int ranks = world.ranks(), rows = std::min(p.seq_q, p.seq_k);
  if (ranks > rows)
    return "there are " + std::to_string(ranks) + " ranks and seq-" + (p.seq_q <= p.seq_k ? "q" : "k") + " is " +
           std::to_string(rows) + ": each rank needs a row at least";
  const attention::Rung rung = rung_of(options);
  if (const std::string why = rung.forward.unsupported(p); !why.empty()) return why;
  if (backward)
    if (const std::string why = rung.backward.unsupported(p); !why.empty()) return why;
  return options.way == "all_to_all" ? heads_refused(p, ranks) : "";
}

void print(const std::string& what, const harness::Verdict& verdict, bool same_bits, bool norms_count) {
  const harness::Comparison& worst = verdict.worst();
  std::cout << program << ": " << what << ": " << (verdict.passed() && same_bits ? "PASS" : "FAIL") << "  "
            << worst.tensor << " error " << std::setprecision(3) << worst.error << ", tolerance " << worst.tolerance
            << ", " << verdict.rows_checked << " of " << verdict.rows << " rows compared";
  if (norms_count) {
    const harness::Comparison& norm = verdict.least_accurate();
    std::cout << ", norm of the error of " << norm.tensor << " " << norm.norm << " (a kernel of one GPU may have "
              << norm.norm_tolerance << ")";
  }
  if (!verdict.passed()) std::cout << "; first wrong: " << verdict.first_wrong();
  if (!same_bits) std::cout << "; a second run gave other bits";
  std::cout << std::endl;
}

int answer(const Options& options, World& world, Transport& transport, bool backward) {
  const Problem& p = options.problem;
  const Order order = options.order == "in_order" ? Order::in_order : Order::balanced;
  const attention::Rung rung = rung_of(options);
  const Setting setting = {p, shards_of(p, world.ranks(), order), order, world.rank(), rung.forward, rung.backward};
  std::unique_ptr<Strategy> strategy;
  for (const StrategyName& each : strategies)
    if (options.way == each.name) strategy = each.make(setting, transport, backward);

  const harness::HostTensors inputs = harness::make_inputs(p, harness::InputKind::spread, options.seed);
  const Gathered made = solve(setting, *strategy, world, transport, inputs, backward);
  const bool same_bits = made == solve(setting, *strategy, world, transport, inputs, backward);
  // Rank 0 compares as long as it takes, and the others hear from it meanwhile.
  auto comparison = std::async(std::launch::async, judge, setting, made, inputs, backward);
  const std::chrono::duration<double> pause(options.patience / 4);
  for (int done = 0; !done; world.broadcast(&done, sizeof done))
    done = comparison.wait_for(pause) == std::future_status::ready;
  const std::vector<harness::Verdict> verdicts = comparison.get();
  int wrong = 0;
  const std::string where = std::to_string(world.ranks()) + (world.ranks() == 1 ? " rank" : " ranks") + ", " +
                            options.way + ", " + transport.name() + ", ";
  const char* const directions[] = {"forward", "backward"};
  for (size_t i = 0; i < verdicts.size(); i++) {
    print(where + directions[i] + " " + label(p), verdicts[i], same_bits, harness::norms_count(p));
    wrong |= !verdicts[i].passed() || !same_bits;
  }
  world.broadcast(&wrong, sizeof wrong);
  if (wrong || options.check_only) return wrong;

  LocalTensors tensors(setting, backward);
  tensors.upload(setting, inputs);
  std::vector<double> times =
      milliseconds(world, {{transport, strategy->stream(), [&] { strategy->forward(tensors.forward_args()); }}});
  if (backward)
    times.push_back(milliseconds(
        world, {{transport, strategy->stream(), [&] { strategy->backward(tensors.backward_args()); }}})[0]);
  const double megabytes = world.largest(double(tensors.bytes() + strategy->bytes())) / 1e6;
  if (world.rank() == 0)
    for (size_t i = 0; i < times.size(); i++)
      std::cout << program << ": " << where << directions[i] << " " << label(p) << ": " << std::setprecision(4)
                << times[i] << " ms, " << flops(p, i == 1) / times[i] * 1e-9 << " TFLOP/s, " << std::setprecision(7)
                << megabytes << " MB on each rank"
                << (on_gpu ? "" : "; the engine's time, which says nothing about a GPU") << std::endl;
  return 0;
}

int main(int argc, char** argv) {
  const Options options = parse(argc, argv);
  const std::chrono::milliseconds patience(int64_t((options.refusal.empty() ? options.patience : 60) * 1000));
  std::unique_ptr<World> world;
  Carrier carrier;  // not ended before an error is told: NCCL may wait for a rank that is gone
  try {
    world = World::join(patience);
    if (!options.help.empty()) {
      if (world->rank() == 0) std::cout << options.help;
      return 0;
    }
    if (!all_agree(*world, other_arguments(*world, argc, argv))) return 2;
    if (!all_agree(*world, options.refusal)) return 2;
    const bool backward = options.direction != "forward";
    if (!all_agree(*world, unsupported(options, *world, backward))) return 2;
    carrier = usual_transport(*world, patience, options.transport);
    if (!all_agree(*world, carrier.refusal)) return 2;
    const attention::Rung rung = rung_of(options);
    if (!options.measure.empty() && !all_agree(*world, file_refused(options.measure, *world))) return 2;
    if (!options.measure.empty())
      return measure(*world, *carrier.transport, rung.forward, rung.backward, options.kernel, options.seconds,
                     options.measure);
    return answer(options, *world, *carrier.transport, backward);
  } catch (const std::exception& error) {
    const std::string who = world && world->ranks() > 1 ? ": rank " + std::to_string(world->rank()) : "";
    std::cerr << program + who + ": " + error.what() + "\n";  // at once: other ranks may speak, too
    if (world && world->ranks() > 1) world->abort(1);
    _exit(1);  // what MPI has begun cannot be ended in order
  }
}

}  // namespace
}  // namespace split_kv::parallel

int main(int argc, char** argv) { return split_kv::parallel::main(argc, argv); }
