// Steps as JSON.
#include "simt/trace/walk.h"

#include <cmath>
#include <iomanip>
#include <ostream>
#include <utility>

namespace simt {

const char* name(Move move) {
  static const char* const names[] = {"read", "written", "started", "landed"};
  return names[static_cast<int>(move)];
}

namespace {

// JSON knows no infinities and no NaN.
void write_number(std::ostream& out, float value) {
  if (std::isfinite(value))
    out << std::setprecision(5) << value;
  else
    out << (std::isnan(value) ? "\"nan\"" : value > 0 ? "\"inf\"" : "\"-inf\"");
}

// [[row, first column, [what `write` makes of consecutive columns]], ..]
void write_elements(std::ostream& out, const Elements& elements, const auto& write) {
  out << "[";
  std::pair<std::int64_t, std::int64_t> next = {-1, -1};
  for (const auto& [place, shown] : elements) {
    if (place == next)
      out << ",";
    else
      out << (next.first < 0 ? "[" : "]],[") << place.first << "," << place.second << ",[";
    write(shown);
    next = {place.first, place.second + 1};
  }
  out << "]]]";
}

// {"m": elements, ..}
void write_watched(std::ostream& out, const Watched& watched) {
  out << ",\"watched\":{";
  const char* comma = "";
  for (const auto& [name, values] : watched) {
    out << comma << std::quoted(name) << ":";
    write_elements(out, values, [&](const Shown& shown) { write_number(out, shown.value); });
    comma = ",";
  }
  out << "}";
}

// [a,b,..]
template <class Items, class Write>
void write_list(std::ostream& out, const Items& items, Write write) {
  out << "[";
  const char* comma = "";
  for (const auto& item : items) {
    out << comma;
    write(item);
    comma = ",";
  }
  out << "]";
}

void write_rows(std::ostream& out, const Ranges& rows) {
  write_list(out, rows, [&](const auto& range) { out << "[" << range.first << "," << range.second << "]"; });
}

void write_numbers(std::ostream& out, const char* name, const auto& numbers) {
  if (numbers.empty()) return;
  out << ",\"" << name << "\":";
  write_list(out, numbers, [&](const auto& number) { out << number; });
}

// {"after":[{"on":3,"phase":0,"line":"10_hopper/4_warpspec.cu:169","steps":[2]}],
//  "fills":[[4,"K",[[0,127]],3,0]],"uses":[[4,"K",[[0,127]]]],"products":[["Q",[[0,63]],"K",[[0,127]]]]}: places, and
//  of
// what is filled the gate and its phase.
void write_waits_and_places(std::ostream& out, const std::vector<Tensor>& tensors, const Step& step) {
  if (!step.after.empty()) {
    out << ",\"after\":";
    write_list(out, step.after, [&](const Waited& waited) {
      out << "{\"on\":" << waited.gate << ",\"phase\":" << waited.phase << ",\"line\":" << std::quoted(waited.line);
      write_numbers(out, "steps", waited.steps);
      out << "}";
    });
  }
  write_numbers(out, "arrives", step.arrives);
  const auto write_place = [&](const InPlace& there) {
    out << there.place << "," << std::quoted(tensors[there.tensor].name) << ",";
    write_rows(out, there.rows);
  };
  if (!step.fills.empty()) {
    out << ",\"fills\":";
    write_list(out, step.fills, [&](const Filled& filled) {
      out << "[";
      write_place(filled);
      out << "," << filled.gate << "," << filled.phase << "]";
    });
  }
  if (!step.uses.empty()) {
    out << ",\"uses\":";
    write_list(out, step.uses, [&](const InPlace& used) {
      out << "[";
      write_place(used);
      out << "]";
    });
  }
  if (!step.products.empty()) {
    out << ",\"products\":";
    write_list(out, step.products, [&](const Multiplied& product) {
      out << "[" << std::quoted(tensors[product.a].name) << ",";
      write_rows(out, product.a_rows);
      out << "," << std::quoted(tensors[product.b].name) << ",";
      write_rows(out, product.b_rows);
      out << "]";
    });
  }
  write_numbers(out, "writes", step.writes);
  write_numbers(out, "sends", step.sends);
  if (step.name) out << ",\"name\":" << *step.name;
}

// "parts":{"read":{"K":[0,64]}}: bytes of each row, of tensors of which not whole rows are moved
void write_parts_of_rows(std::ostream& out, const std::vector<Tensor>& tensors, const Step& step) {
  std::map<Move, std::vector<const RowsMoved*>> parts;
  for (const RowsMoved& moved : step.moved)
    if (moved.of_row != Extent{0, tensors[moved.tensor].row_bytes}) parts[moved.move].push_back(&moved);
  if (parts.empty()) return;
  const char* comma = ",\"parts\":{";
  for (const auto& [move, of_move] : parts) {
    out << std::exchange(comma, ",") << "\"" << name(move) << "\":{";
    const char* between = "";
    for (const RowsMoved* moved : of_move)
      out << std::exchange(between, ",") << std::quoted(tensors[moved->tensor].name) << ":[" << moved->of_row.begin
          << "," << moved->of_row.end << "]";
    out << "}";
  }
  out << "}";
}

// "owners":[[row, first column, [threads of consecutive columns]], ..]: who showed the first scores that the launch
// does, in the first step that shows them
void write_owners(std::ostream& out, const LaunchWalk& launch) {
  for (const char* name : {"S", "dP"})
    for (const BlockWalk& block : launch.blocks)
      for (const Step& step : block.steps)
        if (const auto found = step.watched.find(name); found != step.watched.end()) {
          out << ",\"owners\":";
          write_elements(out, found->second, [&](const Shown& shown) { out << shown.thread; });
          return;
        }
}

// {"until":"05_online_softmax/2_tiles.cu:140","work":[..],"read":{"K":[[0,63]]}}, of a party with "by":[8,11]; what is
// empty is left out, and so is "at" where it is how many steps of the block stand before.
void write_step(std::ostream& out, const std::vector<Tensor>& tensors, const Step& step, std::size_t before) {
  const Work& work = step.work;
  out << "{\"work\":[" << work.asked << "," << work.block << "," << work.launch << "," << work.shared << ","
      << work.matrix_flops << "," << work.shuffles << "]";
  if (step.until) out << ",\"until\":" << std::quoted(*step.until);
  if (step.by) out << ",\"by\":[" << step.by->first << "," << step.by->second << "]";
  if (step.at != before) out << ",\"at\":" << step.at;
  for (int move = 0; move < move_count; ++move) {
    const char* comma = "";
    for (const RowsMoved& moved : step.moved) {
      if (static_cast<int>(moved.move) != move) continue;
      if (*comma == 0) out << ",\"" << name(moved.move) << "\":{";
      out << comma << std::quoted(tensors[moved.tensor].name) << ":";
      write_rows(out, moved.rows);
      comma = ",";
    }
    if (*comma != 0) out << "}";
  }
  write_parts_of_rows(out, tensors, step);
  write_waits_and_places(out, tensors, step);
  if (!step.watched.empty()) write_watched(out, step.watched);
  out << "}";
}

}  // namespace

void write_json(std::ostream& out, const std::vector<Tensor>& tensors, const std::vector<LaunchWalk>& launches) {
  write_list(out, launches, [&](const LaunchWalk& launch) {
    out << "{\"kernel\":" << std::quoted(launch.kernel) << ",\"grid\":[" << launch.grid.x << "," << launch.grid.y << ","
        << launch.grid.z << "],\"block\":[" << launch.block.x << "," << launch.block.y << "," << launch.block.z
        << "],\"dynamic_shared_bytes\":" << launch.dynamic_shared_bytes;
    if (launch.cluster.x * launch.cluster.y * launch.cluster.z > 1)
      out << ",\"cluster\":[" << launch.cluster.x << "," << launch.cluster.y << "," << launch.cluster.z << "]";
    out << ",\"names\":";
    write_list(out, launch.names, [&](const auto& name) {
      out << "[" << std::quoted(name.first) << "," << std::quoted(name.second) << "]";
    });
    out << ",\"mbarriers\":";
    write_list(out, launch.mbarriers, [&](const std::string& line) { out << std::quoted(line); });
    out << ",\"places\":";
    write_list(out, launch.places, [&](const auto& place) { out << "[" << place.first << "," << place.second << "]"; });
    write_owners(out, launch);
    out << ",\"blocks\":";
    write_list(out, launch.blocks, [&](const BlockWalk& block) {
      out << "\n{\"block\":[" << block.index.x << "," << block.index.y << "," << block.index.z << "],\"steps\":";
      std::size_t before = 0;
      write_list(out, block.steps, [&](const Step& step) { write_step(out, tensors, step, before++); });
      out << "}";
    });
    out << "}\n";
  });
}

}  // namespace simt
