// How rows that are touched become steps, and steps JSON.
#include "simt/walk.h"

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <memory>
#include <ostream>

#include "simt/engine.h"
#include "simt/walk_recorder.h"

namespace simt {
namespace {

std::unique_ptr<WalkRecorder> recorder;  // launches do not overlap

Ranges ranges_of(std::vector<std::size_t>& rows) {
  std::sort(rows.begin(), rows.end());
  Ranges ranges;
  for (const std::size_t row : rows)
    if (!ranges.empty() && ranges.back().second + 1 == row)
      ++ranges.back().second;
    else
      ranges.push_back({row, row});
  return ranges;
}

}  // namespace

const char* name(Move move) {
  static const char* const names[] = {"read", "written", "started", "landed"};
  return names[static_cast<int>(move)];
}

WalkRecorder* walk_recorder() { return recorder.get(); }

void walk_begin(std::vector<Tensor> tensors) { recorder = std::make_unique<WalkRecorder>(std::move(tensors)); }

std::vector<LaunchWalk> walk_end() {
  std::vector<LaunchWalk> launches = recorder->take();
  recorder.reset();
  return launches;
}

WalkRecorder::WalkRecorder(std::vector<Tensor> tensors) : tensors_(std::move(tensors)), rows_(tensors_.size()) {
  for (std::size_t i = 0; i < tensors_.size(); ++i)
    for (Rows& rows : rows_[i]) rows.last_step.resize(tensors_[i].rows);
}

void WalkRecorder::launch_begins(const Launch& launch) {
  current_ = {};
  current_.grid = launch.grid;
  current_.block = launch.block;
  current_.dynamic_shared_bytes = launch.shared_bytes;
  before_ = {};
}

void WalkRecorder::block_begins(uint3 index) { current_.blocks.push_back({index, {}}); }

void WalkRecorder::moves(Move move, std::uintptr_t address, std::size_t bytes) {
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    const Tensor& tensor = tensors_[i];
    const std::uintptr_t offset = address - reinterpret_cast<std::uintptr_t>(tensor.data);
    if (offset >= tensor.rows * tensor.row_bytes) continue;
    Rows& rows = rows_[i][static_cast<int>(move)];
    const std::size_t last = std::min((offset + bytes - 1) / tensor.row_bytes, tensor.rows - 1);
    for (std::size_t row = offset / tensor.row_bytes; row <= last; ++row)
      if (std::exchange(rows.last_step[row], step_) != step_) rows.of_this_step.push_back(row);
    return;
  }
}

void WalkRecorder::watch(const char* name, std::int64_t row, std::int64_t column, float value) {
  watched_[name][{row, column}] = value;
}

void WalkRecorder::watch_share(unsigned thread, const char* name, std::int64_t row, std::int64_t column, float share) {
  shares_[name][{row, column}][thread] = share;
}

void WalkRecorder::step_ends(const std::string& until, const Work& work) {
  for (const auto& [name, places] : shares_)
    for (const auto& [place, shares] : places)
      for (const auto& [thread, share] : shares) watched_[name][place] += share;
  shares_.clear();
  Step step = {until, {}, work - before_, std::move(watched_)};
  watched_.clear();
  before_ = work;
  for (std::size_t i = 0; i < tensors_.size(); ++i)
    for (int move = 0; move < move_count; ++move)
      if (auto& rows = rows_[i][move].of_this_step; !rows.empty()) {
        step.moved.push_back({i, static_cast<Move>(move), ranges_of(rows)});
        rows.clear();
      }
  ++step_;
  current_.blocks.back().steps.push_back(std::move(step));
}

void WalkRecorder::launch_ends(const std::string& kernel) {
  current_.kernel = kernel;
  launches_.push_back(std::move(current_));
}

namespace {

// JSON knows no infinities and no NaN.
void write_number(std::ostream& out, float value) {
  if (std::isfinite(value))
    out << std::setprecision(5) << value;
  else
    out << (std::isnan(value) ? "\"nan\"" : value > 0 ? "\"inf\"" : "\"-inf\"");
}

// {"m": [[row, first column, [values of consecutive columns]], ..]}
void write_watched(std::ostream& out, const Watched& watched) {
  out << ",\"watched\":{";
  const char* comma = "";
  for (const auto& [name, values] : watched) {
    out << comma << std::quoted(name) << ":[";
    std::pair<std::int64_t, std::int64_t> next = {-1, -1};
    for (const auto& [place, value] : values) {
      if (place == next)
        out << ",";
      else
        out << (next.first < 0 ? "[" : "]],[") << place.first << "," << place.second << ",[";
      write_number(out, value);
      next = {place.first, place.second + 1};
    }
    out << "]]]";
    comma = ",";
  }
  out << "}";
}

// {"until": "05_online_softmax/2_tiles.cu:140", "read": {"K": [[0, 63]]}, "work": [..]}; what is empty is left out.
void write_step(std::ostream& out, const std::vector<Tensor>& tensors, const Step& step) {
  const Work& work = step.work;
  out << "{\"until\":" << std::quoted(step.until) << ",\"work\":[" << work.asked << "," << work.block << ","
      << work.launch << "," << work.shared << "," << work.matrix_flops << "," << work.shuffles << "]";
  for (int move = 0; move < move_count; ++move) {
    const char* comma = "";
    for (const RowsMoved& moved : step.moved) {
      if (static_cast<int>(moved.move) != move) continue;
      if (*comma == 0) out << ",\"" << name(moved.move) << "\":{";
      out << comma << std::quoted(tensors[moved.tensor].name) << ":[";
      comma = "";
      for (const auto& [first, last] : moved.rows) {
        out << comma << "[" << first << "," << last << "]";
        comma = ",";
      }
      out << "]";
      comma = ",";
    }
    if (*comma != 0) out << "}";
  }
  if (!step.watched.empty()) write_watched(out, step.watched);
  out << "}";
}

}  // namespace

void write_json(std::ostream& out, const std::vector<Tensor>& tensors, const std::vector<LaunchWalk>& launches) {
  out << "[";
  const char* comma = "";
  for (const LaunchWalk& launch : launches) {
    out << comma << "{\"kernel\":" << std::quoted(launch.kernel) << ",\"grid\":[" << launch.grid.x << ","
        << launch.grid.y << "," << launch.grid.z << "],\"block\":[" << launch.block.x << "," << launch.block.y << ","
        << launch.block.z << "],\"dynamic_shared_bytes\":" << launch.dynamic_shared_bytes << ",\"blocks\":[";
    comma = "";
    for (const BlockWalk& block : launch.blocks) {
      out << comma << "\n{\"block\":[" << block.index.x << "," << block.index.y << "," << block.index.z
          << "],\"steps\":[";
      comma = "";
      for (const Step& step : block.steps) {
        out << comma;
        write_step(out, tensors, step);
        comma = ",";
      }
      out << "]}";
      comma = ",";
    }
    out << "]}";
    comma = ",\n";
  }
  out << "]";
}

}  // namespace simt
