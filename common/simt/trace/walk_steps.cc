#include "simt/trace/walk_steps.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace simt {
namespace {

Ranges ranges_of(RowList rows) {
  std::sort(rows.begin(), rows.end());
  Ranges ranges;
  for (const std::size_t row : rows)
    if (!ranges.empty() && ranges.back().second + 1 >= row)
      ranges.back().second = row;
    else
      ranges.push_back({row, row});
  return ranges;
}

void append(RowList& to, const RowList& rows) { to.insert(to.end(), rows.begin(), rows.end()); }
void append(WarpStep::Moved& to, const WarpStep::Moved& moved) {
  append(to.rows, moved.rows);
  to.of_row.add(moved.of_row);
}

}  // namespace

void show(Elements& elements, std::pair<std::int64_t, std::int64_t> place, const Shown& shown) {
  const auto [found, is_new] = elements.try_emplace(place, shown);
  if (is_new) return;
  Shown last = std::move(found->second);
  std::vector<Shown> others = std::move(last.others);
  last.others.clear();
  if (last.thread != shown.thread) others.push_back(std::move(last));
  std::erase_if(others, [&](const Shown& other) { return other.thread == shown.thread; });
  others.insert(others.end(), shown.others.begin(), shown.others.end());
  found->second = {shown.value, shown.thread, shown.pc, std::move(others)};
}

namespace {

// Or nothing but shuffles, by which a warp's lanes tell one another which warp they are.
bool does_nothing(const WarpStep& step) {
  Work work = step.work;
  work.shuffles = 0;
  return step.arrives.empty() && step.moved.empty() && step.fills.empty() && step.uses.empty() && step.writes.empty() &&
         step.sends.empty() && work == Work() && step.watched.empty() && step.shares.empty();
}

// What warps did in steps of theirs, as one.
WarpStep together(const std::vector<const WarpStep*>& steps) {
  WarpStep sum = *steps.front();
  for (const WarpStep* step : steps) {
    if (step == steps.front()) continue;
    sum.number = std::min(sum.number, step->number);
    sum.work += step->work;
    sum.arrives.insert(step->arrives.begin(), step->arrives.end());
    sum.writes.insert(step->writes.begin(), step->writes.end());
    sum.sends.insert(step->sends.begin(), step->sends.end());
    for (const auto& [key, moved] : step->moved) append(sum.moved[key], moved);
    for (const auto& [key, rows] : step->uses) append(sum.uses[key], rows);
    for (const auto& [key, rows] : step->products) {
      append(sum.products[key].first, rows.first);
      append(sum.products[key].second, rows.second);
    }
    for (const auto& [key, fill] : step->fills) {
      const auto [place, is_new] = sum.fills.try_emplace(key, fill);
      if (!is_new) append(place->second.rows, fill.rows);
    }
    for (const auto& [name, values] : step->watched)
      for (const auto& [place, shown] : values) show(sum.watched[name], place, shown);
    for (const auto& [name, places] : step->shares)
      for (const auto& [place, shares] : places) sum.shares[name][place].insert(shares.begin(), shares.end());
  }
  for (const auto& [name, places] : sum.shares)
    for (const auto& [place, shares] : places)
      for (const auto& [thread, share] : shares) {
        Shown& all = sum.watched[name][place];
        all = {all.value + share.value, thread, share.pc};
      }
  return sum;
}

Step step_of(WarpStep did) {
  Step step;
  for (auto& [key, moved] : did.moved)
    step.moved.push_back({key.first, key.second, ranges_of(std::move(moved.rows)), moved.of_row});
  for (auto& [key, fill] : did.fills)
    step.fills.push_back({{key.first, key.second, ranges_of(std::move(fill.rows))}, fill.gate, fill.phase});
  for (auto& [key, rows] : did.uses) step.uses.push_back({key.first, key.second, ranges_of(std::move(rows))});
  for (auto& [key, rows] : did.products)
    step.products.push_back(
        {key.first, key.second, ranges_of(std::move(rows.first)), ranges_of(std::move(rows.second))});
  step.arrives = std::move(did.arrives);
  step.writes = std::move(did.writes);
  step.sends = std::move(did.sends);
  step.name = did.name;
  step.work = did.work;
  step.watched = std::move(did.watched);
  return step;
}

// Warps that wait for the same and name the same, one after the other: the first of them and the last.
using Party = std::pair<unsigned, unsigned>;

bool wait_for_the_same(const WarpSteps& a, const WarpSteps& b) {
  return std::equal(a.steps.begin(), a.steps.end(), b.steps.begin(), b.steps.end(),
                    [](const WarpStep& x, const WarpStep& y) {
                      return x.is_marked == y.is_marked && x.name == y.name && x.gate == y.gate && x.phase == y.phase &&
                             x.line == y.line;
                    });
}

// Of a warpgroup each; or one, if the whole block is one. A warp that does nothing and waits for nothing is in none.
std::vector<Party> parties_of(const std::vector<WarpSteps>& warps) {
  std::vector<Party> parties;
  bool all = true;
  for (unsigned warp = 0; warp < warps.size(); ++warp) {
    if (std::none_of(warps[warp].steps.begin(), warps[warp].steps.end(),
                     [](const WarpStep& step) { return !step.line.empty() || !does_nothing(step); }))
      continue;
    const bool same = !parties.empty() && wait_for_the_same(warps[parties.back().first], warps[warp]);
    all = all && (same || parties.empty());
    if (same && parties.back().second + 1 == warp && warp % 4 != 0)
      parties.back().second = warp;
    else
      parties.push_back({warp, warp});
  }
  return all ? std::vector<Party>{{0, static_cast<unsigned>(warps.size()) - 1}} : parties;
}

// A step of a party before it is known where it stands.
struct Draft {
  Party party;
  std::size_t index;  // among its warps' steps
  bool nothing;       // it only waits: the next one of the party waits for that, too
  WarpStep did;
  std::size_t begins = 0;  // how many steps have to come before
  std::size_t ends() const { return begins + !nothing; }
};

std::vector<Draft> drafts_of(const std::vector<WarpSteps>& warps) {
  std::vector<Draft> drafts;
  for (const Party& party : parties_of(warps)) {
    std::size_t count = 0;
    for (unsigned warp = party.first; warp <= party.second; ++warp) count = std::max(count, warps[warp].steps.size());
    for (std::size_t index = 0; index < count; ++index) {
      std::vector<const WarpStep*> steps;
      for (unsigned warp = party.first; warp <= party.second; ++warp)
        if (index < warps[warp].steps.size()) steps.push_back(&warps[warp].steps[index]);
      WarpStep did = together(steps);
      // What is named is a step even if nothing of it is seen, unless it goes on after a wait.
      const bool goes_on = index + 1 < count && !(did.is_marked && warps[party.first].steps[index + 1].is_marked);
      const bool nothing = goes_on && does_nothing(did);
      drafts.push_back({party, index, nothing, std::move(did)});
    }
  }
  return drafts;
}

// Each after those of its party and those for which it waited, and otherwise as early as can be.
void put_in_order(std::vector<Draft>& drafts, const Gates& gates, const StepsSoFar& so_far) {
  // Whoever waits began that step later than those it waited for began theirs.
  std::sort(drafts.begin(), drafts.end(), [](const Draft& a, const Draft& b) { return a.did.number < b.did.number; });
  std::map<Phase::Arrival, std::size_t> ends;
  for (Draft& draft : drafts) {
    draft.begins = so_far.at;
    const auto comes_after = [&](const Phase::Arrival& arrival) {
      if (const auto found = ends.find(arrival); found != ends.end())
        draft.begins = std::max(draft.begins, found->second);
    };
    if (draft.index > 0) {
      comes_after({so_far.barriers, draft.party.first, draft.index - 1});
      if (!draft.did.is_marked)
        for (const Phase::Arrival& arrival : gates.at(draft.did.gate)[draft.did.phase].arrivals) comes_after(arrival);
    }
    for (unsigned warp = draft.party.first; warp <= draft.party.second; ++warp)
      ends[{so_far.barriers, warp, draft.index}] = draft.ends();
  }
  std::sort(drafts.begin(), drafts.end(), [](const Draft& a, const Draft& b) {
    return std::tie(a.begins, a.party, a.index) < std::tie(b.begins, b.party, b.index);
  });
}

// What warps do until one of them names a step that is not here yet.
struct Part {
  std::vector<const WarpStep*> did;
  std::vector<Phase::Arrival> of;
};

// Warps may leave out what others name.
std::vector<Part> parts_of(const std::vector<WarpSteps>& warps, std::size_t barriers) {
  std::vector<Part> parts(1);
  for (unsigned warp = 0; warp < warps.size(); ++warp) {
    auto part = parts.begin();
    for (std::size_t index = 0; index < warps[warp].steps.size(); ++index) {
      const WarpStep& step = warps[warp].steps[index];
      if (step.is_marked) {
        const auto same =
            std::find_if(part + 1, parts.end(), [&](const Part& each) { return each.did.front()->name == step.name; });
        part = same != parts.end() ? same : parts.insert(part + 1, Part());
      }
      part->did.push_back(&step);
      part->of.push_back({barriers, warp, index});
    }
  }
  return parts;
}

// Nobody waits at an mbarrier: what all did under a name is one step.
std::vector<Step> steps_by_name(const std::vector<WarpSteps>& warps, StepsSoFar& so_far) {
  std::vector<Step> steps;
  Work before;  // of parts that are no steps: nothing was done, and what follows has the name, too
  const std::vector<Part> parts = parts_of(warps, so_far.barriers);
  for (const Part& part : parts) {
    WarpStep did = together(part.did);
    for (const Phase::Arrival& arrival : part.of) so_far.became[arrival] = so_far.steps;
    did.work += std::exchange(before, {});
    const bool is_last = &part == &parts.back();
    if (does_nothing(did) && (did.is_marked ? is_last && !steps.empty() : !is_last)) {
      before = did.work;
      continue;
    }
    steps.push_back(step_of(std::move(did)));
    steps.back().at = so_far.at++;
    ++so_far.steps;
  }
  steps.back().work += before;
  return steps;
}

// What a party has waited for since its last step, and what belongs to its next one with that.
struct Before {
  std::vector<Waited> after;
  std::map<std::size_t, WarpStep::Moved> landed;  // by tensor
  Work work;
};

void wait_for(const Draft& draft, const Phase& phase, const StepsSoFar& so_far, Before& before) {
  Waited& waited = before.after.emplace_back(Waited{draft.did.gate, draft.did.phase, draft.did.line, {}});
  for (const auto& [tensor, moved] : phase.copied) append(before.landed[tensor], moved);
  for (const Phase::Arrival& arrival : phase.arrivals) {
    const bool own =
        arrival.barriers == so_far.barriers && draft.party.first <= arrival.warp && arrival.warp <= draft.party.second;
    if (const auto found = so_far.became.find(arrival); !own && found != so_far.became.end())
      waited.steps.insert(found->second);
  }
}

}  // namespace

std::vector<Step> steps_of(const std::vector<WarpSteps>& warps, const Gates& gates, StepsSoFar& so_far) {
  if (std::none_of(warps.begin(), warps.end(), [](const WarpSteps& warp) { return warp.waits_at_mbarriers; }))
    return steps_by_name(warps, so_far);
  const Party everybody = {0, static_cast<unsigned>(warps.size()) - 1};
  std::vector<Draft> drafts = drafts_of(warps);
  put_in_order(drafts, gates, so_far);
  std::vector<Step> steps;
  std::map<Party, Before> of_parties;
  for (Draft& draft : drafts) {
    Before& before = of_parties[draft.party];
    before.work += draft.did.work;
    if (draft.index > 0 && !draft.did.is_marked)
      wait_for(draft, gates.at(draft.did.gate)[draft.did.phase], so_far, before);
    if (draft.nothing) continue;
    for (unsigned warp = draft.party.first; warp <= draft.party.second; ++warp)
      so_far.became[{so_far.barriers, warp, draft.index}] = so_far.steps;
    ++so_far.steps;
    so_far.at = std::max(so_far.at, draft.ends());
    for (const auto& [tensor, moved] : before.landed) append(draft.did.moved[{tensor, Move::landed}], moved);
    Step& step = steps.emplace_back(step_of(std::move(draft.did)));
    step.at = draft.begins;
    if (draft.party != everybody) step.by = draft.party;
    step.after = std::move(before.after);
    step.work = before.work;
    before = {};
  }
  return steps;
}

}  // namespace simt
