#include "measure.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <sstream>

#include "harness/timing.h"
#include "rows.h"

namespace split_kv::parallel {
namespace {

using attention::Mask;
using attention::Problem;

// B1 H16 D128 fp16 causal on a GPU; what the engine can do in a second or two otherwise.
Problem problem_with(int n) {
  Problem p;
  p.heads = p.kv_heads = on_gpu ? 16 : 4;
  p.head_dim = on_gpu ? 128 : 64;
  p.seq_q = p.seq_k = n;
  p.mask = Mask::causal;
  p.scale = attention::default_scale(p.head_dim);
  return p;
}

constexpr int rounds = 6;
constexpr double at_most_once = 0.5;  // seconds: a longer call is timed once, after one that loads the kernels

constexpr int shortest = on_gpu ? 8192 : 128, longest = on_gpu ? 1 << 20 : 256, each_of_weak = on_gpu ? 32768 : 128;

class Measurement {
 public:
  Measurement(World& world, Transport& transport, const attention::Forward& forward,
              const attention::Backward& backward, double seconds)
      : world_(world), transport_(transport), forward_(forward), backward_(backward), seconds_(seconds) {}

  void take() {
    for (int n = shortest; n <= longest && world_.ranks() > 1; n *= 2) bandwidth(n);
    for (int n = shortest; n <= longest; n *= 2) {
      solve(n);
      if ((n == shortest || n == each_of_weak) && world_.ranks() > 1) timeline(n);
      const int weak = each_of_weak * world_.ranks();
      if (n < weak && weak < 2 * n && weak != n) solve(weak);
    }
  }

  bool wrong() const { return wrong_; }

  void write(std::ostream& to, const std::string& kernel) const {
    const harness::Device device = harness::current_device();
    to << "{\"context\": {\"device\": " << std::quoted(device.name) << ", \"ranks\": " << world_.ranks()
       << ", \"ranks_on_this_host\": " << world_.local_ranks() << ", \"transport\": " << std::quoted(transport_.name())
       << ", \"kernel\": " << std::quoted(kernel) << ", \"seconds\": " << elapsed() << "},\n\"measured\": [";
    for (size_t i = 0; i < records_.size(); i++) to << (i ? ",\n" : "\n") << records_[i];
    to << "\n],\n\"left_out\": [";
    for (size_t i = 0; i < left_out_.size(); i++) to << (i ? ", " : "") << std::quoted(left_out_[i]);
    to << "]}\n";
  }

 private:
  using Clock = std::chrono::steady_clock;
  double elapsed() const { return std::chrono::duration<double>(Clock::now() - begin_).count(); }

  void record(const std::string& json) {
    if (world_.rank() != 0) return;
    records_.push_back(json);
    std::cout << json << std::endl;
  }

  // Of the rank that has least.
  double free_bytes() { return -world_.largest(-double(harness::current_device().free_bytes)); }

  // Whether there is room and time for it, as rank 0 sees it; `needed` is the largest of all ranks.
  bool affordable(const std::string& what, double seconds, double bytes) {
    const double free = free_bytes();
    const double needed = world_.largest(bytes);
    std::ostringstream why;
    why << std::setprecision(3);
    if (needed > 0.97 * free)
      why << what << ": " << needed * 1e-9 << " GB are needed on each rank, " << free * 1e-9 << " GB are free";
    else if (world_.largest(elapsed()) + seconds > seconds_)
      why << what << ": it would take " << seconds << " s";
    if (why.str().empty()) return true;
    left_out_.push_back(why.str());
    if (world_.rank() == 0) std::cout << "left out: " << why.str() << std::endl;
    return false;
  }

  static double tensor_bytes(const Setting& s, bool backward) {
    const double rows = double(s.shards[s.rank].queries.count()) * s.whole.heads * s.whole.head_dim * 2;
    return rows * (backward ? 8 : 4);
  }

  // Of one GPU, for the whole problem.
  double workspace_bytes(const Problem& p, bool backward) const {
    return double(backward ? backward_.workspace_bytes(p) : forward_.workspace_bytes(p));
  }

  Setting setting_of(const Problem& p, int ranks, int rank) const {
    return {p, shards_of(p, ranks, Order::balanced), Order::balanced, rank, forward_, backward_};
  }

  void fill_inputs(const Setting& s, LocalTensors& t, cudaStream_t stream) const {
    const Shard& shard = s.shards[s.rank];
    const Problem& p = s.whole;
    uint32_t seed = 1;
    for (const harness::DeviceBuffer* buffer : {&t.q, &t.k, &t.v, &t.d_o}) {
      if (buffer->bytes() > 0)
        random_rows({buffer->data(), p.batch * p.heads, p.seq_q, shard.queries, seed, seed == 1 ? 2.0f : 1.0f}, p,
                    stream);
      seed++;
    }
  }

  // How far a rank's rows of a tensor are from one GPU's: the norm of the difference, relative, of the worst rank.
  double apart(const Setting& s, const harness::DeviceBuffer& own, const harness::DeviceBuffer& whole) {
    const Problem& p = s.whole;
    const double difference =
        relative_distance({own.data(), whole.data(), p.batch * p.heads, p.seq_q, s.shards[s.rank].queries}, p);
    return world_.largest(std::isfinite(difference) ? difference : 1e30);
  }

  // One GPU, or a way, with the tensors of this rank.
  struct Contestant {
    const char* name;
    Setting setting;
    Transport& transport;
    bool backward;
    LocalTensors tensors{setting, backward};
    std::unique_ptr<Strategy> strategy = nullptr;

    size_t bytes() const { return tensors.bytes() + strategy->bytes(); }
    void forward() const { strategy->forward(tensors.forward_args()); }
    Timed timed() const {
      if (backward) return {transport, strategy->stream(), [this] { strategy->backward(tensors.backward_args()); }};
      return {transport, strategy->stream(), [this] { forward(); }};
    }
  };

  // One length: one GPU and the ways, forward and backward. They take turns if all have room at the same time.
  void solve(int n) {
    const Problem p = problem_with(n);
    for (const bool backward : {false, true}) {
      const std::string what = std::string(backward ? "backward" : "forward") + " N=" + std::to_string(n);
      const auto seconds = [&](int ranks) {  // of a contestant, at the rate that one GPU had at the length before
        const double call = flops(p, backward) / rate_[backward] / ranks;
        return call * (call > at_most_once ? 2 : 2 + rounds);
      };
      const double of_one = tensor_bytes(setting_of(p, 1, 0), backward) + workspace_bytes(p, backward);
      const double of_each = 4 * tensor_bytes(setting_of(p, world_.ranks(), world_.rank()), backward) +
                             2 * workspace_bytes(p, backward) / world_.ranks();
      const bool together = of_one + 2 * of_each < 0.9 * free_bytes();
      std::vector<std::unique_ptr<Contestant>> group;
      double one_ms = 0, expected = 0;
      const auto enter = [&](const char* name, auto make, int ranks, Transport& transport, double bytes) {
        if (!affordable((ranks == 1 ? "one GPU" : name) + (", " + what), expected + seconds(ranks), bytes)) return;
        if (together) expected += seconds(ranks);
        const Setting s = setting_of(p, ranks, ranks == 1 ? 0 : world_.rank());
        group.push_back(std::make_unique<Contestant>(Contestant{name, s, transport, backward}));
        Contestant& contestant = *group.back();
        contestant.strategy = make(s, transport, backward);
        fill_inputs(s, contestant.tensors, contestant.strategy->stream());
        if (backward) {
          contestant.forward();
          harness::Event done;
          done.record(contestant.strategy->stream());
          transport.wait(done.get());
        }
      };
      const auto finish = [&] {
        std::vector<Timed> timed;
        for (const auto& each : group)
          if (each->strategy) timed.push_back(each->timed());
        const std::vector<double> times = milliseconds(world_, timed);
        size_t i = 0;
        for (const auto& each : group) {
          if (!each->strategy) continue;
          const double ms = times[i++];
          const bool one = each->setting.shards.size() == 1;
          if (one) one_ms = ms, rate_[backward] = flops(p, backward) / ms * 1e3;
          note(*each, ms, one ? 0 : one_ms, one || one_ms == 0 ? 0 : distance(*each, group[0]->tensors));
        }
        for (const auto& each : group) each->strategy.reset();
      };
      enter("one", ring, 1, *alone_, of_one);
      if (!together) finish();
      for (const StrategyName& each : strategies) {
        if (world_.ranks() == 1 || (each.make == all_to_all && !heads_refused(p, world_.ranks()).empty())) continue;
        enter(each.name, each.make, world_.ranks(), transport_, of_each);
        if (together) continue;
        finish();
        if (!group.empty() && group.back()->setting.shards.size() > 1) group.pop_back();
      }
      if (together) finish();
    }
  }

  double distance(const Contestant& own, const LocalTensors& whole) {
    const LocalTensors& t = own.tensors;
    const Setting& s = own.setting;
    const double most = own.backward
                            ? std::max({apart(s, t.dq, whole.dq), apart(s, t.dk, whole.dk), apart(s, t.dv, whole.dv)})
                            : apart(s, t.o, whole.o);
    wrong_ |= most > 2e-3;  // two roundings to fp16 differ by some 3e-4
    return most;
  }

  // Strong scaling, and weak where each rank has as many rows as in every other run.
  void note(const Contestant& who, double ms, double one_ms, double distance) {
    const Problem& p = who.setting.whole;
    const int ranks = int(who.setting.shards.size());
    const double most = world_.largest(double(who.bytes()));
    std::ostringstream json;
    json << std::setprecision(5) << "\"way\": \"" << who.name << "\", \"direction\": \""
         << (who.backward ? "backward" : "forward") << "\", \"seq\": " << p.seq_q << ", \"heads\": " << p.heads
         << ", \"head_dim\": " << p.head_dim << ", \"dtype\": \"fp16\", \"causal\": true, \"ranks\": " << ranks
         << ", \"ms\": " << ms << ", \"tflops\": " << flops(p, who.backward) / ms * 1e-9
         << ", \"bytes_per_rank\": " << std::setprecision(12) << most << std::setprecision(5);
    if (one_ms > 0)
      json << ", \"one_gpu_ms\": " << one_ms << ", \"speedup\": " << one_ms / ms << ", \"distance\": " << distance;
    json << "}";
    if (p.seq_q % shortest == 0 && (p.seq_q / shortest & (p.seq_q / shortest - 1)) == 0)
      record("{\"series\": \"strong\", " + json.str());
    if (p.seq_q == each_of_weak * ranks) record("{\"series\": \"weak\", " + json.str());
  }

  // What the ring's exchange of one step takes when nothing else is done: K and V of one rank.
  void bandwidth(int n) {
    const Problem p = problem_with(n);
    const Setting s = setting_of(p, world_.ranks(), world_.rank());
    const size_t bytes = size_t(p.heads) * s.shards[0].keys.count() * p.head_dim * 2;
    if (!affordable("bandwidth N=" + std::to_string(n), 1, 4.0 * double(bytes))) return;
    const harness::DeviceBuffer k(bytes), v(bytes), next_k(bytes), next_v(bytes);
    const int next = (s.rank + 1) % world_.ranks(), previous = (s.rank + world_.ranks() - 1) % world_.ranks();
    const Message sends[] = {{next, k.data(), bytes}, {next, v.data(), bytes}};
    const Message receives[] = {{previous, next_k.data(), bytes}, {previous, next_v.data(), bytes}};
    const std::unique_ptr<Strategy> stream = ring(setting_of(problem_with(shortest), 1, 0), transport_, false);
    const double ms = milliseconds(world_, {{transport_, stream->stream(), [&] {
                                               transport_.begin(sends, receives, stream->stream());
                                               transport_.finish(stream->stream());
                                             }}})[0];
    std::ostringstream json;
    json << std::setprecision(5) << "{\"series\": \"bandwidth\", \"seq\": " << n
         << ", \"bytes\": " << std::setprecision(12) << 2 * bytes << std::setprecision(5) << ", \"ms\": " << ms
         << ", \"gigabytes_per_second\": " << 2e-6 * double(bytes) / ms << "}";
    record(json.str());
  }

  // What every rank does when, once forward and once backward.
  void timeline(int n) {
    const Setting s = setting_of(problem_with(n), world_.ranks(), world_.rank());
    LocalTensors tensors(s, true);
    const std::unique_ptr<Strategy> strategy = ring(s, transport_, true);
    fill_inputs(s, tensors, strategy->stream());
    harness::Event done;
    const auto call = [&](bool backward) {
      backward ? strategy->backward(tensors.backward_args()) : strategy->forward(tensors.forward_args());
    };
    call(false);  // loads the kernels
    for (const bool backward : {false, true}) {
      world_.barrier();
      for (int i = 0; i < 15; i++) call(backward);  // what is noted comes behind others, as in the middle of a model
      Timeline timeline(strategy->stream());
      strategy->timeline = &timeline;
      const Clock::time_point begin = Clock::now();
      call(backward);
      const double host_ms = std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
      strategy->timeline = nullptr;
      done.record(strategy->stream());
      transport_.wait(done.get());
      std::ostringstream own;
      own << std::setprecision(6) << "[";
      const char* comma = "";
      for (const Timeline::Span& span : timeline.spans()) {
        own << comma << "{\"lane\": " << std::quoted(span.lane) << ", \"what\": " << std::quoted(span.what)
            << ", \"begin_ms\": " << span.begin_ms << ", \"end_ms\": " << span.end_ms
            << ", \"bytes\": " << std::setprecision(12) << span.bytes << std::setprecision(6) << "}";
        comma = ", ";
      }
      own << "]";
      std::ostringstream json;
      json << "{\"series\": \"timeline\", \"direction\": \"" << (backward ? "backward" : "forward")
           << "\", \"seq\": " << n << ", \"host_ms\": " << std::setprecision(4) << host_ms << ", \"ranks\": [";
      const auto all = world_.gather(own.str());
      for (size_t rank = 0; rank < all.size(); rank++) json << (rank ? ", " : "") << all[rank];
      json << "]}";
      record(json.str());
    }
  }

  World& world_;
  Transport& transport_;
  const std::unique_ptr<Transport> alone_ = no_transport();
  const attention::Forward forward_;
  const attention::Backward backward_;
  const double seconds_;
  const Clock::time_point begin_ = Clock::now();
  double rate_[2] = {on_gpu ? 250e12 : 1e9, on_gpu ? 160e12 : 1e9};  // operations a second, forward and backward
  std::vector<std::string> records_, left_out_;
  bool wrong_ = false;
};

}  // namespace

std::vector<double> milliseconds(World& world, const std::vector<Timed>& all) {
  harness::Event start, stop;
  const auto round = [&](const Timed& one, int calls) {
    world.barrier();
    start.record(one.stream);
    for (int i = 0; i < calls; i++) one.call();
    stop.record(one.stream);
    one.transport.wait(stop.get());
    return world.largest(stop.milliseconds_since(start) / float(calls));
  };
  std::vector<double> medians;
  for (const Timed& one : all) {
    round(one, 1);  // loads the kernels, and connects the ranks
    medians.push_back(round(one, 1));
  }
  if (!on_gpu) return medians;
  std::vector<std::vector<double>> times(all.size());
  const std::vector<double> once = medians;
  for (int i = 0; i < rounds; i++)
    for (size_t turn = 0; turn < all.size(); turn++) {
      const size_t k = i % 2 == 0 ? turn : all.size() - 1 - turn;
      if (once[k] <= at_most_once * 1e3) times[k].push_back(round(all[k], int(std::clamp(30 / once[k], 1.0, 20.0))));
    }
  for (size_t k = 0; k < all.size(); k++) {
    if (times[k].empty()) continue;
    std::sort(times[k].begin(), times[k].end());
    medians[k] = (times[k][rounds / 2 - 1] + times[k][rounds / 2]) / 2;
  }
  return medians;
}

int measure(World& world, Transport& transport, const attention::Forward& forward, const attention::Backward& backward,
            const std::string& kernel, double seconds, const std::string& file) {
  Measurement measurement(world, transport, forward, backward, seconds);
  measurement.take();
  if (world.rank() == 0) {
    std::ofstream to(file);
    measurement.write(to, kernel);
    if (!to) throw std::runtime_error("cannot write " + file);
    if (measurement.wrong()) std::cerr << "a result differs from one GPU's by more than 0.002 of it\n";
  }
  return measurement.wrong();
}

}  // namespace split_kv::parallel
