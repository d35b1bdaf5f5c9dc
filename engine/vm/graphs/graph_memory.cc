#include "vm/graphs/graph_memory.h"

#include <tvm/ffi/container/shape.h>
#include <tvm/ffi/dtype.h>
#include <tvm/ffi/function.h>

#include <mutex>
#include <utility>

namespace wherry {

namespace {

constexpr char kAllocate[] = "vm.builtin.alloc_storage";  // takes (vm, shape, device, dtype, scope)

thread_local GraphMemory* in_use = nullptr;

void allocate(const ffi::Function& otherwise, ffi::PackedArgs args, ffi::Any* result) {
  GraphMemory* storage = in_use;
  const int64_t device = storage == nullptr ? -1 : args[2].cast<int64_t>();
  if (device < 0) {  // device index -1 is the host
    otherwise.CallPacked(args, result);
    return;
  }
  const auto dtype = args[3].cast<DLDataType>();
  int64_t bytes = dtype.bits * dtype.lanes / 8;
  for (int64_t extent : args[1].cast<ffi::Shape>()) bytes *= extent;
  if (const ffi::Any* kept = storage->take(device, bytes)) {
    *result = *kept;
    return;
  }
  otherwise.CallPacked(args, result);
  storage->keep(device, bytes, *result);
}

}  // namespace

void GraphMemory::install() {
  static std::once_flag once;
  std::call_once(once, [] {
    ffi::Function otherwise = ffi::Function::GetGlobalRequired(kAllocate);
    auto replacement = [otherwise](ffi::PackedArgs args, ffi::Any* result) {
      allocate(otherwise, args, result);
    };
    ffi::Function::SetGlobal(kAllocate, ffi::Function::FromPacked(replacement), /*override=*/true);
  });
}

GraphMemory::Use::Use(GraphMemory& storage) : before_(std::exchange(in_use, &storage)) {
  for (Piece& piece : storage.pieces_) piece.taken = false;
}

GraphMemory::Use::~Use() { in_use = before_; }

const ffi::Any* GraphMemory::take(int64_t device, int64_t bytes) {
  for (Piece& piece : pieces_) {
    if (piece.taken || piece.device != device || piece.bytes != bytes) continue;
    piece.taken = true;
    return &piece.storage;
  }
  return nullptr;
}

void GraphMemory::keep(int64_t device, int64_t bytes, ffi::Any piece) {
  lost_ = lost_ || pieces_.size() == kMost;
  if (!lost_) pieces_.push_back({device, bytes, std::move(piece), true});
}

}  // namespace wherry
