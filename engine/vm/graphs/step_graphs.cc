#include "vm/graphs/step_graphs.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <utility>

#include "support/error.h"
#include "vm/staging.h"

namespace wherry {

namespace {

// Waits for the device and reads the bytes of a tensor; returns an empty string for an undefined
// tensor.
std::string bytes_there(const ffi::Tensor& tensor) {
  if (!tensor.defined()) return {};
  ffi::Tensor host = to_host(tensor);
  return {bytes_of(host), ffi::GetDataSize(host)};
}

}  // namespace

StepResults StepGraphs::launch(int lane, const Call& call) {
  GraphMemory::Use use(storage_[lane]);
  return call();
}

StepResults StepGraphs::run(int lane, const Key& key, const Call& call) {
  if (!given_up_.empty()) return launch(lane, call);
  Graph* graph = find(lane, key);
  if (graph == nullptr) return launch(lane, call);
  if (!graph->captured) return capture(*graph, call);
  return graph->compared ? replay(*graph, call) : compare(*graph, call);
}

size_t StepGraphs::captured() const {
  return static_cast<size_t>(std::count_if(graphs_.begin(), graphs_.end(), [](const Graph& graph) {
    return graph.captured != nullptr;
  }));
}

StepGraphs::Graph* StepGraphs::find(int lane, const Key& key) {
  auto match = std::find_if(graphs_.begin(), graphs_.end(), [&](const Graph& graph) {
    return graph.lane == lane && graph.key == key;
  });
  if (match != graphs_.end()) {
    graphs_.splice(graphs_.begin(), graphs_, match);
    return &graphs_.front();
  }
  if (graphs_.size() == kMost) graphs_.pop_back();
  graphs_.push_front({lane, key, nullptr, {}, false});
  return nullptr;
}

StepResults StepGraphs::capture(Graph& graph, const Call& call) {
  StepResults results = launch(graph.lane, call);
  try {
    if (!storage_[graph.lane].has_all()) {
      throw Error(WHERRY_INTERNAL, "the library's memory is not planned, or not of the VM's pool");
    }
    graph.captured = capturer_->capture([&] { graph.results = launch(graph.lane, call); });
  } catch (const std::exception& error) {
    give_up(error.what());
  }
  return results;
}

// Compares a launched step with its replay, which writes its results to the same memory.
StepResults StepGraphs::compare(Graph& graph, const Call& call) {
  const int lane = graph.lane;
  StepResults results = launch(lane, call);
  const std::string result = bytes_there(results.result), packed = bytes_there(results.packed);
  try {
    graph.captured->replay();
    if (bytes_there(graph.results.result) == result &&
        bytes_there(graph.results.packed) == packed) {
      graph.compared = true;
      return results;
    }
    give_up("a step that was played gave other bits than its kernels");
  } catch (const std::exception& error) {
    give_up(error.what());
  }
  return launch(lane, call);
}

StepResults StepGraphs::replay(Graph& graph, const Call& call) {
  try {
    graph.captured->replay();
  } catch (const std::exception& error) {
    const int lane = graph.lane;
    give_up(error.what());
    return launch(lane, call);
  }
  ++replayed_;
  return graph.results;
}

void StepGraphs::give_up(const std::string& reason) {
  // Upper bound in bytes of a kept error text: TVM's launch errors end with the kernels' source.
  constexpr size_t kMostText = 400;
  given_up_ = reason.substr(0, kMostText);
  graphs_.clear();
}

}  // namespace wherry
