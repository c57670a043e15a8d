// Counting what kernels do, for host code: the SIMT engine's trace build can, nothing else.
#pragma once

#include <functional>
#include <sstream>
#include <string>

#include "device/cuda.h"
#ifdef WORKBOOK_TRACE
#include "simt/counts.h"
inline constexpr bool can_trace = true;
#else
inline constexpr bool can_trace = false;
#endif

// Runs `work` and returns the counts of its launches as a JSON array (simt/counts.h). Empty unless can_trace.
inline std::string traced([[maybe_unused]] const std::function<void()>& work) {
  std::ostringstream json;
#ifdef WORKBOOK_TRACE
  simt::trace_begin();
  work();
  simt::write_json(json, simt::trace_end());
#endif
  return json.str();
}
