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
#include <thread>
#include <utility>
#include <vector>

#include "simt/cuda/handles.h"
#include "simt/cuda/host.h"
#include "simt/cuda/host_checks.h"
#include "simt/cuda/transfers.h"
#include "simt/trace/stream_order.h"

using Work = std::function<cudaError_t(cudaStream_t)>;

struct SimtGraphNode {
  Work work;
  cudaStream_t stream = nullptr;  // that was captured; null: the program has made the node itself
  std::vector<SimtGraphNode*> after;
  bool is_mark = false;  // no node of CUDA's: an event of the capture, which orders streams each time the graph runs
};

struct SimtGraph {
  std::vector<std::unique_ptr<SimtGraphNode>> nodes;
  std::set<cudaStream_t> streams;  // that were captured
};

// It runs in streams of its own, so that graphs are ordered by nothing but the streams in which they are launched.
struct SimtGraphExec {
  struct Step {
    SimtGraphNode* node;
    Work work;
    cudaStream_t stream;                  // that was captured; or of the nodes that come one after the other
    std::vector<cudaStream_t> waits_for;  // others
  };
  std::vector<Step> steps;                       // in their order
  std::map<cudaStream_t, cudaStream_t> streams;  // of those of the steps; null: where it begins and ends
  SimtGraphExec() { stream_of(nullptr); }
  ~SimtGraphExec() {
    for (const auto& [of_steps, own] : streams) cudaStreamDestroy(own);
  }
  cudaStream_t stream_of(cudaStream_t of_steps) {
    cudaStream_t& own = streams[of_steps];
    if (own == nullptr) own = simt::make_stream(/*blocking=*/false);
    return own;
  }
};
using Steps = std::vector<SimtGraphExec::Step>;

namespace {

// One that has begun and not ended.
struct Capture {
  SimtGraph* graph;
  cudaStreamCaptureMode mode;
  std::thread::id thread;
  bool spoilt = false;  // by a call that it forbids
  unsigned long long id = 0;
  simt::StreamOrder order = {};
  std::map<cudaStream_t, cudaGraphNode_t> last = {};  // of each stream
};

// Which streams are captured, and by which the capture was begun; of each graph that is being made, its capture.
struct Captures {
  std::mutex mutex;
  std::map<cudaStream_t, SimtGraph*> streams;
  std::map<cudaStream_t, SimtGraph*> begun;
  std::map<cudaEvent_t, SimtGraph*> events;
  std::map<SimtGraph*, Capture> of;
};
Captures& captures() {
  static auto& all = *new Captures;
  return all;
}
std::atomic<int> under_way = 0;        // captures
thread_local bool runs_graph = false;  // the engine calls the runtime for a graph's nodes: no call of the program's

SimtGraphNode* add_node(SimtGraph* graph, Work work, const cudaGraphNode_t* dependencies, std::size_t count) {
  graph->nodes.push_back(std::make_unique<SimtGraphNode>());
  SimtGraphNode* node = graph->nodes.back().get();
  node->work = std::move(work);
  node->after.assign(dependencies, dependencies + (dependencies != nullptr ? count : 0));
  return node;
}

void mark(SimtGraph* graph, cudaStream_t stream, std::function<void(cudaStream_t)> orders) {
  const auto work = [orders = std::move(orders)](cudaStream_t own) { return orders(own), cudaSuccess; };
  SimtGraphNode* const node = add_node(graph, work, nullptr, 0);
  node->is_mark = true;
  node->stream = stream;
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

void comes_after(cudaStream_t one, cudaStream_t other) {
  if (one == other) return;
  static SimtEvent& between = *new SimtEvent;
  simt::host_checks::recorded(&between, other);
  simt::host_checks::waits_for_event(one, &between);
}

template <class StreamOf>
cudaError_t run_steps(const Steps& steps, const StreamOf& stream_of) {
  const bool outer = std::exchange(runs_graph, true);
  cudaError_t error = cudaSuccess;
  for (const auto& [node, work, stream, waits_for] : steps) {
    for (const cudaStream_t other : waits_for) comes_after(stream_of(stream), stream_of(other));
    if (work && error == cudaSuccess) error = work(stream_of(stream));
  }
  runs_graph = outer;
  return error != cudaSuccess ? error : simt::broken();
}

// As a node of another graph.
Work all_of(const Steps& steps) {
  return [steps](cudaStream_t stream) { return run_steps(steps, [=](cudaStream_t) { return stream; }); };
}

// A node that the program makes itself goes on in the stream of one that it depends on, if none does already.
Steps steps_of(const std::vector<SimtGraphNode*>& nodes) {
  Steps steps;
  std::map<SimtGraphNode*, cudaStream_t> stream_of;
  std::map<cudaStream_t, SimtGraphNode*> last;
  for (SimtGraphNode* node : nodes) {
    cudaStream_t stream = node->stream != nullptr ? node->stream : reinterpret_cast<cudaStream_t>(node);
    for (SimtGraphNode* before : node->after)
      if (node->stream == nullptr && last[stream_of[before]] == before) stream = stream_of[before];
    std::vector<cudaStream_t> waits_for;
    for (SimtGraphNode* before : node->after)
      if (stream_of[before] != stream) waits_for.push_back(stream_of[before]);
    stream_of[node] = stream;
    last[stream] = node;
    steps.push_back({node, node->work, stream, std::move(waits_for)});
  }
  return steps;
}

// The call fails if any of the captures under way is one of those that forbid it, and spoils them.
template <class Forbids>
cudaError_t forbidden(const char* call, cudaError_t code, const char* why, const Forbids& forbids) {
  if (under_way == 0 || runs_graph) return cudaSuccess;
  bool any = false;
  {
    const std::lock_guard lock(captures().mutex);
    for (auto& [graph, capture] : captures().of) {
      if (!forbids(capture)) continue;
      any = capture.spoilt = true;
    }
  }
  if (!any) return cudaSuccess;
  return simt::fail(
      code, std::string(call) + ": not allowed while a stream is captured: " + why + "; the capture has failed, too");
}

cudaError_t launch_of(const cudaKernelNodeParams& p, Work* work) {
  const simt::ArgumentsOf arguments_of = simt::KernelOfAddress::find(p.func);
  if (arguments_of == nullptr)
    return simt::fail(cudaErrorInvalidDeviceFunction, "a kernel node's func is not a kernel of its file");
  if (p.kernelParams == nullptr && p.extra != nullptr)
    return simt::fail(cudaErrorNotSupported, "a kernel node with `extra`: the engine wants kernelParams");
  const auto call = arguments_of(p.kernelParams);
  *work = [call, func = p.func, grid = p.gridDim, block = p.blockDim, shared = p.sharedMemBytes](cudaStream_t stream) {
    return simt::launch_call({grid, block, shared, stream}, func, call, false);
  };
  return cudaSuccess;
}

// Of a node that the program makes itself, by this call.
template <class Moves>
Work work_of(const char* call, const Moves& moves) {
  return [transfer = simt::Transfer(call, nullptr), moves](cudaStream_t stream) {
    simt::Transfer own = transfer;
    own.stream = stream;
    return moves(own);
  };
}

cudaError_t fill(const simt::Transfer& transfer, const cudaMemsetParams& p) {
  const std::size_t rows = std::max<std::size_t>(p.height, 1);
  if (p.elementSize <= 1) return simt::set_rows(transfer, p.dst, p.pitch, static_cast<int>(p.value), p.width, rows);
  std::vector<char> values(p.width * p.elementSize);
  for (std::size_t i = 0; i < p.width; ++i) std::memcpy(&values[i * p.elementSize], &p.value, p.elementSize);
  for (std::size_t row = 0; row < rows; ++row)
    if (const cudaError_t error = simt::copy(transfer, static_cast<char*>(p.dst) + row * p.pitch, values.data(),
                                             values.size(), cudaMemcpyHostToDevice);
        error != cudaSuccess)
      return error;
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
  SimtGraph* const graph = captures().streams.at(stream);
  captures().of.at(graph).order.begin(stream);
  if (captures().of.at(graph).spoilt)
    return fail(cudaErrorStreamCaptureInvalidated, "the stream's capture has failed: a call before was not allowed");
  SimtGraphNode* const node = add_node(graph, std::move(work), nullptr, 0);  // captured in an order that is right
  node->stream = stream;
  captures().of.at(graph).last[stream] = node;
  return cudaSuccess;
}

cudaError_t simt::unsafe_in_capture(const char* call) {
  return forbidden(call, cudaErrorStreamCaptureUnsupported, "it might wait for that stream", [](const Capture& one) {
    return one.mode == cudaStreamCaptureModeGlobal ||
           (one.mode == cudaStreamCaptureModeThreadLocal && one.thread == std::this_thread::get_id());
  });
}

cudaError_t simt::waits_in_capture(const char* call) {
  return forbidden(call, cudaErrorStreamCaptureUnsupported, "it waits for that stream, too",
                   [](const Capture&) { return true; });
}

cudaError_t simt::waits_in_capture(const char* call, cudaStream_t stream) {
  return forbidden(call, cudaErrorStreamCaptureUnsupported, "it waits for that stream", [=](const Capture& one) {
    const auto found = captures().streams.find(stream);
    return found != captures().streams.end() && found->second == one.graph;
  });
}

cudaError_t simt::waits_in_capture(const char* call, cudaEvent_t event) {
  return forbidden(call, cudaErrorCapturedEvent, "the event was recorded in that stream", [=](const Capture& one) {
    const auto found = captures().events.find(event);
    return found != captures().events.end() && found->second == one.graph;
  });
}

cudaError_t simt::comes_into_capture(const char* call, cudaStream_t stream, bool waited_for) {
  if (stream != nullptr) return cudaSuccess;
  if (const cudaError_t error = forbidden(
          call, cudaErrorStreamCaptureImplicit, "it is work for the default stream, which waits for that stream",
          [](const Capture& one) {
            return std::any_of(one.graph->streams.begin(), one.graph->streams.end(),
                               [](cudaStream_t captured) { return captured->blocking; });
          });
      error != cudaSuccess)
    return error;
  return waited_for ? unsafe_in_capture(call) : cudaSuccess;
}

cudaError_t simt::comes_into_stream(const char* call, cudaStream_t stream) {
  if (const cudaError_t error = check_stream(call, stream); error != cudaSuccess) return error;
  return comes_into_capture(call, stream);
}

void simt::recorded_in_capture(cudaEvent_t event, cudaStream_t stream) {
  if (under_way == 0) return;
  const std::lock_guard lock(captures().mutex);
  captures().events.erase(event);
  const auto found = captures().streams.find(stream);
  if (found == captures().streams.end()) return;
  captures().events[event] = found->second;
  captures().of.at(found->second).order.record(event, stream);
  mark(found->second, stream, [=](cudaStream_t own) { simt::host_checks::recorded(event, own); });
}

void simt::waits_in_capture(cudaStream_t stream, cudaEvent_t event) {
  if (under_way == 0) return;
  const std::lock_guard lock(captures().mutex);
  const auto found = captures().events.find(event);
  if (found == captures().events.end()) return;
  captures().streams[stream] = found->second;
  found->second->streams.insert(stream);
  captures().of.at(found->second).order.wait(stream, event);
  mark(found->second, stream, [=](cudaStream_t own) { simt::host_checks::waits_for_event(own, event); });
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  if (const cudaError_t error = simt::check_stream("cudaStreamBeginCapture", stream); error != cudaSuccess)
    return error;
  if (stream == nullptr)
    return simt::fail(cudaErrorStreamCaptureUnsupported, "cudaStreamBeginCapture: of the default stream");
  const std::lock_guard lock(captures().mutex);
  if (captures().streams.contains(stream))
    return simt::fail(cudaErrorIllegalState, "cudaStreamBeginCapture: the stream is captured already");
  SimtGraph* const graph = captures().streams[stream] = captures().begun[stream] = new SimtGraph;
  graph->streams.insert(stream);
  static unsigned long long begun = 0;
  captures().of[graph] = {graph, mode, std::this_thread::get_id(), false, ++begun};
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
  Capture& capture = captures().of.at(made);
  const bool spoilt = capture.spoilt, joined = capture.order.knows_all(stream);
  captures().of.erase(made);
  --under_way;
  *graph = spoilt || !joined ? nullptr : made;
  if (*graph != nullptr) return cudaSuccess;
  delete made;
  return spoilt ? simt::fail(cudaErrorStreamCaptureInvalidated,
                             "cudaStreamEndCapture: there is no graph, as a call before was not allowed")
                : simt::fail(cudaErrorStreamCaptureUnjoined,
                             "cudaStreamEndCapture: there is no graph, as this stream does not wait for what another "
                             "captured stream does last (cudaEventRecord() there, cudaStreamWaitEvent() here)");
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  const std::lock_guard lock(captures().mutex);
  const auto found = captures().streams.find(stream);
  *status = found == captures().streams.end()        ? cudaStreamCaptureStatusNone
            : captures().of.at(found->second).spoilt ? cudaStreamCaptureStatusInvalidated
                                                     : cudaStreamCaptureStatusActive;
  return cudaSuccess;
}

cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status, unsigned long long* id,
                                     cudaGraph_t* graph, const cudaGraphNode_t** dependencies, std::size_t* count) {
  if (const cudaError_t error = cudaStreamIsCapturing(stream, status);
      error != cudaSuccess || *status != cudaStreamCaptureStatusActive)
    return error;
  const std::lock_guard lock(captures().mutex);
  SimtGraph* const its = captures().streams.at(stream);
  const Capture& capture = captures().of.at(its);
  const auto last = capture.last.find(stream);
  const bool any = last != capture.last.end();
  if (id != nullptr) *id = capture.id;
  if (graph != nullptr) *graph = its;
  if (dependencies != nullptr) *dependencies = any ? &last->second : nullptr;
  if (count != nullptr) *count = any;
  return cudaSuccess;
}

cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status, unsigned long long* id,
                                     cudaGraph_t* graph, const cudaGraphNode_t** dependencies,
                                     const cudaGraphEdgeData** edges, std::size_t* count) {
  if (edges != nullptr) *edges = nullptr;
  return cudaStreamGetCaptureInfo(stream, status, id, graph, dependencies, count);
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
  if (const cudaError_t error = launch_of(*parameters, &work); error != cudaSuccess) return error;
  *node = add_node(graph, std::move(work), dependencies, count);
  return cudaSuccess;
}

cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                                     std::size_t count, void* to, const void* from, std::size_t bytes,
                                     cudaMemcpyKind kind) {
  const auto moves = [=](const simt::Transfer& own) { return simt::copy(own, to, from, bytes, kind); };
  *node = add_node(graph, work_of("cudaGraphAddMemcpyNode1D", moves), dependencies, count);
  return cudaSuccess;
}

cudaError_t cudaGraphAddMemcpyNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                                   std::size_t count, const cudaMemcpy3DParms* parameters) {
  const auto moves = [p = *parameters](const simt::Transfer& own) { return simt::copy_slices(own, p); };
  *node = add_node(graph, work_of("cudaGraphAddMemcpyNode", moves), dependencies, count);
  return cudaSuccess;
}

cudaError_t cudaGraphAddMemsetNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                                   std::size_t count, const cudaMemsetParams* parameters) {
  const auto sets = [p = *parameters](const simt::Transfer& own) { return fill(own, p); };
  *node = add_node(graph, work_of("cudaGraphAddMemsetNode", sets), dependencies, count);
  return cudaSuccess;
}

cudaError_t cudaGraphAddHostNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                                 std::size_t count, const cudaHostNodeParams* parameters) {
  const auto calls = [p = *parameters](cudaStream_t own) {
    simt::host_checks::calls_host(own);
    const simt::InHostFunction in;
    return p.fn(p.userData), cudaSuccess;
  };
  *node = add_node(graph, calls, dependencies, count);
  return cudaSuccess;
}

cudaError_t cudaGraphAddEmptyNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                                  std::size_t count) {
  *node = add_node(graph, nullptr, dependencies, count);
  return cudaSuccess;
}

cudaError_t cudaGraphAddChildGraphNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                                       std::size_t count, cudaGraph_t child) {
  *node = add_node(graph, all_of(steps_of(in_order(*child))), dependencies, count);
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
    copies[node.get()]->stream = node->stream;
  }
  for (const auto& node : graph->nodes)
    for (SimtGraphNode* before : node->after) copies[node.get()]->after.push_back(copies[before]);
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long) {
  if (graph == nullptr) return simt::fail(cudaErrorInvalidValue, "cudaGraphInstantiate: a null graph");
  const std::vector<SimtGraphNode*> order = in_order(*graph);
  if (order.size() != graph->nodes.size())
    return simt::fail(cudaErrorInvalidValue,
                      "cudaGraphInstantiate: nodes of the graph depend on one another in a ring");
  *executable = new SimtGraphExec;
  (*executable)->steps = steps_of(order);
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
  executable->steps = std::move(made->steps);
  delete made;
  if (result != nullptr) *result = {cudaGraphExecUpdateSuccess, nullptr, nullptr};
  return cudaSuccess;
}

cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t executable, cudaGraphNode_t node,
                                             const cudaKernelNodeParams* parameters) {
  for (auto& [its, work, own, waits_for] : executable->steps)
    if (its == node) return launch_of(*parameters, &work);
  return simt::fail(cudaErrorInvalidValue, "cudaGraphExecKernelNodeSetParams: the node is not of this graph");
}

cudaError_t cudaGraphUpload(cudaGraphExec_t, cudaStream_t) { return simt::broken(); }

cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  if (const cudaError_t error = simt::comes_into_stream("cudaGraphLaunch", stream); error != cudaSuccess) return error;
  if (executable == nullptr) return simt::fail(cudaErrorInvalidValue, "cudaGraphLaunch: a null graph");
  if (simt::is_captured(stream)) return simt::capture(stream, all_of(executable->steps));
  // All of it comes after what the stream has had, and what the graph did before, and before what the stream gets next.
  const cudaStream_t ends = executable->stream_of(nullptr);
  for (const auto& step : executable->steps) executable->stream_of(step.stream);
  comes_after(ends, stream);
  for (const auto& [of_steps, own] : executable->streams) comes_after(own, ends);
  const cudaError_t error =
      run_steps(executable->steps, [&](cudaStream_t of_steps) { return executable->stream_of(of_steps); });
  for (const auto& [of_steps, own] : executable->streams) comes_after(ends, own);
  comes_after(stream, ends);
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
