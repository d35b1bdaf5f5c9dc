// Decides which steps are captured as CUDA graphs and replayed: those with equal sizes.
#ifndef WHERRY_ENGINE_VM_GRAPHS_STEP_GRAPHS_H_
#define WHERRY_ENGINE_VM_GRAPHS_STEP_GRAPHS_H_

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "vm/graphs/capture.h"
#include "vm/graphs/graph_memory.h"

namespace wherry {

// The results of a step as device tensors.
struct StepResults {
  ffi::Tensor result;  // logits of the entry's result rows
  ffi::Tensor packed;  // candidates of the result rows, if the batch has scales
};

// A graph contains every address and number that the host code passed to kernels. Addresses are
// fixed: state, parameters and the step's arrays never move, and intermediate tensors are in
// GraphMemory, which all steps share. Numbers, and the list of kernels, depend only on the sizes of
// the arrays, which are the key. Kernels read the arrays' contents themselves.
//
// Steps with one key:
//   the first   is launched kernel by kernel: a key that never repeats costs nothing
//   the second  is launched, then captured
//   the third   is launched, then replayed; its tokens, pages and positions are not the captured
//               ones. If the results differ in any bit, graphs are turned off.
//   all others  are replayed.
class StepGraphs {
 public:
  using Key = std::vector<int64_t>;  // every number that host code branches on or passes to kernels
  // Launches a step kernel by kernel. Launching it twice must leave the same state.
  using Call = std::function<StepResults()>;

  // capturer: may be null; given_up then says why.
  explicit StepGraphs(std::unique_ptr<Capturer> capturer, std::string given_up = {})
      : capturer_(std::move(capturer)), given_up_(std::move(given_up)) {}

  // Launches a step. lane: 0 or 1; results are valid until the next step of their lane.
  StepResults launch(int lane, const Call& call);  // launches without a graph
  StepResults run(int lane, const Key& key, const Call& call);

  uint64_t replayed() const { return replayed_; }  // number of replayed steps
  size_t captured() const;
  // Why graphs were turned off; empty while they are on.
  const std::string& given_up() const { return given_up_; }

  // Upper bound on keys; the least recently used one is evicted.
  static constexpr size_t kMost = 64;

 private:
  struct Graph {
    int lane;
    Key key;
    std::unique_ptr<CapturedGraph> captured;  // null until the step is captured
    StepResults results;
    bool compared = false;
  };

  // Returns the key's graph. Returns null if the key is new, and adds it.
  Graph* find(int lane, const Key& key);
  StepResults capture(Graph& graph, const Call& call);
  StepResults compare(Graph& graph, const Call& call);
  StepResults replay(Graph& graph, const Call& call);
  void give_up(const std::string& reason);

  const std::unique_ptr<Capturer> capturer_;
  std::string given_up_;
  GraphMemory storage_[2];   // memory of each lane; outlives the graphs
  std::list<Graph> graphs_;  // graphs, the most recently used first
  uint64_t replayed_ = 0;
};

}  // namespace wherry

#endif  // WHERRY_ENGINE_VM_GRAPHS_STEP_GRAPHS_H_
