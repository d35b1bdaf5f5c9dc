// Runs kernels as a GPU of NVIDIA's would, one thread at a time: a thread is a fibre, which yields
// at barriers and where a warp multiplies or its lanes exchange numbers.
//
// Finds what a device would answer with wrong numbers now and then: barriers that some threads of a
// block do not reach; shared memory that is read before it is written (it starts as NaNs); copies
// that are used before anybody waited for them (their place has NaNs until then) or by threads that
// no barrier parts from the one that waited (the order of threads changes from block to block).
#include "emulator.h"

#include <tvm/ffi/error.h>
#include <tvm/ffi/function.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "../fibre.h"
#include "driver.h"

namespace emulator {

Extents thread_index, block_index;

namespace {

constexpr size_t kLanes = 32, kMostThreads = 1024, kMostBlocksY = 65535;

// What a warp does when all its lanes are there, with what each has given.
using Together = void (*)(void* const* given);

enum class State { kReady, kAtBarrier, kInWarp, kEnded };

struct Copy {
  void* to;
  const void* from;
};

struct Fibre {
  Stack<(128 << 10)> stack;
  Extents position;
  State state;
  int line;  // of the barrier it waits at
  std::deque<std::vector<Copy>> copies;
  Together together;  // what its warp does with `given`
  void* given;
};

struct Product {
  float* sums;
  const uint32_t* a;
  uint32_t b[2];
};

struct Exchange {
  float value, result;
  int mask;
};

float half_value(uint32_t word, size_t which) {
  _Float16 value;
  uint16_t bits = static_cast<uint16_t>(word >> (16 * which));
  std::memcpy(&value, &bits, sizeof bits);
  return static_cast<float>(value);
}

// One of two neighbours, by all bits of a row and a column: how hardware rounds a sum nobody says.
// So what has the same bits here has them from the same numbers, not from zeros in their place.
float rounded(float sum, uint32_t row, uint32_t column) {
  bool other = ((row ^ column) * 0x9e3779b1u) >> 31;
  return other && sum != 0 && std::isfinite(sum) ? std::nextafter(sum, 0.0f) : sum;
}

uint32_t mixed(uint32_t hash, float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  return (std::rotl(hash, 5) ^ bits) * 0x85ebca6bu;
}

void multiply_warp(void* const* given) {
  auto lane_of = [&](size_t lane) { return static_cast<const Product*>(given[lane]); };
  float a[16][16], b[16][8];
  for (size_t lane = 0; lane < kLanes; ++lane) {
    const Product& own = *lane_of(lane);
    size_t group = lane / 4, place = lane % 4;
    for (size_t i = 0; i < 2; ++i) {
      for (size_t word = 0; word < 4; ++word) {
        a[group + word % 2 * 8][place * 2 + i + word / 2 * 8] = half_value(own.a[word], i);
      }
      for (size_t word = 0; word < 2; ++word) {
        b[place * 2 + i + word * 8][group] = half_value(own.b[word], i);
      }
    }
  }
  uint32_t rows[16] = {}, columns[8] = {};
  for (size_t k = 0; k < 16; ++k) {
    for (size_t row = 0; row < 16; ++row) rows[row] = mixed(rows[row], a[row][k]);
    for (size_t column = 0; column < 8; ++column)
      columns[column] = mixed(columns[column], b[k][column]);
  }
  for (size_t lane = 0; lane < kLanes; ++lane) {
    float* sums = lane_of(lane)->sums;
    for (size_t i = 0; i < 4; ++i) {
      size_t row = lane / 4 + i / 2 * 8, column = lane % 4 * 2 + i % 2;
      for (size_t k = 0; k < 16; ++k) sums[i] += a[row][k] * b[k][column];  // products are exact
      sums[i] = rounded(sums[i], rows[row], columns[column]);
    }
  }
}

void exchange_in_warp(void* const* given) {
  for (size_t lane = 0; lane < kLanes; ++lane) {
    auto* own = static_cast<Exchange*>(given[lane]);
    own->result = static_cast<const Exchange*>(given[lane ^ static_cast<size_t>(own->mask)])->value;
  }
}

class Block {
 public:
  static Block& current() {
    static Block block;
    return block;
  }

  void run(const Kernel& kernel, void* const* buffers, const int64_t* scalars, Extents threads,
           size_t shared_bytes, bool backwards) {
    kernel_ = &kernel, buffers_ = buffers, scalars_ = scalars;
    std::memset(kernel.shared, 0xff, shared_bytes);
    start(threads);
    while (true) {
      bool ran = false;
      for (size_t i = 0; i < count_; ++i) {
        size_t at = backwards ? count_ - 1 - i : i;
        if (fibres_[at]->state != State::kReady) continue;
        ran = true;
        resume(at);
      }
      if (!ran && !pass_barrier()) return;
      backwards = !backwards;
    }
  }

  Fibre& running() { return *fibres_[running_]; }

  void pause(State state, int line) {
    running().state = state;
    running().line = line;
    running().stack.leave();
  }

  void in_warp(Together together, void* given) {
    running().together = together;
    running().given = given;
    running().state = State::kInWarp;
    size_t first = running_ / kLanes * kLanes;
    for (size_t i = first; i < first + kLanes; ++i) {
      if (fibres_[i]->state != State::kInWarp) {
        pause(State::kInWarp, 0);
        return;
      }
    }
    void* all[kLanes];  // the last lane is here
    for (size_t i = 0; i < kLanes; ++i) {
      all[i] = fibres_[first + i]->given;
      if (fibres_[first + i]->together != together) refuse("lanes of a warp do different things");
    }
    together(all);
    for (size_t i = first; i < first + kLanes; ++i) fibres_[i]->state = State::kReady;
  }

  [[noreturn]] void refuse(const std::string& what) {
    TVM_FFI_THROW(RuntimeError) << "kernel " << kernel_->name << ": " << what;
    throw;
  }

 private:
  static void enter() {
    Block& block = current();
    block.kernel_->call(block.buffers_, block.scalars_);
    block.running().state = State::kEnded;
    block.running().line = 0;
    block.running().stack.leave();  // for good
  }

  void start(Extents threads) {
    count_ = size_t{threads.x} * threads.y * threads.z;
    while (fibres_.size() < count_) fibres_.push_back(std::make_unique<Fibre>());
    for (size_t i = 0; i < count_; ++i) {
      Fibre& fibre = *fibres_[i];
      auto at = static_cast<unsigned>(i);
      fibre.position = {at % threads.x, at / threads.x % threads.y, at / threads.x / threads.y};
      fibre.state = State::kReady;
      fibre.line = 0;
      fibre.copies.assign(1, {});
      fibre.stack.begin(enter);
    }
  }

  void resume(size_t i) {
    running_ = i;
    thread_index = fibres_[i]->position;
    fibres_[i]->stack.enter();
    Fibre& fibre = *fibres_[i];
    if (fibre.state != State::kEnded) return;
    for (const auto& batch : fibre.copies) {
      if (!batch.empty()) refuse("a thread ends before its copies");
    }
  }

  // Whether there is one; all threads or none stand there.
  bool pass_barrier() {
    for (size_t i = 0; i < count_; ++i) {
      Fibre &fibre = *fibres_[i], &first = *fibres_[0];
      if (fibre.state != first.state || fibre.line != first.line || fibre.state == State::kInWarp) {
        refuse("thread 0 waits at line " + std::to_string(first.line) + " and thread " +
               std::to_string(i) + " at line " + std::to_string(fibre.line) +
               " (or with its warp): not all threads come there");
      }
    }
    if (fibres_[0]->state == State::kEnded) return false;
    for (size_t i = 0; i < count_; ++i) fibres_[i]->state = State::kReady;
    return true;
  }

  const Kernel* kernel_ = nullptr;
  void* const* buffers_ = nullptr;
  const int64_t* scalars_ = nullptr;
  std::vector<std::unique_ptr<Fibre>> fibres_;
  size_t count_ = 0;
  size_t running_ = 0;
};

[[noreturn]] void refuse(const Kernel& kernel, const std::string& what) {
  TVM_FFI_THROW(ValueError) << "kernel " << kernel.name << " " << what;
  throw;
}

void check(const Kernel& kernel, const int64_t* extents) {
  size_t threads = static_cast<size_t>(extents[3] * extents[4] * extents[5]);
  if (threads == 0 || threads > kMostThreads || threads % kLanes != 0) {
    refuse(kernel, "has blocks of " + std::to_string(threads) + " threads");
  }
  if (static_cast<size_t>(extents[6]) > kernel.most_shared) {
    refuse(kernel, "takes " + std::to_string(extents[6]) + " bytes of shared memory");
  }
  if (extents[0] < 1 || extents[1] < 1 || static_cast<size_t>(extents[1]) > kMostBlocksY) {
    refuse(kernel,
           "has a grid of " + std::to_string(extents[0]) + " x " + std::to_string(extents[1]));
  }
}

void run(const Kernel& kernel, const std::vector<void*>& buffers,
         const std::vector<int64_t>& scalars, Extents grid, Extents block, size_t shared_bytes) {
  unsigned blocks = 0;
  for (unsigned y = 0; y < grid.y; ++y) {
    for (unsigned x = 0; x < grid.x; ++x) {
      block_index = {x, y, 0};
      Block::current().run(kernel, buffers.data(), scalars.data(), block, shared_bytes,
                           ++blocks % 2 == 0);
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
    buffers.push_back(args[i].cast<void*>());
  }
  std::vector<int64_t> scalars;
  for (int i = kernel.buffers; i < count; ++i) scalars.push_back(args[i].cast<int64_t>());
  int64_t extents[7] = {1, 1, 1, 1, 1, 1, 0};
  for (int i = 0; i < kernel.axis_count; ++i) {
    extents[kernel.axes[i]] = args[count + i].cast<int64_t>();
  }
  check(kernel, extents);
  auto at = [&](int i) { return static_cast<unsigned>(extents[i]); };
  submit(kernel.name, buffers,
         [&kernel, buffers, scalars, grid = Extents{at(0), at(1), 1},
          block = Extents{at(3), at(4), at(5)}, shared = static_cast<size_t>(extents[6])] {
           run(kernel, buffers, scalars, grid, block, shared);
         });
}

}  // namespace

void sync_block(int line) { Block::current().pause(State::kAtBarrier, line); }

void multiply_add(float* sums, const uint32_t* a, uint32_t b0, uint32_t b1) {
  Product own{sums, a, {b0, b1}};
  Block::current().in_warp(multiply_warp, &own);
}

float shuffle_xor(float value, int mask) {
  Exchange own{value, 0, mask};
  Block::current().in_warp(exchange_in_warp, &own);
  return own.result;
}

void start_copy(void* to, const void* from) {
  auto aligned = [](const void* p) { return reinterpret_cast<uintptr_t>(p) % 16 == 0; };
  if (!aligned(to) || !aligned(from)) Block::current().refuse("a copy is not aligned");
  std::memset(to, 0xff, 16);
  Block::current().running().copies.back().push_back({to, from});
}

void end_batch_of_copies() { Block::current().running().copies.emplace_back(); }

void wait_for_copies(int batches) {
  auto& copies = Block::current().running().copies;  // the last batch is not ended
  while (copies.size() > static_cast<size_t>(batches) + 1) {
    for (const Copy& copy : copies.front()) std::memcpy(copy.to, copy.from, 16);
    copies.pop_front();
  }
}

namespace {

struct Phases {  // a barrier's 8 bytes
  int16_t arrivals, missing;
  int32_t bytes : 31;  // that are still expected; negative if they have come before
  uint32_t parity : 1;

  void look() {
    if (missing < 0) Block::current().refuse("more arrive at a barrier than it counts");
    if (missing == 0 && bytes == 0) missing = arrivals, parity ^= 1;
  }
};
static_assert(sizeof(Phases) == 8);

Phases& phases(void* barrier) {
  if (reinterpret_cast<uintptr_t>(barrier) % 8 != 0)
    Block::current().refuse("a barrier is not aligned");
  return *static_cast<Phases*>(barrier);
}

int waiting_together = 0;
unsigned times_together = 0;

}  // namespace

void start_barrier(void* barrier, int arrivals) {
  phases(barrier) = {static_cast<int16_t>(arrivals), static_cast<int16_t>(arrivals), 0, 0};
}

void wait_for(void* barrier, unsigned parity) {
  while (phases(barrier).parity == parity) Block::current().pause(State::kReady, 0);
}

void arrive(void* barrier, int expected_bytes) {
  Phases& own = phases(barrier);
  own.bytes += expected_bytes;
  --own.missing;
  own.look();
}

void arrive_after_copies(void* barrier) {
  end_batch_of_copies();
  wait_for_copies(0);
  arrive(barrier, 0);
}

void copy_in_bulk(void* to, const void* from, int bytes, void* barrier) {
  for (const void* p : {const_cast<const void*>(to), from}) {
    if (reinterpret_cast<uintptr_t>(p) % 16 != 0 || bytes % 16 != 0)
      Block::current().refuse("a copy in bulk is not aligned");
  }
  std::memcpy(to, from, static_cast<size_t>(bytes));
  Phases& own = phases(barrier);
  own.bytes -= bytes;
  own.look();
}

void sync_some(int threads) {
  unsigned before = times_together;
  if (++waiting_together == threads) {
    waiting_together = 0;
    ++times_together;
  }
  while (before == times_together) Block::current().pause(State::kReady, 0);
}

}  // namespace emulator

int cuda_launch(const emulator::Kernel* kernel, const void* args, int count) {
  TVM_FFI_SAFE_CALL_BEGIN();
  emulator::launch(*kernel, {static_cast<const tvm::ffi::AnyView*>(args), count});
  TVM_FFI_SAFE_CALL_END();
}
