#include "measure.h"

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

constexpr int shortest = on_gpu ? 8192 : 128, longest = on_gpu ? 1 << 20 : 256, each_of_weak = on_gpu ? 32768 : 128;

class Measurement {
 public:
  Measurement(World& world, Transport& transport, const attention::Forward& forward,
              const attention::Backward& backward, double seconds)
      : world_(world), transport_(transport), forward_(forward), backward_(backward), seconds_(seconds) {}

  void take() {
    for (int n = shortest; n <= longest && world_.ranks() > 1; n *= 2) bandwidth(n);
    for (int n = shortest; n <= longest; n *= 2) {
      solve("strong", n);
      if (n == each_of_weak && world_.ranks() > 1) timeline(n);
    }
    if (world_.ranks() > 1 && (each_of_weak * world_.ranks() & (each_of_weak * world_.ranks() - 1)) != 0)
      solve("weak", each_of_weak * world_.ranks());  // else it is one of the lengths above
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

  // Whether there is room and time for it, as rank 0 sees it; `needed` is the largest of all ranks.
  bool affordable(const std::string& what, double seconds, double bytes) {
    const double free = -world_.largest(-double(harness::current_device().free_bytes));
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
    const double rows = double(s.shares[s.rank].queries.count()) * s.whole.heads * s.whole.head_dim * 2;
    return rows * (backward ? 8 : 4);
  }

  Setting setting_of(const Problem& p, int ranks, int rank) const {
    return {p, deal(p, ranks, Order::balanced), Order::balanced, rank, forward_, backward_};
  }

  void fill_inputs(const Setting& s, LocalTensors& t, cudaStream_t stream) const {
    const Share& share = s.shares[s.rank];
    const Problem& p = s.whole;
    uint32_t seed = 1;
    for (const harness::DeviceBuffer* buffer : {&t.q, &t.k, &t.v, &t.d_o}) {
      if (buffer->bytes() > 0)
        random_rows({buffer->data(), p.batch * p.heads, p.seq_q, share.queries, seed, seed == 1 ? 2.0f : 1.0f}, p,
                    stream);
      seed++;
    }
  }

  // How far the rank's rows of a tensor are from those of one GPU's, relative to that: the norm, the worst rank's.
  double apart(const Setting& s, const harness::DeviceBuffer& own, const harness::DeviceBuffer& whole) {
    const Problem& p = s.whole;
    const double difference =
        relative_distance({own.data(), whole.data(), p.batch * p.heads, p.seq_q, s.shares[s.rank].queries}, p);
    return world_.largest(std::isfinite(difference) ? difference : 1e30);
  }

  // One length: one GPU, then the ways, forward and backward.
  void solve(const char* series, int n) {
    const Problem p = problem_with(n);
    for (const bool backward : {false, true}) {
      const char* const direction = backward ? "backward" : "forward";
      const std::string what = std::string(direction) + " N=" + std::to_string(n);
      const Setting alone = setting_of(p, 1, 0);
      const double guess = flops(p, backward) * (on_gpu ? 1 / 250e12 : 1e-9);  // seconds of one call
      const double calls = guess > 0.5 ? 2 : 9;
      const double extra = double(backward_.workspace_bytes(p));
      std::unique_ptr<LocalTensors> whole;
      double one_ms = 0;
      const auto no_one = no_transport();
      if (affordable("one GPU, " + what, calls * guess * (backward ? 1.5 : 1),
                     tensor_bytes(alone, backward) + (backward ? extra : 0))) {
        whole = std::make_unique<LocalTensors>(alone, backward);
        const std::unique_ptr<Way> one = ring(alone, *no_one, backward);
        fill_inputs(alone, *whole, one->stream());
        one_ms = milliseconds(world_, *no_one, one->stream(), [&] { one->forward(whole->forward_args()); });
        if (backward)
          one_ms = milliseconds(world_, *no_one, one->stream(), [&] { one->backward(whole->backward_args()); });
        note(series, "one", direction, p, 1, one_ms, double(whole->bytes() + one->bytes()), 0, 0);
      }
      if (world_.ranks() == 1) continue;
      for (const WayName& each : ways) {
        if (each.make == all_to_all && !heads_refused(p, world_.ranks()).empty()) continue;
        const Setting s = setting_of(p, world_.ranks(), world_.rank());
        const double room = 4 * tensor_bytes(s, backward) + (backward ? extra / world_.ranks() : 0);
        if (!affordable(std::string(each.name) + ", " + what, calls * guess * (backward ? 1.5 : 1) / world_.ranks(),
                        room))
          continue;
        LocalTensors tensors(s, backward);
        const std::unique_ptr<Way> way = each.make(s, transport_, backward);
        fill_inputs(s, tensors, way->stream());
        double ms = milliseconds(world_, transport_, way->stream(), [&] { way->forward(tensors.forward_args()); });
        if (backward)
          ms = milliseconds(world_, transport_, way->stream(), [&] { way->backward(tensors.backward_args()); });
        double distance = 0;
        if (whole && backward)
          for (const auto& [own, of_one] :
               {std::pair(&tensors.dq, &whole->dq), {&tensors.dk, &whole->dk}, {&tensors.dv, &whole->dv}})
            distance = std::max(distance, apart(s, *own, *of_one));
        else if (whole)
          distance = apart(s, tensors.o, whole->o);
        wrong_ |= distance > 2e-3;  // two roundings to fp16 differ by some 3e-4
        note(series, each.name, direction, p, world_.ranks(), ms, double(tensors.bytes() + way->bytes()), one_ms,
             distance);
      }
    }
  }

  void note(const char* series, const char* way, const char* direction, const Problem& p, int ranks, double ms,
            double bytes, double one_ms, double distance) {
    const double most = world_.largest(bytes);
    std::ostringstream json;
    json << std::setprecision(5) << "{\"series\": \"" << series << "\", \"way\": \"" << way << "\", \"direction\": \""
         << direction << "\", \"seq\": " << p.seq_q << ", \"heads\": " << p.heads << ", \"head_dim\": " << p.head_dim
         << ", \"dtype\": \"fp16\", \"causal\": true, \"ranks\": " << ranks << ", \"ms\": " << ms
         << ", \"tflops\": " << flops(p, std::string(direction) == "backward") / ms * 1e-9
         << ", \"bytes_per_rank\": " << std::setprecision(12) << most << std::setprecision(5);
    if (one_ms > 0)
      json << ", \"one_gpu_ms\": " << one_ms << ", \"speedup\": " << one_ms / ms << ", \"distance\": " << distance;
    json << "}";
    record(json.str());
  }

  // What the ring's exchange of one step takes when nothing else is done: K and V of one rank.
  void bandwidth(int n) {
    const Problem p = problem_with(n);
    const Setting s = setting_of(p, world_.ranks(), world_.rank());
    const size_t bytes = size_t(p.heads) * s.shares[0].keys.count() * p.head_dim * 2;
    if (!affordable("bandwidth N=" + std::to_string(n), 1, 4.0 * double(bytes))) return;
    harness::DeviceBuffer k(bytes), v(bytes), next_k(bytes), next_v(bytes);
    const int next = (s.rank + 1) % world_.ranks(), previous = (s.rank + world_.ranks() - 1) % world_.ranks();
    const Message sends[] = {{next, k.data(), bytes}, {next, v.data(), bytes}};
    const Message receives[] = {{previous, next_k.data(), bytes}, {previous, next_v.data(), bytes}};
    const std::unique_ptr<Way> stream = ring(setting_of(problem_with(shortest), 1, 0), transport_, false);
    const double ms = milliseconds(world_, transport_, stream->stream(), [&] {
      transport_.begin(sends, receives, stream->stream());
      transport_.finish(stream->stream());
    });
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
    const std::unique_ptr<Way> way = ring(s, transport_, true);
    fill_inputs(s, tensors, way->stream());
    harness::Event done;
    const auto once = [&](bool backward) {
      backward ? way->backward(tensors.backward_args()) : way->forward(tensors.forward_args());
      done.record(way->stream());
      transport_.wait(done.get());
    };
    once(false), once(true);
    for (const bool backward : {false, true}) {
      world_.barrier();
      Timeline timeline(way->stream());
      way->timeline = &timeline;
      once(backward);
      way->timeline = nullptr;
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
           << "\", \"seq\": " << n << ", \"ranks\": [";
      const auto all = world_.gather(own.str());
      for (size_t rank = 0; rank < all.size(); rank++) json << (rank ? ", " : "") << all[rank];
      json << "]}";
      record(json.str());
    }
  }

  World& world_;
  Transport& transport_;
  const attention::Forward forward_;
  const attention::Backward backward_;
  const double seconds_;
  const Clock::time_point begin_ = Clock::now();
  std::vector<std::string> records_, left_out_;
  bool wrong_ = false;
};

}  // namespace

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
