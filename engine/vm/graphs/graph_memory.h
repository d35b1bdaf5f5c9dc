// The memory of captured steps' intermediate tensors, which has the same addresses in each replay.
#ifndef WHERRY_ENGINE_VM_GRAPHS_GRAPH_MEMORY_H_
#define WHERRY_ENGINE_VM_GRAPHS_GRAPH_MEMORY_H_

#include <tvm/ffi/any.h>

#include <cstdint>
#include <vector>

namespace wherry {

namespace ffi = tvm::ffi;

// Replaces the pool from which TVM's VM allocates intermediate tensors. The VM returns them to its
// pool at the end of a call, and later calls reuse them, but a captured graph would still write
// there. While a Use of this object exists, this thread's calls allocate from it instead: they get
// the pieces of earlier calls where sizes agree, each piece once in a Use. So it grows to the size
// of the largest call, as the pool would.
class GraphMemory {
 public:
  // Redirects allocations of VMs that are created from now on; allocations in other VMs cost one
  // more test. Call it once.
  static void install();

  class Use {
   public:
    explicit Use(GraphMemory& storage);
    ~Use();
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

   private:
    GraphMemory* const before_;
  };

  // Whether the memory still has every piece that was allocated during a Use, and at least one.
  bool has_all() const { return !pieces_.empty() && !lost_; }

  // Takes a free piece of this device (an index of the VM's devices) and size; returns null if
  // there is none.
  const ffi::Any* take(int64_t device, int64_t bytes);
  // Adds a new piece of memory, which counts as taken.
  void keep(int64_t device, int64_t bytes, ffi::Any piece);

 private:
  struct Piece {
    int64_t device, bytes;
    ffi::Any storage;
    bool taken;
  };

  // Upper bound on pieces; more would mean that the compiler did not plan sizes.
  static constexpr size_t kMost = 256;

  std::vector<Piece> pieces_;
  bool lost_ = false;
};

}  // namespace wherry

#endif  // WHERRY_ENGINE_VM_GRAPHS_GRAPH_MEMORY_H_
