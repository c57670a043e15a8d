// What a message says about threads that wait: who waits, in what, where, for what, and who is missing.
#include "simt/engine/wait.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <tuple>

#include "simt/engine/engine.h"

namespace simt {
namespace {

int count(const Lanes& lanes) {
  int count = 0;
  for (const unsigned mask : lanes) count += std::popcount(mask);
  return count;
}

Lanes both(Lanes lanes, const Lanes& others) {
  for (std::size_t warp = 0; warp < lanes.size(); ++warp) lanes[warp] &= others[warp];
  return lanes;
}

Lanes without(Lanes lanes, const Lanes& others) {
  for (std::size_t warp = 0; warp < lanes.size(); ++warp) lanes[warp] &= ~others[warp];
  return lanes;
}

std::string came(int arrived, int of) {
  return std::to_string(arrived) + " of " + std::to_string(of) + " threads have come";
}

}  // namespace

namespace {
std::string left_out_site;
}

int left_out_line = 0;

void read_left_out_line() {
  const char* const site = std::getenv("SIMT_WITHOUT");
  if (site == nullptr) return;
  left_out_site = site;
  left_out_line = std::atoi(left_out_site.c_str() + left_out_site.rfind(':') + 1);
}

bool is_left_out(const Site& site) { return text(site) == left_out_site; }

void BlockBarrier::reset() {
  waiting.clear();
  arrived = 0;
  divergent = false;
  yes = 0;
}

std::string BlockBarrier::what(const Worker& worker) const {
  const int live = count(worker.live_threads());
  return static_cast<int>(arrived) < live ? came(static_cast<int>(arrived), live) : "";
}

Lanes BlockBarrier::missing(const Worker& worker) const {
  return without(worker.live_threads(), worker.lanes(waiting));
}

void NamedBarrier::reset() {
  waiting.clear();
  arrived = 0;
  came.clear();
}

std::string NamedBarrier::what(const Worker& worker) const {
  return (number < 16 ? "barrier " + std::to_string(number) : std::string("a tile")) + ": " +
         simt::came(arrived, threads) + (count(missing(worker)) == 0 ? ", and the block has no others" : "");
}

Lanes NamedBarrier::missing(const Worker& worker) const {
  Lanes missing = without(worker.all_threads(), worker.lanes(came));
  if (number < 16) return missing;
  const unsigned size = max_block_threads / std::bit_floor(unsigned(number - 16));
  for (unsigned warp = 0; warp < max_warps; ++warp)
    if (of_tile(warp * 32, size) != number) missing[warp] = 0;
  return missing;
}

void ClusterBarrier::reset() {
  next_phase();
  not_waited.clear();
}

void ClusterBarrier::next_phase() {
  came.clear();
  waiting.clear();
  arrived = 0;
}

std::string ClusterBarrier::what(const Worker& worker) const {
  int came = 0, live = 0;
  for (const Worker* each : worker.cluster()) {
    came += static_cast<int>(each->cluster_arrivals());
    live += count(each->live_threads());
  }
  return std::to_string(came) + " of " + std::to_string(live) + " threads of the cluster have come";
}

Lanes ClusterBarrier::missing(const Worker& worker) const { return without(worker.live_threads(), worker.lanes(came)); }

void Collective::starts(const char* name, unsigned warp, unsigned mask, Compute compute, bool all_must_come) {
  this->orders = compute == nullptr ? Orders::lanes : Orders::nothing;
  this->all_must_come = all_must_come;
  this->mask = mask;
  this->arrived = 0;
  this->warp = warp;
  this->name = name;
  this->compute = compute;
}

std::string Collective::what(const Worker&) const { return "mask " + mask_text(mask); }

Lanes Collective::missing(const Worker&) const {
  Lanes lanes = {};
  lanes[warp] = mask & ~arrived;
  return lanes;
}

std::string Word::what(const Worker&) const {
  return "the value is " + std::to_string(*word) + ", and no block that has started is left to make it " +
         std::to_string(value);
}

Lanes Worker::lanes(const ThreadSet& threads) const {
  Lanes lanes = {};
  for (unsigned warps = threads.warps; warps != 0; warps &= warps - 1) {
    const unsigned w = std::countr_zero(warps);
    for (unsigned rest = threads.positions[w]; rest != 0; rest &= rest - 1)
      lanes[warps_[w].number] |= 1u << threads_[w * 32 + std::countr_zero(rest)].lane;
  }
  return lanes;
}

Lanes Worker::live_threads() const {
  Lanes lanes = {};
  for (unsigned w = 0; w < warp_count_; ++w) lanes[warps_[w].number] = warps_[w].live;
  return lanes;
}

Lanes Worker::waiting_threads() const {
  Lanes lanes = {};
  for (unsigned w = 0; w < warp_count_; ++w)
    for (const Thread* thread : warps_[w].lanes)
      if (thread != nullptr && thread->fiber != nullptr && thread->wait != nullptr &&
          !(warps_[w].ready >> thread->position & 1))
        lanes[warps_[w].number] |= 1u << thread->lane;
  return lanes;
}

Lanes Worker::all_threads() const {
  Lanes lanes = {};
  for (unsigned w = 0; w < warp_count_; ++w)
    for (unsigned lane = 0; lane < 32; ++lane)
      lanes[warps_[w].number] |= unsigned(warps_[w].lanes[lane] != nullptr) << lane;
  return lanes;
}

// "warps 0-1 wait", or "lane 3 of warp 0 waits", or else "58 threads (first: (3, 0, 0)) wait".
std::string Worker::who(const Lanes& threads, const char* singular, const char* plural) const {
  const Lanes all = all_threads();
  unsigned warps = 0;
  bool whole = true;
  for (unsigned warp = 0; warp < max_warps; ++warp) {
    if (threads[warp] == 0) continue;
    warps |= 1u << warp;
    whole = whole && threads[warp] == all[warp];
  }
  const unsigned first = std::countr_zero(warps);
  if (whole) return numbers_text("warp", warps) + (std::has_single_bit(warps) ? singular : plural);
  if (std::has_single_bit(warps))
    return numbers_text("lane", threads[first]) + " of warp " + std::to_string(first) +
           (std::has_single_bit(threads[first]) ? singular : plural);
  return std::to_string(count(threads)) +
         " threads (first: " + text(index_of(first * 32 + std::countr_zero(threads[first]), launch_->block)) + ")" +
         plural;
}

// " (64 of 96 threads have come; warp 2 waits elsewhere; warp 3 has returned)".
std::string Worker::reason(const Awaited& awaited) const {
  const std::string what = awaited.what(*this);
  if (what.empty()) return "";
  const Lanes missing = awaited.missing(*this), waiting = waiting_threads(), live = live_threads(), all = all_threads();
  std::string result = " (" + what;
  const auto add = [&](const Lanes& threads, const char* singular, const char* plural) {
    if (count(threads) > 0) result += "; " + who(threads, singular, plural);
  };
  add(both(missing, waiting), " waits elsewhere", " wait elsewhere");
  add(both(without(missing, waiting), live), " has not come", " have not come");
  add(both(without(missing, live), all), " has returned", " have returned");
  add(without(missing, all), " is not in the block", " are not in the block");
  return result + ")";
}

// Groups of threads with the same wait, in the order of their first threads: for this, or for anything if it is null.
std::string Worker::who_waits(const Awaited* awaited) const {
  std::array<const Warp*, max_warps> warps = {};
  for (unsigned w = 0; w < warp_count_; ++w) warps[warps_[w].number] = &warps_[w];
  struct Group {
    std::string wait;
    Lanes threads;
  };
  std::vector<Group> groups;
  std::map<const Awaited*, std::string> reasons;  // both are kept because they take a while to find out
  std::map<std::tuple<const void*, const char*, int>, std::string> places;
  const Lanes waiting = waiting_threads();
  for (unsigned w = 0; w < warp_count_; ++w)
    for (unsigned rest = waiting[w]; rest != 0; rest &= rest - 1) {
      const Thread* thread = warps[w]->lanes[std::countr_zero(rest)];
      if (awaited != nullptr && thread->awaited != awaited) continue;
      const Wait& wait = *thread->wait;
      const auto [place, new_place] = places.try_emplace({wait.site.return_address, wait.site.file, wait.site.line});
      if (new_place) {
        const std::string line = text(wait.site);
        place->second = line;
        // Two calls on one line. (Where kernels are not traced, g++ may have made two of one.)
        for (int call = 2;
             !observers_.empty() &&
             std::any_of(places.begin(), places.end(),
                         [&](const auto& other) { return &other != &*place && other.second == place->second; });
             ++call)
          place->second = line + " (call " + std::to_string(call) + " of that line)";
      }
      const auto [why, new_reason] = reasons.try_emplace(thread->awaited);
      if (new_reason) why->second = reason(*thread->awaited);
      const std::string words = std::string(" in ") + wait.name + " at " + place->second + why->second;
      auto group = std::find_if(groups.begin(), groups.end(), [&](const Group& g) { return g.wait == words; });
      if (group == groups.end()) group = groups.insert(group, {words, {}});
      group->threads[w] |= 1u << thread->lane;
    }
  std::string result;
  constexpr std::size_t most = 6;
  for (std::size_t i = 0; i < std::min(most, groups.size()); ++i)
    result += (i > 0 ? "; " : "") + who(groups[i].threads, " waits", " wait") + groups[i].wait;
  if (groups.size() > most) result += "; and " + std::to_string(groups.size() - most) + " more groups";
  return result;
}

void Worker::never_complete(const Warp& warp, const Collective& collective) {
  const Thread& first = *warp.lanes[std::countr_zero(collective.arrived)];
  Lanes arrived = {};
  arrived[warp.number] = collective.arrived;
  fail(cudaErrorLaunchFailure, &first, text(first.wait->site),
       std::string(collective.name) + " waits for lanes that never come: " + who(arrived, " waits", " wait") +
           reason(collective));
}

void Worker::not_in_mask(const Wait& wait, unsigned mask) {
  fail(cudaErrorLaunchFailure, current_, text(wait.site),
       std::string(wait.name) + " with mask " + mask_text(mask) + ", which does not name the calling lane " +
           std::to_string(current_->lane));
}

std::string Worker::absence(int lane, unsigned mask) const {
  if (!(mask >> lane & 1)) return "the mask " + mask_text(mask) + " does not name it";
  if (warps_[current_->warp].lanes[lane] == nullptr) return "the block has no such thread";
  return "it has returned without it, as a lane does that leaves a loop early or skips a branch";  // a lane that waits
                                                                                                   // is waited for
}

void Worker::different_collectives(const Warp& warp, const Collective& waiting, const Wait& wait) {
  const Thread& other = *warp.lanes[std::countr_zero(waiting.arrived)];
  fail(cudaErrorLaunchFailure, current_, text(wait.site),
       std::string("the lanes of a warp have parted: lane ") + std::to_string(current_->lane) + " calls " + wait.name +
           " with mask " + mask_text(waiting.mask) + ", while " + numbers_text("lane", waiting.arrived) +
           (std::has_single_bit(waiting.arrived) ? " of that mask waits in " : " of that mask wait in ") +
           waiting.name + " at " + text(other.wait->site) + "; all lanes that a mask names must come to the same call");
}

void Worker::deadlock() {
  fail(cudaErrorLaunchTimeout, nullptr, "", "deadlock: every thread of the block waits: " + who_waits());
}

void Worker::deadlock_of_cluster() {
  std::string who;
  for (const Worker* each : cluster())
    if (each->live_ != 0) who += (who.empty() ? "block " : "; block ") + text(each->index_) + ": " + each->who_waits();
  fail(cudaErrorLaunchTimeout, nullptr, "", "deadlock: every thread of the cluster waits: " + who);
}

}  // namespace simt
