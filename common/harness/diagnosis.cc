#include "harness/diagnosis.h"

#ifdef WORKBOOK_SIMT

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <limits>
#include <map>
#include <optional>
#include <sstream>
#include <utility>

#include "reference/attention.h"
#include "simt/engine/diagnosis.h"
#include "simt/engine/engine.h"
#include "simt/trace/walk.h"

namespace harness {
namespace {

using attention::Problem;

constexpr double infinite = std::numeric_limits<double>::infinity();
constexpr double largest_problem = 0x1p18;  // scores

// What the reference has of a query head, and how far a right kernel may be from it: some roundings of the terms that
// are added up. What this finds is wrong already; so these are wide.
struct Stages {
  reference::Forward forward;
  reference::Gradients gradients;  // of a backward
  reference::Matrix v;
  reference::Matrix s_tolerance, dp_tolerance;
  reference::Vector d_tolerance;
};

double rounding_unit(attention::DType type) { return type == attention::DType::fp16 ? 0x1p-11 : 0x1p-8; }

// A weight of eight bits is off by at most 2^-4 of itself, or of the least normal number, 2^-6.
constexpr double fp8_rounding_unit = 0x1p-6, least_normal_fp8 = 0x1p-6;  // tolerances are four units

std::vector<Stages> make_stages(const Problem& problem, const HostTensors& unrounded, const ForwardResult& given) {
  const Problem p = in_eight_bits(problem);
  const HostTensors rounded = p.eight_bits ? in_eight_bits(problem, unrounded) : HostTensors();
  const HostTensors& in = p.eight_bits ? rounded : unrounded;
  const double unit = rounding_unit(p.dtype);
  // In fp32, of the sum of all terms' sizes. In eight bits tensor cores cut off what each of 32 products, and the sum,
  // have behind 13 bits of the largest of them.
  const double sums = p.eight_bits ? 0x1p-10 : 0x1p-18;
  const reference::Rope rope(p.rope ? p.rope_rows() : 0, p.head_dim);
  std::vector<Stages> stages;
  for (int h = 0; h < p.batch * p.heads; h++) {
    auto q = reference::head(in.q, h, p.seq_q, p.head_dim);
    auto k = reference::head(in.k, p.kv_head(h), p.seq_k, p.head_dim);
    if (p.rope) {
      q = reference::rotate(q, reference::query_positions(p), rope).unaryExpr(reference::rounding(p.dtype));
      k = reference::rotate(k, reference::key_positions(p), rope).unaryExpr(reference::rounding(p.dtype));
    }
    Stages& of = stages.emplace_back();
    of.v = reference::head(in.v, p.kv_head(h), p.seq_k, p.v_dim());
    const double s_sums = p.rope ? 2 * unit : sums;  // a rotated element can be rounded the other way
    of.s_tolerance = s_sums * std::abs(p.scale) * q.cwiseAbs() * k.cwiseAbs().transpose();
    if (given.o.empty()) {
      of.forward = reference::forward(q, k, of.v, p.scale, reference::visible_keys(p));
      continue;
    }
    const auto o = reference::head(given.o, h, p.seq_q, p.v_dim());
    const auto d_o = reference::head(in.d_o, h, p.seq_q, p.v_dim());
    of.forward =
        reference::recomputed(q, k, o, reference::head(given.lse, h, p.seq_q, 1), p.scale, reference::visible_keys(p));
    of.gradients = reference::backward(q, k, of.v, of.forward, d_o, p.scale);
    of.dp_tolerance = sums * d_o.cwiseAbs() * of.v.cwiseAbs().transpose();
    // A kernel may take it from P and dP instead of O, which has been rounded.
    of.d_tolerance = 4 * unit * d_o.cwiseAbs().cwiseProduct(o.cwiseAbs()).rowwise().sum();
  }
  return stages;
}

struct Wrong {
  std::string name, how;
  int64_t row;  // over all heads
  int column;   // -1: the row has one such number
  double got, want;
  simt::Shown shown;
  std::pair<int, int> keys = {-1, -1};
};

// What is known of a row in a thread block, from all steps until now.
struct Row {
  std::vector<bool> seen, seen_before;  // keys whose P was shown; before the last step that showed some
  std::optional<double> m, m_before;    // natural logarithm; of the last step that showed it, and of the one before
  bool in_base_2 = false;               // as the kernel has it
};

using Values = simt::Elements;

class Comparer {
 public:
  Comparer(const Problem& problem, std::vector<Stages> stages, bool backward)
      : p_(problem), stages_(std::move(stages)), backward_(backward) {}

  // Until the first thing that is wrong.
  void launch(const simt::LaunchWalk& launch) {
    made_.assign(p_.lse_size() * size_t(p_.seq_k), false);
    again_.reset();
    bool makes_s = false;
    for (const simt::BlockWalk& block : launch.blocks) {
      rows_.clear();
      for (const simt::Step& step : block.steps) {
        makes_s = makes_s || step.watched.contains("S");
        compare(step.watched);
        if (wrong) return where(launch, block);
      }
    }
    if (makes_s && !backward_) require_all_scores_once();
  }

  std::optional<Wrong> wrong;
  std::string kernel, block, thread, line;  // of that
  std::vector<std::string> right;           // names, in the order of their first appearance

 private:
  const Stages& stages_of(int64_t row) const { return stages_[size_t(row / p_.seq_q)]; }
  int in_head(int64_t row) const { return int(row % p_.seq_q); }
  bool sees(int64_t row, int64_t column) const { return column < p_.visible_keys(in_head(row)); }
  double s(int64_t row, int64_t column) const { return stages_of(row).forward.s(in_head(row), column); }
  static bool counts(double score) { return score > -std::numeric_limits<float>::max(); }  // fp32 has it
  double p_tolerance(std::pair<std::int64_t, std::int64_t> place, double want) const {
    return want * (1e-3 + 2 * s_tolerance(place.first, place.second)) + 1e-6;
  }
  static std::optional<double> shown_of(const simt::Watched& watched, const char* name, int64_t row) {
    const auto found = watched.find(name);
    if (found == watched.end()) return {};
    const auto value = found->second.find({row, 0});
    return value == found->second.end() ? std::optional<double>() : value->second.value;
  }
  double s_tolerance(int64_t row, int64_t column) const { return stages_of(row).s_tolerance(in_head(row), column); }

  void where(const simt::LaunchWalk& launch, const simt::BlockWalk& of) {
    kernel = launch.kernel;
    const uint3 dim = {launch.block.x, launch.block.y, launch.block.z};
    const unsigned number = wrong->shown.thread;
    block = simt::text(of.index);
    thread = simt::text(uint3{number % dim.x, number / dim.x % dim.y, number / dim.x / dim.y});
    line = simt::line_of(wrong->shown.pc);
  }

  void compare(const simt::Watched& watched) {
    bool keep = true;  // that it is right
    const auto with = [&](const char* name, auto&& compare_all) {
      const auto found = watched.find(name);
      if (found == watched.end() || wrong) return;
      compare_all(found->second);
      if (!wrong && keep && std::find(right.begin(), right.end(), name) == right.end()) right.push_back(name);
    };
    with("S", [&](const Values& all) { scores(all); });
    tile_.clear();
    if (const auto found = watched.find("P"); found != watched.end())
      for (const auto& [place, shown] : found->second) {
        auto& [first, last] = tile_.try_emplace(place.first, int(place.second), int(place.second)).first->second;
        first = std::min(first, int(place.second)), last = std::max(last, int(place.second));
      }
    for (const auto& [row, keys] : tile_) rows_[row].seen_before = rows_[row].seen;
    keep = false;
    with("P", [&](const Values& all) { hidden(all), see(all); });
    keep = true;
    with("m", [&](const Values& all) { maxima(all); });
    with("m base 2", [&](const Values& all) { references(all); });
    with("correction", [&](const Values& all) { keep = corrections(all, watched); });
    keep = true;
    with("P", [&](const Values& all) { backward_ ? probabilities(all) : weights(all, watched); });
    with("l", [&](const Values& all) { sums(all, 1); });
    with("-l", [&](const Values& all) { sums(all, -1); });
    with("O", [&](const Values& all) { outputs(all); });
    with("dP", [&](const Values& all) { dp(all); });
    with("dS", [&](const Values& all) { ds(all); });
  }

  void report(const char* name, const char* how, std::pair<std::int64_t, std::int64_t> place, bool has_column,
              const simt::Shown& shown, double got, double want) {
    wrong = {name, how, place.first, has_column ? int(place.second) : -1, got, want, shown};
    if (const auto tile = tile_.find(place.first);
        tile != tile_.end() && tile->second.second - tile->second.first + 1 < p_.seq_k)
      wrong->keys = tile->second;
  }

  // NaN is not close to anything.
  static bool close(double got, double want, double tolerance) {
    return got == want || std::abs(got - want) <= tolerance;
  }

  void scores(const Values& all) {
    for (const auto& [place, shown] : all) {
      const auto [row, column] = place;
      auto made = made_[size_t(row * p_.seq_k + column)];
      if (made && !again_) again_ = {"S", "again", row, int(column), shown.value, s(row, column), shown};
      made = true;
      if (!sees(row, column)) continue;  // a kernel may show it before or after it hides it
      const double want = s(row, column);
      if (!(std::abs(want) < std::numeric_limits<float>::max())) continue;
      if (!close(shown.value, want, s_tolerance(row, column) + 1e-6))
        return report("S", "differs", place, true, shown, shown.value, want);
    }
  }

  void require_all_scores_once() {
    for (int64_t row = 0; row < int64_t(p_.lse_size()); row++)
      for (int column = 0; sees(row, column) && column < p_.seq_k; column++)
        if (!made_[size_t(row * p_.seq_k + column)]) {
          wrong = {"S", "missing", row, column, 0, s(row, column), {}};
          return;
        }
    wrong = again_;
  }

  void hidden(const Values& all) {
    for (const auto& [place, shown] : all)
      if (!sees(place.first, place.second) && shown.value != 0)
        return report("P", "hidden", place, true, shown, shown.value, 0);
  }

  void see(const Values& all) {
    for (const auto& [place, shown] : all) {
      std::vector<bool>& seen = rows_[place.first].seen;
      seen.resize(size_t(p_.seq_k));
      seen[size_t(place.second)] = true;
    }
  }

  // visit(key) for those that the row sees and that have been shown.
  template <class Visit>
  void for_each_seen(int64_t row, Visit visit) {
    const Row& known = rows_[row];
    for (size_t key = 0; key < known.seen.size() && sees(row, int64_t(key)); key++)
      if (known.seen[key]) visit(int64_t(key));
  }

  void maxima(const Values& all) {
    for (const auto& [place, shown] : all) {
      double want = -infinite, tolerance = 0;
      for_each_seen(place.first, [&](int64_t key) {
        want = std::max(want, s(place.first, key));
        tolerance = std::max(tolerance, s_tolerance(place.first, key));
      });
      Row& row = rows_[place.first];
      row.m_before = std::exchange(row.m, shown.value);
      const simt::Shown* wrong_one = first_that(shown, [&](double m) {  // no key yet, or none that counts: any number
        return counts(want) ? !close(m, want, tolerance + 1e-6) : std::isnan(m);
      });
      if (wrong_one) return report("m", "differs", place, false, *wrong_one, wrong_one->value, want);
    }
  }

  // Of all threads that showed an element, the first whose number is wrong; null if there is none.
  template <class IsWrong>
  static const simt::Shown* first_that(const simt::Shown& shown, IsWrong is_wrong) {
    if (is_wrong(shown.value)) return &shown;
    const auto found = std::find_if(shown.others.begin(), shown.others.end(),
                                    [&](const simt::Shown& other) { return is_wrong(other.value); });
    return found == shown.others.end() ? nullptr : &*found;
  }

  void references(const Values& all) {
    for (const auto& [place, shown] : all) {
      if (std::isnan(shown.value)) return report("m", "differs", place, false, shown, shown.value, 0);
      rows_[place.first].m = shown.value * M_LN2;
      rows_[place.first].in_base_2 = true;
    }
  }

  // Whether one could be compared: with exp(m before - m), where the same step shows m, and a step before it has. It
  // cannot be in base 2, where m may rise twice in a step; and before the first key, when l and O are 0, any will do.
  bool corrections(const Values& all, const simt::Watched& watched) {
    bool compared = false;
    for (const auto& [place, shown] : all) {
      const auto impossible = [](double c) { return !(c >= 0 && c <= 1 + 1e-6); };
      if (const simt::Shown* wrong_one = first_that(shown, impossible)) {
        report("correction", "grows", place, false, *wrong_one, wrong_one->value, 1);
        return false;
      }
      const auto m = shown_of(watched, "m", place.first), before = rows_[place.first].m_before;
      if (!m || !before || !counts(*before)) continue;
      const double want = std::exp(*before - *m);
      const auto differs = [&](double c) { return !close(c, want, 1e-3 * want + 1e-6); };
      if (const simt::Shown* wrong_one = first_that(shown, differs)) {
        report("correction", "differs", place, false, *wrong_one, wrong_one->value, want);
        return false;
      }
      compared = true;
    }
    return compared;
  }

  // P = exp(S - c). c is m; or m + log(l) of a kernel that divides at once; or, in base 2, what most of 16 neighbouring
  // keys say: m may rise between the halves of a tile.
  void weights(const Values& all, const simt::Watched& watched) {
    for (auto begin = all.begin(); begin != all.end();) {
      const int64_t row = begin->first.first;
      std::vector<double> candidates;
      const auto m = shown_of(watched, "m", row), l = shown_of(watched, "l", row);
      if (m) candidates.push_back(*m);
      if (m && l) candidates.push_back(*m + std::log(*l));
      const auto end = all.lower_bound({row, m ? p_.seq_k : begin->first.second / 16 * 16 + 16});
      if (!m) {
        std::vector<double> found;
        for (auto one = begin; one != end; ++one)
          if (sees(row, one->first.second) && one->second.value > 0)
            found.push_back(s(row, one->first.second) - std::log(double(one->second.value)));
        std::sort(found.begin(), found.end());
        if (!found.empty()) candidates.push_back(found[found.size() / 2]);
      }
      const auto expected = [&](const auto& one, double c) {
        const double score = s(row, one.first.second);
        return std::isfinite(c) ? std::exp(score - c) : counts(score) ? 1 : 0;
      };
      const auto differs = [&](const auto& one, double c) {
        const double want = expected(one, c);
        return sees(row, one.first.second) && !close(one.second.value, want, p_tolerance(one.first, want));
      };
      size_t fewest = SIZE_MAX;
      double best = 0;
      for (const double c : candidates) {
        const auto count = size_t(std::count_if(begin, end, [&](const auto& one) { return differs(one, c); }));
        if (count < fewest) fewest = count, best = c;
      }
      for (auto one = begin; one != end && !candidates.empty() && fewest > 0; ++one)
        if (differs(*one, best))
          return report("P", "differs", one->first, true, one->second, one->second.value, expected(*one, best));
      begin = end;
    }
  }

  // l and O, of the keys until now. In base 2 also without those of the last tile: a kernel that makes S of a tile
  // while it multiplies P of the one before shows the sums one tile late.
  struct Sums {
    double l = 0, l_tolerance = 0;
    reference::Vector o, o_size;  // sum and sum of sizes
  };
  std::vector<Sums> sums_of(int64_t row) {
    std::vector<Sums> found;
    const Row& known = rows_[row];
    if (!known.m) return found;
    for (const auto* keys : {&known.seen, &known.seen_before}) {
      Sums sums = {0, 0, reference::Vector::Zero(p_.v_dim()), reference::Vector::Zero(p_.v_dim())};
      bool any = false;
      for (size_t key = 0; key < keys->size() && sees(row, int64_t(key)); key++) {
        if (!(*keys)[key] || !counts(s(row, int64_t(key)))) continue;
        const double weight = std::exp(s(row, int64_t(key)) - *known.m);
        any = true;
        sums.l += weight;
        sums.l_tolerance += weight * (1e-4 + 2 * s_tolerance(row, int64_t(key)));
        sums.o += weight * stages_of(row).v.row(Eigen::Index(key)).transpose();
        const double rounded_as = p_.eight_bits ? std::max(weight, least_normal_fp8) : weight;
        sums.o_size += rounded_as * stages_of(row).v.row(Eigen::Index(key)).transpose().cwiseAbs();
      }
      if (!any) return {};  // what l and O are until a key has come is the kernel's affair
      found.push_back(sums);
      if (!known.in_base_2) break;
    }
    return found;
  }

  void sums(const Values& all, int sign) {
    for (const auto& [place, shown] : all) {
      const double got = sign * shown.value;
      const std::vector<Sums> wanted = sums_of(place.first);
      const bool right = std::any_of(wanted.begin(), wanted.end(),
                                     [&](const Sums& want) { return close(got, want.l, want.l_tolerance + 1e-6); });
      if (wanted.empty() ? std::isnan(got) : !right)
        return report("l", "differs", place, false, shown, got, wanted.empty() ? 0 : wanted.front().l);
    }
  }

  void outputs(const Values& all) {
    const double unit = p_.eight_bits ? fp8_rounding_unit : rounding_unit(p_.dtype);
    for (auto begin = all.begin(); begin != all.end();) {
      const int64_t row = begin->first.first;
      const auto end = all.lower_bound({row + 1, 0});
      const std::vector<Sums> wanted = sums_of(row);
      for (auto one = begin; one != end; ++one) {
        const auto column = one->first.second;
        const double got = one->second.value;
        if (column >= p_.v_dim()) continue;  // a kernel may fill the head dim up
        const bool right = std::any_of(wanted.begin(), wanted.end(), [&](const Sums& want) {
          return close(got, want.o(column), 4 * unit * want.o_size(column) + 1e-6);
        });
        if (wanted.empty() ? std::isnan(got) : !right)
          return report("O", "differs", one->first, true, one->second, got,
                        wanted.empty() ? 0 : wanted.front().o(column));
      }
      begin = end;
    }
  }

  // --- The backward, whose P is exp(S - LSE) ---

  void probabilities(const Values& all) {
    for (const auto& [place, shown] : all) {
      const double want = stages_of(place.first).forward.p(in_head(place.first), place.second);
      if (!close(shown.value, want, p_tolerance(place, want)))
        return report("P", "differs", place, true, shown, shown.value, want);
    }
  }

  void dp(const Values& all) {
    for (const auto& [place, shown] : all) {
      if (!sees(place.first, place.second)) continue;
      const Stages& of = stages_of(place.first);
      const double want = of.gradients.dp(in_head(place.first), place.second);
      if (!close(shown.value, want, of.dp_tolerance(in_head(place.first), place.second) + 1e-6))
        return report("dP", "differs", place, true, shown, shown.value, want);
    }
  }

  void ds(const Values& all) {
    for (const auto& [place, shown] : all) {
      const auto [row, column] = place;
      const Stages& of = stages_of(row);
      const int i = in_head(row);
      const double want = of.gradients.ds(i, column), weight = of.forward.p(i, column);
      const double terms = std::abs(of.gradients.dp(i, column)) + std::abs(of.gradients.d(i));
      const double tolerance = weight * (of.d_tolerance(i) + (8e-3 + 2 * s_tolerance(row, column)) * terms) + 1e-6;
      if (close(shown.value, want, tolerance)) continue;
      report("dS", "differs", place, true, shown, shown.value, want);
      if (const std::optional<double> d = implied_d(all, row)) {
        wrong->name = "delta", wrong->how = "implied", wrong->column = -1;
        wrong->got = *d, wrong->want = of.gradients.d(i);
      }
      return;
    }
  }

  // dS = P (dP - delta), with right P and dP: delta, if it is the same for all keys of the row.
  std::optional<double> implied_d(const Values& all, int64_t row) const {
    const Stages& of = stages_of(row);
    std::vector<double> found;
    double size = 0;
    for (auto one = all.lower_bound({row, 0}); one != all.end() && one->first.first == row; ++one) {
      const double weight = of.forward.p(in_head(row), one->first.second);
      const double dp = of.gradients.dp(in_head(row), one->first.second);
      if (weight < 1e-3) continue;
      found.push_back(dp - one->second.value / weight);
      size = std::max(size, std::abs(dp));
    }
    if (found.size() < 2) return {};
    const auto [least, most] = std::minmax_element(found.begin(), found.end());
    if (!(*most - *least <= 2e-2 * (size + std::abs(*most)))) return {};
    std::sort(found.begin(), found.end());
    return found[found.size() / 2];
  }

  Problem p_;
  std::vector<Stages> stages_;
  bool backward_;
  std::vector<bool> made_;                       // [B, H, Nq, Nk]: whether this launch has shown S there
  std::optional<Wrong> again_;                   // the first that it has shown for a second time
  std::map<int64_t, Row> rows_;                  // of this block
  std::map<int64_t, std::pair<int, int>> tile_;  // of this step: first and last key of each row
};

// JSON has no infinities.
void write(std::ostream& out, const char* name, double value) {
  out << ", \"" << name << "\": ";
  if (std::isfinite(value))
    out << std::setprecision(4) << value;
  else
    out << (std::isnan(value) ? "\"nan\"" : value > 0 ? "\"inf\"" : "\"-inf\"");
}

std::string json(const Problem& p, const Comparer& compared) {
  std::ostringstream out;
  out << "{\"right\": [";
  for (size_t i = 0; i < compared.right.size(); i++) out << (i ? ", " : "") << std::quoted(compared.right[i]);
  out << "]";
  if (const auto& wrong = compared.wrong) {
    const int head = int(wrong->row / p.seq_q);
    out << ", \"wrong\": {\"name\": " << std::quoted(wrong->name) << ", \"how\": " << std::quoted(wrong->how)
        << ", \"b\": " << head / p.heads << ", \"h\": " << head % p.heads << ", \"row\": " << wrong->row % p.seq_q;
    if (wrong->column >= 0) out << ", \"column\": " << wrong->column;
    if (wrong->keys.first >= 0) out << ", \"keys\": [" << wrong->keys.first << ", " << wrong->keys.second << "]";
    write(out, "got", wrong->got);
    write(out, "want", wrong->want);
    for (const auto& [name, text] : {std::pair("kernel", &compared.kernel),
                                     {"block", &compared.block},
                                     {"thread", &compared.thread},
                                     {"line", &compared.line}})
      out << ", \"" << name << "\": " << std::quoted(*text);
    out << "}";
  }
  out << "}";
  return out.str();
}

}  // namespace

std::string first_wrong_stage(const Problem& problem, const HostTensors& inputs, const ForwardResult& given,
                              const std::function<void()>& work) {
  if (!can_trace() || problem.packed || attention::extras(problem) & attention::blocks ||
      double(problem.lse_size()) * problem.seq_k > largest_problem)
    return "";
  simt::walk_begin({});
  try {
    work();
  } catch (...) {
    simt::walk_end();
    throw;
  }
  Comparer comparer(problem, make_stages(problem, inputs, given), !given.o.empty());
  for (const simt::LaunchWalk& launch : simt::walk_end()) {
    comparer.launch(launch);
    if (comparer.wrong) break;
  }
  return json(problem, comparer);
}

}  // namespace harness

#else

namespace harness {
std::string first_wrong_stage(const attention::Problem&, const HostTensors&, const ForwardResult&,
                              const std::function<void()>&) {
  return "";
}
}  // namespace harness

#endif
