// Runs kernels as Metal would, one thread at a time: each GPU thread is a fibre, which yields at
// barriers and at operations of its SIMD group.
//
// The emulator finds mistakes that give wrong numbers only now and then on a device: barriers that
// some threads of a group do not reach; threadgroup memory that is read before it is written (it
// starts as NaNs); missing barriers, because the order of threads changes from barrier to barrier
// and from group to group; and lanes that are not where the other lanes of their SIMD group are.
// The limits are those of the smallest Apple GPUs (family 4).
#include "emulator.h"

#include <tvm/ffi/error.h>
#include <tvm/ffi/function.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "../fibre.h"
#include "memory.h"

namespace emulator {
namespace {

constexpr int kMostThreads = 1024;
constexpr int kMostGroupMemory = 32768;
constexpr int kMostBuffers = 31;

struct Fibre {
  Stack<(64 << 10)> stack;
  unsigned position[3];
  int line = 0;       // source line of the barrier at which the thread waits; 0 if the thread ended
  int met = 0;        // source line at which it waits for the other lanes; 0 if it does not wait
  unsigned turn = 0;  // number of operations of its SIMD group so far
};

class Group {
 public:
  static Group& of_this_thread() {
    static thread_local Group group;
    return group;
  }

  void run(const Kernel& kernel, Thread thread, const unsigned* extents, bool backwards) {
    kernel_ = &kernel;
    thread_ = thread;
    if (kernel.memory != nullptr) {
      std::memset(kernel.memory, 0xff, static_cast<size_t>(kernel.memory_end - kernel.memory));
    }
    start(extents);
    do {
      backwards = !backwards;
      size_t groups = (count_ + lanes_ - 1) / lanes_;
      for (size_t i = 0; i < groups; ++i) run_simdgroup(backwards ? groups - 1 - i : i, backwards);
    } while (all_wait());
  }

  void wait(int line) {
    Fibre& fibre = *fibres_[running_];
    fibre.line = line;
    fibre.stack.leave();
  }

  const void* exchange(const void* mine, size_t bytes, int line) {
    Fibre& fibre = *fibres_[running_];
    if (count_ % lanes_ != 0) fail("asks lanes of a SIMD group that is not whole");
    if (bytes > kLaneBytes) fail("brings more than a lane can");
    // Two buffers alternate, because a lane may write again before another lane has read.
    char* place = met_[fibre.turn++ % 2].get();
    std::memcpy(place + running_ * kLaneBytes, mine, bytes);
    fibre.met = line;
    fibre.stack.leave();
    return place + running_ / lanes_ * lanes_ * kLaneBytes;
  }

  int lane() const { return static_cast<int>(running_ % lanes_); }
  int lanes() const { return static_cast<int>(lanes_); }
  void set_lanes(int lanes) { lanes_ = static_cast<size_t>(lanes); }

  void fail(const std::string& what) {
    failure_ = what;
    fibres_[running_]->stack.leave();
  }

 private:
  // Runs a SIMD group until its lanes are at a barrier or have ended.
  void run_simdgroup(size_t group, bool backwards) {
    size_t first = group * lanes_, size = std::min<size_t>(lanes_, count_ - first);
    bool again = true;
    while (again) {
      for (size_t i = 0; i < size; ++i) resume(first + (backwards ? size - 1 - i : i));
      for (size_t i = 0; i < size; ++i) check_together(first, first + i);
      again = fibres_[first]->met != 0;
      for (size_t i = 0; i < size; ++i) fibres_[first + i]->met = 0;
    }
  }

  void check_together(size_t first, size_t i) const {
    if (fibres_[i]->met == fibres_[first]->met) return;
    TVM_FFI_THROW(RuntimeError) << "kernel " << kernel_->name << ": thread " << first
                                << " is at line " << fibres_[first]->met << " and thread " << i
                                << " at line " << fibres_[i]->met
                                << " (0: elsewhere): a SIMD group does that with all its lanes";
  }

  static void enter() {
    Group& group = of_this_thread();
    Fibre& fibre = *group.fibres_[group.running_];
    Thread thread = group.thread_;
    thread.position = fibre.position;
    group.kernel_->call(thread);
    fibre.line = 0;
    fibre.stack.leave();  // for good
  }

  void start(const unsigned* extents) {
    count_ = size_t{extents[0]} * extents[1] * extents[2];
    while (fibres_.size() < count_) fibres_.push_back(std::make_unique<Fibre>());
    failure_.clear();
    for (size_t i = 0; i < count_; ++i) {
      Fibre& fibre = *fibres_[i];
      fibre.turn = 0;
      fibre.met = 0;
      fibre.position[0] = static_cast<unsigned>(i % extents[0]);
      fibre.position[1] = static_cast<unsigned>(i / extents[0] % extents[1]);
      fibre.position[2] = static_cast<unsigned>(i / extents[0] / extents[1]);
      fibre.stack.begin(enter);
    }
  }

  void resume(size_t i) {
    running_ = i;
    fibres_[i]->stack.enter();
    if (!failure_.empty()) {
      TVM_FFI_THROW(RuntimeError) << "kernel " << kernel_->name << " " << failure_;
    }
  }

  // Returns whether the threads wait at a barrier. Throws unless all threads or none wait there.
  bool all_wait() const {
    for (size_t i = 1; i < count_; ++i) {
      if (fibres_[i]->line != fibres_[0]->line) {
        TVM_FFI_THROW(RuntimeError)
            << "kernel " << kernel_->name << ": thread 0 is at line " << fibres_[0]->line
            << " and thread " << i << " at line " << fibres_[i]->line
            << " (0: its end): a barrier has to be reached by all threads of a group";
      }
    }
    return fibres_[0]->line != 0;
  }

  const Kernel* kernel_ = nullptr;
  Thread thread_{};
  std::vector<std::unique_ptr<Fibre>> fibres_;
  size_t count_ = 0;
  size_t running_ = 0;
  size_t lanes_ = 32;
  std::unique_ptr<char[]> met_[2] = {std::make_unique<char[]>(kMostThreads * kLaneBytes),
                                     std::make_unique<char[]>(kMostThreads * kLaneBytes)};
  std::string failure_;
};

[[noreturn]] void refuse(const Kernel& kernel, const std::string& what) {
  TVM_FFI_THROW(ValueError) << "kernel " << kernel.name << " " << what;
  throw;
}

void check_limits(const Kernel& kernel, const unsigned* extents) {
  unsigned threads = extents[3] * extents[4] * extents[5];
  if (threads > kMostThreads) refuse(kernel, "has groups of " + std::to_string(threads));
  auto memory = kernel.memory_end - kernel.memory;
  if (memory > kMostGroupMemory)
    refuse(kernel, "uses " + std::to_string(memory) + " bytes a group");
  int buffers = kernel.buffers + (kernel.scalars > 0 ? 1 : 0);
  if (buffers > kMostBuffers) refuse(kernel, "binds " + std::to_string(buffers) + " buffers");
}

void run(const Kernel& kernel, void* const* buffers, const void* scalars, const unsigned* extents) {
  check_limits(kernel, extents);
  unsigned groups = 0, block[3];
  for (block[2] = 0; block[2] < extents[2]; ++block[2]) {
    for (block[1] = 0; block[1] < extents[1]; ++block[1]) {
      for (block[0] = 0; block[0] < extents[0]; ++block[0]) {
        Thread thread{buffers, scalars, block, nullptr};
        Group::of_this_thread().run(kernel, thread, extents + 3, ++groups % 2 == 0);
      }
    }
  }
}

void launch(const Kernel& kernel, tvm::ffi::PackedArgs args) {
  int count = kernel.buffers + kernel.scalars;
  if (args.size() != count + kernel.axis_count) {
    refuse(kernel, "was called with " + std::to_string(args.size()) + " values");
  }
  std::vector<void*> buffers;
  for (int i = 0; i < kernel.buffers; ++i) {
    buffers.push_back(static_cast<Buffer*>(args[i].cast<void*>())->bytes.data());
  }
  std::vector<int64_t> scalars;  // all sizes and offsets that our kernels take are integers
  for (int i = kernel.buffers; i < count; ++i) scalars.push_back(args[i].cast<int64_t>());
  unsigned extents[6] = {1, 1, 1, 1, 1, 1};
  for (int i = 0; i < kernel.axis_count; ++i) {
    extents[kernel.axes[i]] = static_cast<unsigned>(args[count + i].cast<int64_t>());
  }
  run(kernel, buffers.data(), scalars.data(), extents);
}

}  // namespace
}  // namespace emulator

int metal_launch(const emulator::Kernel* kernel, const void* args, int count) {
  TVM_FFI_SAFE_CALL_BEGIN();
  emulator::launch(*kernel, {static_cast<const tvm::ffi::AnyView*>(args), count});
  TVM_FFI_SAFE_CALL_END();
}

char* metal_run(const emulator::Kernel* kernel, void* const* buffers, const void* scalars,
                const unsigned* extents) {
  try {
    emulator::run(*kernel, buffers, scalars, extents);
  } catch (const tvm::ffi::Error& error) {
    return strdup(std::string(error.message()).c_str());
  }
  return nullptr;
}

void metal_barrier(bool of_threadgroup_memory, int line) {
  // A barrier without threadgroup memory gets a negative line, which equals no other thread's, so
  // that all_wait throws.
  emulator::Group::of_this_thread().wait(of_threadgroup_memory ? line : -line);
}

const void* metal_exchange(const void* mine, int bytes, int line) {
  return emulator::Group::of_this_thread().exchange(mine, static_cast<size_t>(bytes), line);
}

int metal_lane() { return emulator::Group::of_this_thread().lane(); }

void metal_fail(const char* what) { emulator::Group::of_this_thread().fail(what); }

int metal_lanes() { return emulator::Group::of_this_thread().lanes(); }

void metal_set_lanes(int lanes) { emulator::Group::of_this_thread().set_lanes(lanes); }
