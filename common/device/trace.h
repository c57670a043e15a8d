// Counting what kernels do, and recording it step by step, for host code: of kernels that are traced on the SIMT
// engine.
#pragma once

#include <functional>
#include <sstream>
#include <string>
#include <vector>

#include "device/cuda.h"
#ifdef WORKBOOK_SIMT
#include "simt/trace/counts.h"
#include "simt/trace/walk.h"
#endif

// Whether this program's kernels are.
inline bool can_trace() {
#ifdef WORKBOOK_SIMT
  return simt::kernels_are_traced();
#else
  return false;
#endif
}

// Runs `work` and returns the counts of its launches as a JSON array (simt/trace/counts.h). Empty unless can_trace().
inline std::string traced([[maybe_unused]] const std::function<void()>& work) {
  std::ostringstream json;
#ifdef WORKBOOK_SIMT
  if (!can_trace()) return "";
  simt::trace_begin();
  work();
  simt::write_json(json, simt::trace_end());
#endif
  return json.str();
}

// A matrix in device memory, and what a walk calls it.
struct NamedRows {
  std::string name;
  const void* data;
  size_t rows, row_bytes;
};

// Runs `work` and returns what its thread blocks did, as a JSON array (simt/trace/walk.h). Empty unless can_trace().
inline std::string walked([[maybe_unused]] const std::vector<NamedRows>& matrices,
                          [[maybe_unused]] const std::function<void()>& work) {
  std::ostringstream json;
#ifdef WORKBOOK_SIMT
  if (!can_trace()) return "";
  std::vector<simt::Tensor> tensors;
  for (const NamedRows& each : matrices) tensors.push_back({each.name, each.data, each.rows, each.row_bytes});
  simt::trace_begin();
  simt::walk_begin(tensors);
  work();
  simt::write_json(json, tensors, simt::walk_end());
  simt::trace_end();
#endif
  return json.str();
}
