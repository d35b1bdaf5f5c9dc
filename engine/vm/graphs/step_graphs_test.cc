#include "vm/graphs/step_graphs.h"

#include <tvm/ffi/container/shape.h>

#include "testing/testing.h"
#include "vm/staging.h"

namespace wherry {
namespace {

constexpr DLDataType kInt64{kDLInt, 64, 1};

// A fake device that runs kernels at once, or captures them.
class FakeDevice final : public Capturer {
 public:
  using Kernels = std::vector<std::function<void()>>;
  class Replayed final : public CapturedGraph {
   public:
    Replayed(FakeDevice& device, Kernels kernels) : device_(device), kernels_(std::move(kernels)) {}
    void replay() override {
      if (device_.fails == "play") throw Error(WHERRY_INTERNAL, "no play");
      for (const auto& kernel : kernels_) kernel();
    }

   private:
    FakeDevice& device_;
    Kernels kernels_;
  };

  std::unique_ptr<CapturedGraph> capture(const std::function<void()>& call) override {
    Kernels kernels;
    recorded_ = &kernels;
    call();
    recorded_ = nullptr;
    if (fails == "record") throw Error(WHERRY_INTERNAL, "no recording");
    return std::make_unique<Replayed>(*this, std::move(kernels));
  }

  void launch(std::function<void()> kernel) {
    if (recorded_ == nullptr) return kernel();
    recorded_->push_back(std::move(kernel));
  }

  std::string fails;

 private:
  Kernels* recorded_ = nullptr;
};

// Allocates a tensor as TVM's VM does, from a pool that reuses the memory of earlier calls.
ffi::Tensor allocated(int64_t elements = 1) {
  static const bool installed = [] {
    auto pool = [](ffi::PackedArgs args, ffi::Any* result) {
      *result = allocate_host({args[1].cast<ffi::Shape>()[0]}, kInt64);
    };
    ffi::Function::SetGlobal("vm.builtin.alloc_storage", ffi::Function::FromPacked(pool), true);
    GraphMemory::install();
    return true;
  }();
  CHECK(installed);
  auto allocate = ffi::Function::GetGlobalRequired("vm.builtin.alloc_storage");
  return allocate(nullptr, ffi::Shape({elements}), 0, kInt64, "global").cast<ffi::Tensor>();
}

int64_t& value(const ffi::Tensor& tensor) { return *static_cast<int64_t*>(tensor.data_ptr()); }

// Runs a fake model of two kernels that doubles one token in a fixed buffer.
struct Bench {
  explicit Bench(size_t added_later = 0) : p(static_cast<int64_t>(added_later)) {}

  StepResults call() {
    ++calls;
    if (broken) throw Error(WHERRY_INTERNAL, "a device that was lost");
    ffi::Tensor between = allocated(), result = allocated();
    const int64_t number = p;  // a kernel's scalar argument
    device->launch([this, between] { value(between) = token; });
    device->launch([between, result, number] { value(result) = 2 * value(between) + number; });
    return {result, {}};
  }

  int64_t step(int64_t of, StepGraphs::Key key = {1}, int lane = 0) {
    token = of;
    last = graphs.run(lane, key, [this] { return call(); });
    return value(last.result);
  }

  FakeDevice* device = new FakeDevice;
  StepGraphs graphs{std::unique_ptr<Capturer>(device)};
  int64_t token = 0, p;
  int calls = 0;
  bool broken = false;
  StepResults last;
};

TEST(the_fourth_step_of_a_key_is_played) {
  Bench bench;
  // The second step is captured, the third compared with its replay.
  const int calls[] = {1, 3, 4, 4, 4};
  for (int i = 0; i < 5; ++i) {
    CHECK_EQ(bench.step(10 + i), 2 * (10 + i));
    CHECK_EQ(bench.calls, calls[i]);
  }
  CHECK_EQ(bench.graphs.replayed(), 2u);
  CHECK_EQ(bench.graphs.given_up(), "");
}

TEST(keys_have_graphs_of_their_own) {
  Bench bench;
  for (int i = 0; i < 5; ++i) {
    for (int64_t p : {16, 32, 48}) {
      bench.p = p;
      CHECK_EQ(bench.step(i, {1, p}), 2 * i + p);
    }
  }
  CHECK_EQ(bench.graphs.captured(), 3u);
  CHECK_EQ(bench.graphs.replayed(), 6u);
}

TEST(a_key_that_forgets_a_size_is_detected) {
  Bench bench;
  for (int64_t p : {16, 16, 32, 32, 48}) {
    bench.p = p;
    CHECK_EQ(bench.step(p, {1}), 3 * p);  // the result is correct even if graphs were turned off
  }
  CHECK_CONTAINS(bench.graphs.given_up(), "gave other bits than its kernels");
  CHECK_EQ(bench.graphs.replayed(), 0u);
  CHECK_EQ(bench.graphs.captured(), 0u);
}

TEST(what_goes_wrong_costs_no_step) {
  for (const char* what : {"record", "play"}) {
    for (int from : {0, 3}) {
      Bench bench;
      for (int i = 0; i < 6; ++i) {
        if (i == from) bench.device->fails = what;
        CHECK_EQ(bench.step(i), 2 * i);
      }
      const bool too_late = from == 3 && bench.device->fails == "record";
      CHECK_EQ(bench.graphs.given_up().empty(), too_late);
    }
  }
}

TEST(a_step_that_fails_is_not_the_graphs_fault) {
  for (int failing : {0, 1, 2}) {
    Bench bench;
    for (int i = 0; i < 7; ++i) {
      bench.broken = i == failing;
      try {
        CHECK_EQ(bench.step(i), 2 * i);
        CHECK(!bench.broken);
      } catch (const Error& error) {
        CHECK(bench.broken);
      }
    }
    CHECK_EQ(bench.graphs.given_up(), "");
    CHECK(bench.graphs.replayed() >= 3);
  }
}

TEST(memory_from_elsewhere_is_detected) {
  Bench bench;
  ffi::Tensor own = allocate_host({1}, kInt64);
  auto call = [&] {
    bench.device->launch([&bench, own] { value(own) = bench.token; });
    return StepResults{own, {}};
  };
  for (int i = 0; i < 4; ++i) CHECK_EQ(value(bench.graphs.run(0, {1}, call).result), 0);
  CHECK_CONTAINS(bench.graphs.given_up(), "memory is not planned");
}

TEST(memory_of_ever_new_sizes_is_not_kept) {
  Bench bench;
  for (int64_t size = 2; size < 400; ++size) {
    bench.graphs.launch(0, [size] { return StepResults{allocated(size), {}}; });
  }
  for (int i = 0; i < 4; ++i) CHECK_EQ(bench.step(i), 2 * i);
  CHECK_CONTAINS(bench.graphs.given_up(), "memory is not planned");
}

TEST(without_a_capturer_steps_are_launched) {
  StepGraphs graphs(nullptr, "an old driver");
  for (int i = 0; i < 4; ++i) {
    CHECK_EQ(value(graphs.run(0, {1}, [] { return StepResults{allocated(), {}}; }).result), 0);
  }
  CHECK_EQ(graphs.given_up(), "an old driver");
}

TEST(results_stay_until_the_next_step_of_their_lane) {
  Bench bench;
  for (int i = 0; i < 4; ++i) {
    for (int lane : {0, 1}) bench.step(i, {1}, lane);
  }
  CHECK_EQ(bench.step(20, {1}, 0), 40);
  StepResults first = bench.last;
  CHECK_EQ(bench.step(30, {1}, 1), 60);
  CHECK_EQ(value(first.result), 40);
  CHECK_EQ(bench.graphs.replayed(), 4u);
}

TEST(the_least_recently_used_graph_goes) {
  Bench bench;
  const auto most = static_cast<int64_t>(StepGraphs::kMost);
  for (int64_t key = 0; key < most + 8; ++key) {
    for (int i = 0; i < 4; ++i) CHECK_EQ(bench.step(i, {key}), 2 * i);
  }
  CHECK_EQ(bench.graphs.captured(), StepGraphs::kMost);
  const int calls = bench.calls;
  bench.step(1, {8});
  CHECK_EQ(bench.calls, calls);
  bench.step(1, {7});
  CHECK_EQ(bench.calls, calls + 1);
}

TEST(other_devices_have_none) { CHECK(open_capturer(DLDevice{kDLCPU, 0}) == nullptr); }

}  // namespace
}  // namespace wherry
