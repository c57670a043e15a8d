// CUDA graphs, of host.h: nodes that run one after the other, each after those that it depends on.
#include "simt/cuda/graphs.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "simt/cuda/host.h"
#include "simt/cuda/host_checks.h"

using Work = std::function<cudaError_t()>;

struct SimtGraphNode {
  Work work;
  std::vector<SimtGraphNode*> after;
  bool is_mark = false;  // no node of CUDA's: an event of the capture, which orders streams each time the graph runs
};

struct SimtGraph {
  std::vector<std::unique_ptr<SimtGraphNode>> nodes;
  std::set<cudaStream_t> streams;  // that were captured
};

struct SimtGraphExec {
  std::vector<std::pair<SimtGraphNode*, Work>> steps;  // in their order
  std::set<cudaStream_t> streams;                      // in which they run
};

namespace {

// Which streams are captured, into which graph, and by which the capture was begun.
struct Captures {
  std::mutex mutex;
  std::map<cudaStream_t, SimtGraph*> streams;
  std::map<cudaStream_t, SimtGraph*> begun;
  std::map<cudaEvent_t, SimtGraph*> events;
};
Captures& captures() {
  static auto& all = *new Captures;
  return all;
}
std::atomic<int> under_way = 0;  // captures

SimtGraphNode* add_node(SimtGraph* graph, Work work, const cudaGraphNode_t* dependencies, std::size_t count) {
  graph->nodes.push_back(std::make_unique<SimtGraphNode>());
  SimtGraphNode* node = graph->nodes.back().get();
  node->work = std::move(work);
  node->after.assign(dependencies, dependencies + (dependencies != nullptr ? count : 0));
  return node;
}

void mark(SimtGraph* graph, std::function<void()> orders) {
  const auto work = [orders = std::move(orders)] { return orders(), cudaSuccess; };
  add_node(graph, work, nullptr, 0)->is_mark = true;
}

// The nodes, each after those that it depends on, else as they were added; fewer if some wait for one another.
std::vector<SimtGraphNode*> in_order(const SimtGraph& graph) {
  std::vector<SimtGraphNode*> order;
  const auto done = [&](SimtGraphNode* node) { return std::find(order.begin(), order.end(), node) != order.end(); };
  for (bool more = true; more;) {
    more = false;
    for (const auto& node : graph.nodes) {
      if (done(node.get()) || !std::all_of(node->after.begin(), node->after.end(), done)) continue;
      order.push_back(node.get());
      more = true;
    }
  }
  return order;
}

cudaError_t run_steps(const std::vector<std::pair<SimtGraphNode*, Work>>& steps) {
  for (const auto& [node, work] : steps)
    if (work)
      if (const cudaError_t error = work(); error != cudaSuccess) return error;
  return simt::broken();
}

cudaError_t work_of(const cudaKernelNodeParams& p, Work* work) {
  const simt::ArgumentsOf arguments_of = simt::KernelOfAddress::find(p.func);
  if (arguments_of == nullptr)
    return simt::fail(cudaErrorInvalidDeviceFunction, "a kernel node's func is not a kernel of its file");
  if (p.kernelParams == nullptr && p.extra != nullptr)
    return simt::fail(cudaErrorNotSupported, "a kernel node with `extra`: the engine wants kernelParams");
  const auto call = arguments_of(p.kernelParams);
  *work = [call, func = p.func, config = simt::LaunchConfig(p.gridDim, p.blockDim, p.sharedMemBytes)] {
    return simt::launch_call(config, func, call, false);
  };
  return cudaSuccess;
}

cudaError_t fill(const cudaMemsetParams& p) {
  for (std::size_t row = 0; row < std::max<std::size_t>(p.height, 1); ++row) {
    char* to = static_cast<char*>(p.dst) + row * p.pitch;
    if (p.elementSize <= 1) {
      if (const cudaError_t error = cudaMemset(to, static_cast<int>(p.value), p.width); error != cudaSuccess)
        return error;
      continue;
    }
    std::vector<char> values(p.width * p.elementSize);
    for (std::size_t i = 0; i < p.width; ++i) std::memcpy(&values[i * p.elementSize], &p.value, p.elementSize);
    if (const cudaError_t error = cudaMemcpy(to, values.data(), values.size(), cudaMemcpyHostToDevice);
        error != cudaSuccess)
      return error;
  }
  return cudaSuccess;
}

}  // namespace

bool simt::is_captured(cudaStream_t stream) {
  if (under_way == 0) return false;
  const std::lock_guard lock(captures().mutex);
  return captures().streams.contains(stream);
}

cudaError_t simt::capture(cudaStream_t stream, Work work) {
  const std::lock_guard lock(captures().mutex);
  add_node(captures().streams.at(stream), std::move(work), nullptr, 0);  // captured in an order that is right
  return cudaSuccess;
}

void simt::recorded_in_capture(cudaEvent_t event, cudaStream_t stream) {
  if (under_way == 0) return;
  const std::lock_guard lock(captures().mutex);
  captures().events.erase(event);
  const auto found = captures().streams.find(stream);
  if (found == captures().streams.end()) return;
  captures().events[event] = found->second;
  mark(found->second, [=] { simt::host_checks::recorded(event, stream); });
}

void simt::waits_in_capture(cudaStream_t stream, cudaEvent_t event) {
  if (under_way == 0) return;
  const std::lock_guard lock(captures().mutex);
  const auto found = captures().events.find(event);
  if (found == captures().events.end()) return;
  captures().streams[stream] = found->second;
  found->second->streams.insert(stream);
  mark(found->second, [=] { simt::host_checks::waits_for_event(stream, event); });
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  if (stream == nullptr)
    return simt::fail(cudaErrorStreamCaptureUnsupported, "cudaStreamBeginCapture: of the default stream");
  const std::lock_guard lock(captures().mutex);
  if (captures().streams.contains(stream))
    return simt::fail(cudaErrorIllegalState, "cudaStreamBeginCapture: the stream is captured already");
  captures().streams[stream] = captures().begun[stream] = new SimtGraph;
  captures().begun[stream]->streams.insert(stream);
  ++under_way;
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  const std::lock_guard lock(captures().mutex);
  const auto found = captures().begun.find(stream);
  if (found == captures().begun.end())
    return simt::fail(cudaErrorIllegalState, "cudaStreamEndCapture: no capture was begun on this stream");
  SimtGraph* const made = found->second;
  captures().begun.erase(found);
  std::erase_if(captures().streams, [&](const auto& each) { return each.second == made; });
  std::erase_if(captures().events, [&](const auto& each) { return each.second == made; });
  --under_way;
  *graph = made;
  return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  *status = simt::is_captured(stream) ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
  return cudaSuccess;
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  *mode = cudaStreamCaptureModeGlobal;
  return cudaSuccess;
}

cudaError_t cudaGraphCreate(cudaGraph_t* graph, unsigned) {
  *graph = new SimtGraph;
  return cudaSuccess;
}

cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                                   std::size_t count, const cudaKernelNodeParams* parameters) {
  Work work;
  if (const cudaError_t error = work_of(*parameters, &work); error != cudaSuccess) return error;
  *node = add_node(graph, std::move(work), dependencies, count);
  return cudaSuccess;
}

cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                                     std::size_t count, void* to, const void* from, std::size_t bytes,
                                     cudaMemcpyKind kind) {
  *node = add_node(
      graph, [=] { return cudaMemcpy(to, from, bytes, kind); }, dependencies, count);
  return cudaSuccess;
}

cudaError_t cudaGraphAddMemcpyNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                                   std::size_t count, const cudaMemcpy3DParms* parameters) {
  *node = add_node(
      graph, [p = *parameters] { return cudaMemcpy3D(&p); }, dependencies, count);
  return cudaSuccess;
}

cudaError_t cudaGraphAddMemsetNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                                   std::size_t count, const cudaMemsetParams* parameters) {
  *node = add_node(
      graph, [p = *parameters] { return fill(p); }, dependencies, count);
  return cudaSuccess;
}

cudaError_t cudaGraphAddHostNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                                 std::size_t count, const cudaHostNodeParams* parameters) {
  *node = add_node(
      graph, [p = *parameters] { return p.fn(p.userData), cudaSuccess; }, dependencies, count);
  return cudaSuccess;
}

cudaError_t cudaGraphAddEmptyNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                                  std::size_t count) {
  *node = add_node(graph, nullptr, dependencies, count);
  return cudaSuccess;
}

cudaError_t cudaGraphAddChildGraphNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                                       std::size_t count, cudaGraph_t child) {
  std::vector<std::pair<SimtGraphNode*, Work>> steps;
  for (SimtGraphNode* each : in_order(*child)) steps.emplace_back(each, each->work);
  *node = add_node(
      graph, [steps] { return run_steps(steps); }, dependencies, count);
  return cudaSuccess;
}

cudaError_t cudaGraphAddDependencies(cudaGraph_t, const cudaGraphNode_t* from, const cudaGraphNode_t* to,
                                     std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) to[i]->after.push_back(from[i]);
  return cudaSuccess;
}

cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t* from, const cudaGraphNode_t* to,
                                     const cudaGraphEdgeData*, std::size_t count) {
  return cudaGraphAddDependencies(graph, from, to, count);
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, std::size_t* count) {
  std::size_t found = 0;
  for (const auto& node : graph->nodes) {
    if (node->is_mark) continue;
    if (nodes != nullptr && found < *count) nodes[found] = node.get();
    ++found;
  }
  *count = found;
  return cudaSuccess;
}

cudaError_t cudaGraphClone(cudaGraph_t* clone, cudaGraph_t graph) {
  *clone = new SimtGraph;
  std::map<SimtGraphNode*, SimtGraphNode*> copies;
  (*clone)->streams = graph->streams;
  for (const auto& node : graph->nodes) {
    copies[node.get()] = add_node(*clone, node->work, nullptr, 0);
    copies[node.get()]->is_mark = node->is_mark;
  }
  for (const auto& node : graph->nodes)
    for (SimtGraphNode* before : node->after) copies[node.get()]->after.push_back(copies[before]);
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long) {
  const std::vector<SimtGraphNode*> order = in_order(*graph);
  if (order.size() != graph->nodes.size())
    return simt::fail(cudaErrorInvalidValue,
                      "cudaGraphInstantiate: nodes of the graph depend on one another in a ring");
  *executable = new SimtGraphExec;
  (*executable)->streams = graph->streams;
  (*executable)->streams.insert(nullptr);  // where nodes run that a program makes itself
  for (SimtGraphNode* node : order) (*executable)->steps.emplace_back(node, node->work);
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, cudaGraphNode_t*, char*, std::size_t) {
  return cudaGraphInstantiate(executable, graph, 0ull);
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long flags) {
  return cudaGraphInstantiate(executable, graph, flags);
}

cudaError_t cudaGraphExecUpdate(cudaGraphExec_t executable, cudaGraph_t graph, cudaGraphExecUpdateResultInfo* result) {
  cudaGraphExec_t made = nullptr;
  if (const cudaError_t error = cudaGraphInstantiate(&made, graph, 0ull); error != cudaSuccess) return error;
  *executable = std::move(*made);
  delete made;
  if (result != nullptr) *result = {cudaGraphExecUpdateSuccess, nullptr, nullptr};
  return cudaSuccess;
}

cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t executable, cudaGraphNode_t node,
                                             const cudaKernelNodeParams* parameters) {
  for (auto& [its, work] : executable->steps)
    if (its == node) return work_of(*parameters, &work);
  return simt::fail(cudaErrorInvalidValue, "cudaGraphExecKernelNodeSetParams: the node is not of this graph");
}

cudaError_t cudaGraphUpload(cudaGraphExec_t, cudaStream_t) { return simt::broken(); }

cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  if (simt::is_captured(stream)) return simt::capture(stream, [steps = executable->steps] { return run_steps(steps); });
  // All of it comes after what the stream has had, and before what the stream gets next.
  const auto key = reinterpret_cast<cudaEvent_t>(executable);
  simt::host_checks::recorded(key, stream);
  for (const cudaStream_t own : executable->streams) simt::host_checks::waits_for_event(own, key);
  const cudaError_t error = run_steps(executable->steps);
  for (const cudaStream_t own : executable->streams) {
    simt::host_checks::recorded(key, own);
    simt::host_checks::waits_for_event(stream, key);
  }
  return error;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  delete executable;
  return cudaSuccess;
}
