// Memory for what lies between a step's kernels, at the same addresses each time.
#ifndef WHERRY_ENGINE_MODEL_GRAPHS_KEPT_STORAGE_H_
#define WHERRY_ENGINE_MODEL_GRAPHS_KEPT_STORAGE_H_

#include <tvm/ffi/any.h>

#include <cstdint>
#include <vector>

namespace wherry {

namespace ffi = tvm::ffi;

// TVM's VM asks its pool for memory at each call and gives it back at the end, to whoever asks
// next; what a graph has recorded writes there for as long as it lives. While one of these is in
// use, the calls of this thread get its memory instead: what an earlier call had, as far as sizes
// agree, no piece twice in one use. So it is as large as the largest call, as the pool would be.
class KeptStorage {
 public:
  // VMs that are made from here on ask here. Once is enough; costs others a test a piece.
  static void install();

  class Use {
   public:
    explicit Use(KeptStorage& storage);
    ~Use();
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

   private:
    KeptStorage* const before_;
  };

  // Whether all that was asked for while it was in use is kept, and something was.
  bool has_all() const { return !pieces_.empty() && !lost_; }

  // One that is not taken, of an allocation's device (an index of the VM's) and bytes; null: none.
  const ffi::Any* take(int64_t device, int64_t bytes);
  // Keeps an unused one of that; it is taken.
  void keep(int64_t device, int64_t bytes, ffi::Any piece);

 private:
  struct Piece {
    int64_t device, bytes;
    ffi::Any storage;
    bool taken;
  };

  static constexpr size_t kMost = 256;  // pieces; more have sizes that were not planned

  std::vector<Piece> pieces_;
  bool lost_ = false;
};

}  // namespace wherry

#endif  // WHERRY_ENGINE_MODEL_GRAPHS_KEPT_STORAGE_H_
