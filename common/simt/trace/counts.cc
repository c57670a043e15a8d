// The launches between trace_begin() and trace_end(): their source lines, looked up once at the end, and their JSON.
#include "simt/trace/counts.h"

#include <algorithm>
#include <iomanip>
#include <map>
#include <memory>
#include <ostream>
#include <tuple>
#include <utility>

#include "simt/engine/diagnosis.h"
#include "simt/trace/counter.h"

namespace simt {
namespace {

// Of every trace_begin() whose trace_end() has not come yet. They outlive every static object that launches in its
// destructor.
std::vector<std::unique_ptr<Counter>>& counters() {
  static auto& open = *new std::vector<std::unique_ptr<Counter>>;
  return open;
}

struct Place {
  std::string line, within;
};

// An instruction's lines from the innermost inlined function out: the kernel's own line is the outermost one.
Place place_of(const std::vector<std::string>& frames) {
  std::vector<std::string> sources;
  for (const std::string& frame : frames)
    if (!is_header(frame.substr(0, frame.rfind(':')))) sources.push_back(frame);
  if (sources.empty()) return {frames.empty() ? "" : frames.back(), ""};
  return {sources.back(), sources.front() == sources.back() ? "" : sources.front()};
}

}  // namespace

const char* name(Op op) {
  static const char* const names[] = {"global_load", "global_store", "global_atomic", "copy_load",    "bulk_load",
                                      "bulk_store",  "bulk_add",     "shared_load",   "shared_store", "shared_atomic",
                                      "copy_store",  "ldmatrix",     "wgmma",         "distributed"};
  return names[static_cast<int>(op)];
}

Counts& Counts::operator+=(const Counts& other) {
  requests += other.requests;
  bytes += other.bytes;
  lane_bytes += other.lane_bytes;
  units += other.units;
  ideal += other.ideal;
  lines += other.lines;
  neighbours += other.neighbours;
  return *this;
}

Counter* trace_counter() { return counters().empty() ? nullptr : counters().back().get(); }

void trace_begin() {
  add(*counters().emplace_back(std::make_unique<Counter>()));
  writes_are_told = true;
}

void trace_add(LaunchCounts launch) {
  counters().back()->launches.push_back(std::move(launch));
  counters().back()->by_instruction.emplace_back();
}

std::vector<LaunchCounts> trace_end() {
  if (counters().empty()) return {};
  const std::unique_ptr<Counter> ended = std::move(counters().back());
  counters().pop_back();
  remove(*ended);
  writes_are_told = !counters().empty();
  std::map<const void*, Place> places;
  for (const auto& counted : ended->by_instruction)
    for (const InstructionCounts& each : counted) places[each.pc];
  std::vector<const void*> instructions;
  for (const auto& [pc, place] : places) instructions.push_back(static_cast<const char*>(pc) - 1);
  const auto frames = source_lines(instructions);
  std::size_t next = 0;
  for (auto& [pc, place] : places) place = place_of(frames[next++]);

  for (std::size_t i = 0; i < ended->launches.size(); ++i) {
    std::map<std::tuple<std::string, std::string, Op>, Counts> by_line;
    for (const InstructionCounts& each : ended->by_instruction[i]) {
      const Place& place = places[each.pc];
      by_line[{place.line, place.within, each.op}] += each.counts;
    }
    auto& lines = ended->launches[i].lines;
    for (const auto& [key, counts] : by_line)
      lines.push_back({std::get<0>(key), std::get<1>(key), std::get<2>(key), counts});
    std::stable_sort(lines.begin(), lines.end(), [](auto& a, auto& b) { return a.counts.units > b.counts.units; });
  }
  return std::move(ended->launches);
}

namespace {

void write_counts(std::ostream& out, Op op, const Counts& counts) {
  out << "\"requests\": " << counts.requests << ", \"bytes\": " << counts.bytes << ", "
      << (is_global(op) ? "\"sectors\": " : "\"wavefronts\": ") << counts.units << ", \"ideal\": " << counts.ideal;
  if (is_global(op)) out << ", \"lines\": " << counts.lines;
}

void write_traffic(std::ostream& out, const Traffic& traffic) {
  out << "{\"warps\": " << traffic.warps << ", \"blocks\": " << traffic.blocks << ", \"launch\": " << traffic.launch
      << "}";
}

void write_launch(std::ostream& out, const LaunchCounts& launch) {
  out << "{\"kernel\": " << std::quoted(launch.kernel) << ",\n \"grid\": [" << launch.grid.x << ", " << launch.grid.y
      << ", " << launch.grid.z << "], \"block\": [" << launch.block.x << ", " << launch.block.y << ", "
      << launch.block.z << "], \"dynamic_shared_bytes\": " << launch.dynamic_shared_bytes
      << ", \"barriers\": " << launch.barriers << ", \"shuffles\": " << launch.shuffles
      << ", \"matrix_flops\": " << launch.matrix_flops;
  if (launch.cluster.x * launch.cluster.y * launch.cluster.z > 1)
    out << ", \"cluster\": [" << launch.cluster.x << ", " << launch.cluster.y << ", " << launch.cluster.z << "]";
  if (launch.matrix_flops_alone) out << ", \"matrix_flops_alone\": " << *launch.matrix_flops_alone;
  const ForExercises& more = launch.for_exercises;
  out << ",\n \"for_exercises\": {\"votes_alone\": " << more.votes_alone
      << ", \"flops_out_of_turn\": " << more.flops_out_of_turn
      << ", \"flops_ended_in_turn\": " << more.flops_ended_in_turn << ", \"bytes_alone\": " << more.bytes_alone
      << ", \"bytes_before_release\": " << more.bytes_before_release
      << ", \"waits_for_all_products\": " << more.waits_for_all_products
      << ", \"stores_waited_out\": " << more.stores_waited_out
      << ", \"accesses_of_a_thread\": " << more.accesses_of_a_thread
      << ", \"flops_of_a_block\": " << more.flops_of_a_block << ", \"copies_alone\": " << more.copies_alone
      << ", \"comparisons_after_votes\": " << more.comparisons_after_votes
      << ", \"bytes_after_votes\": " << more.bytes_after_votes << "}";
  out << ",\n \"bytes\": {\"read\": ";
  write_traffic(out, launch.read);
  out << ", \"written\": ";
  write_traffic(out, launch.written);
  out << "},\n \"totals\": {";
  const char* comma = "";
  for (int i = 0; i < op_count; ++i) {
    if (launch.totals[i].requests == 0) continue;
    const Op op = static_cast<Op>(i);
    out << comma << "\"" << name(op) << "\": {";
    write_counts(out, op, launch.totals[i]);
    out << "}";
    comma = ",\n  ";
  }
  out << "},\n \"lines\": [";
  comma = "";
  for (const LineCounts& line : launch.lines) {
    out << comma << "{\"line\": " << std::quoted(line.line) << ", \"within\": " << std::quoted(line.within)
        << ", \"op\": \"" << name(line.op) << "\", ";
    write_counts(out, line.op, line.counts);
    out << ", \"lane_bytes\": " << line.counts.lane_bytes;
    if (line.counts.neighbours > 0) out << ", \"neighbours\": " << line.counts.neighbours;
    out << "}";
    comma = ",\n  ";
  }
  out << "]}";
}

}  // namespace

void write_json(std::ostream& out, const std::vector<LaunchCounts>& launches) {
  out << "[";
  const char* comma = "";
  for (const LaunchCounts& launch : launches) {
    out << comma;
    write_launch(out, launch);
    comma = ",\n";
  }
  out << "]";
}

}  // namespace simt
