// Memory of Metal tensors. Host and device share it: a buffer's bytes have an address on the host.
#ifndef WHERRY_ENGINE_BACKENDS_METAL_MEMORY_H_
#define WHERRY_ENGINE_BACKENDS_METAL_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>

#include "backends/metal/objc.h"

namespace wherry::metal {

// The memory of one tensor: the data pointer of a tensor on these devices points to a Buffer.
struct Buffer {
  Own object;        // MTLBuffer
  char* host;        // its bytes
  size_t bytes;      // allocated size
  uint64_t used;     // number of the last command buffer that reads or writes it; 0: none
  uint64_t written;  // number of the last command buffer that writes it; 0: none
};

// Allocates buffers and keeps small freed ones by size. A kept buffer may still be used by
// commands; they precede those of its next tensor, and `Buffer::used` tells it to the host.
class Memory {
 public:
  // device: MTLDevice, which outlives this.
  explicit Memory(Id device) : device_(device) {}

  // Returns a buffer of at least this size; null if there is no memory. idle: whether the commands
  // of a number have ended; if given, only a kept buffer that no command uses is taken.
  std::unique_ptr<Buffer> take(size_t bytes, const std::function<bool(uint64_t)>& idle = nullptr);
  void give(std::unique_ptr<Buffer> buffer);
  // Frees all kept buffers.
  void trim();

 private:
  std::unique_ptr<Buffer> allocate(size_t rounded);

  Id device_;
  std::multimap<size_t, std::unique_ptr<Buffer>> kept_;
  size_t kept_bytes_ = 0;
};

}  // namespace wherry::metal

#endif  // WHERRY_ENGINE_BACKENDS_METAL_MEMORY_H_
