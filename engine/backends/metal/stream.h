// One Metal queue. The stream records a step's commands into one command buffer and commits it when
// a call waits.
#ifndef WHERRY_ENGINE_BACKENDS_METAL_STREAM_H_
#define WHERRY_ENGINE_BACKENDS_METAL_STREAM_H_

#include <cstdint>
#include <deque>
#include <string>

#include "backends/metal/objc.h"

namespace wherry::metal {

// Command buffers have numbers from 1 and are executed in their order; number 0 is always done. All
// calls need an autorelease pool.
class Stream {
 public:
  // device: MTLDevice. Throws a RuntimeError of tvm-ffi if it has no queue.
  explicit Stream(Id device);
  // Commits nothing, and does not wait: queued command buffers keep what they use.
  ~Stream();

  // Returns an encoder of the command buffer that is being recorded, for one command. An encoder
  // executes its commands one after the other (MTLDispatchTypeSerial), and Metal orders encoders
  // by the buffers that they use. Throws a RuntimeError if earlier commands failed.
  Id compute();
  Id copies();
  // Sets a pipeline for `compute`'s encoder, unless it is set.
  void set_pipeline(Id pipeline);

  // Returns the number of the command buffer that records the last command.
  uint64_t recorded() const { return number_; }
  // Returns whether a command buffer has ended; never waits.
  bool done(uint64_t number);
  // Commits the recorded commands; returns at once.
  void commit();
  // Commits and waits for the command buffers up to a number. Throws a RuntimeError with Metal's
  // error if commands failed.
  void wait_for(uint64_t number);
  void wait() { wait_for(number_); }
  // Drops the recorded commands, waits for the committed ones and forgets their errors; for when
  // no tensor is left that has results.
  void abandon();

 private:
  enum class Kind { kNone, kCompute, kCopies };
  struct Committed {
    uint64_t number;
    Own commands;
  };
  // Upper bound on the commands of a command buffer, which holds memory for each.
  static constexpr unsigned kMostCommands = 4096;

  Id encoder(Kind kind);
  void end_encoder();
  void collect(const Committed& ended);
  void throw_failure();

  Own queue_;
  Own commands_;  // MTLCommandBuffer that is being recorded; null: none
  Own encoder_;   // its open encoder; null: none
  Kind kind_ = Kind::kNone;
  Id pipeline_ = nullptr;  // the pipeline of the open encoder
  unsigned count_ = 0;     // commands of the command buffer
  uint64_t number_ = 0;    // of the command buffer that is recorded, or was last
  std::deque<Committed> committed_;
  std::string failure_;  // of commands that no call has waited for
};

}  // namespace wherry::metal

#endif  // WHERRY_ENGINE_BACKENDS_METAL_STREAM_H_
