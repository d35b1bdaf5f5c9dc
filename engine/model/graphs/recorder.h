// Devices that take all that a call asks of them as one command, again and again.
#ifndef WHERRY_ENGINE_MODEL_GRAPHS_RECORDER_H_
#define WHERRY_ENGINE_MODEL_GRAPHS_RECORDER_H_

#include <functional>
#include <memory>

#include "model/device.h"

namespace wherry {

// What a call asked of a device: kernels, with the addresses and numbers that it gave them.
class Recording {
 public:
  virtual ~Recording() = default;
  // Asks for the same again, behind all that was asked for before, and returns at once. Throws
  // Error.
  virtual void play() = 0;
};

class Recorder {
 public:
  virtual ~Recorder() = default;
  // Nothing is done of what `call` asks for; it may launch kernels, and neither allocates nor
  // copies. Throws Error, and what the call throws.
  virtual std::unique_ptr<Recording> record(const std::function<void()>& call) = 0;
};

// Recorder of a CUDA device's graphs; null: this system has none. Throws Error where
// the driver is too old.
std::unique_ptr<Recorder> open_recorder(DLDevice device);

}  // namespace wherry

#endif  // WHERRY_ENGINE_MODEL_GRAPHS_RECORDER_H_
