// Steps of the same sizes, launched as one command.
#ifndef WHERRY_ENGINE_MODEL_GRAPHS_STEP_GRAPHS_H_
#define WHERRY_ENGINE_MODEL_GRAPHS_STEP_GRAPHS_H_

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "model/graphs/kept_storage.h"
#include "model/graphs/recorder.h"

namespace wherry {

// What a step leaves on the device.
struct StepResults {
  ffi::Tensor result;  // of the entry
  ffi::Tensor packed;  // its candidates, if they were asked for
};

// A graph has every address and number that the host's code gave to kernels. Addresses are fixed:
// state, parameters and the step's arrays have places of their own, and what lies between is
// KeptStorage, of all steps. Numbers, and which kernels there are, follow from the sizes of the
// arrays, which are the key. What the arrays hold is read by kernels.
//
// Steps of one key:
//   the first   is launched kernel by kernel: keys that do not come again cost nothing
//   the second  too, and then captured
//   the third   too, and replayed: with other tokens, pages and positions than the recording, and
//   the
//               same bits, or graphs are given up
//   all others  are played.
class StepGraphs {
 public:
  using Key = std::vector<int64_t>;  // whatever the host's code branches on or passes on
  // Launches a step, kernel by kernel; whether twice or once makes no difference to the state.
  using Call = std::function<StepResults()>;

  // given_up: why there is no recorder.
  explicit StepGraphs(std::unique_ptr<Recorder> recorder, std::string given_up = {})
      : recorder_(std::move(recorder)), given_up_(std::move(given_up)) {}

  // lane: 0 or 1. Results are valid until the next step of their lane.
  StepResults launch(int lane, const Call& call);  // one that does not come again
  StepResults run(int lane, const Key& key, const Call& call);

  uint64_t played() const { return played_; }  // steps
  size_t recordings() const;
  // Why every step is launched kernel by kernel from there on; empty: nothing has gone wrong.
  const std::string& given_up() const { return given_up_; }

  static constexpr size_t kMost = 64;  // keys; the least recently used goes

 private:
  struct Graph {
    int lane;
    Key key;
    std::unique_ptr<Recording> recording;  // null at first
    StepResults results;
    bool compared = false;
  };

  // Null: it is a new key, and known from here on.
  Graph* find(int lane, const Key& key);
  StepResults record(Graph& graph, const Call& call);
  StepResults compare(Graph& graph, const Call& call);
  StepResults play(Graph& graph, const Call& call);
  void give_up(const std::string& reason);

  const std::unique_ptr<Recorder> recorder_;
  std::string given_up_;
  KeptStorage storage_[2];   // of each lane; outlives the graphs
  std::list<Graph> graphs_;  // the last used first
  uint64_t played_ = 0;
};

}  // namespace wherry

#endif  // WHERRY_ENGINE_MODEL_GRAPHS_STEP_GRAPHS_H_
