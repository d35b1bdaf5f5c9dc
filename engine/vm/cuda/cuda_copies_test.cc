#include "vm/cuda/cuda_copies.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <set>

#include "testing/testing.h"
#include "vm/staging.h"

#ifdef WHERRY_HAS_CUDA
namespace wherry {
namespace {

constexpr DLDataType kInt32{kDLInt, 32, 1};
constexpr DLDevice kDevice{kDLCUDA, 0};

// A fake driver whose device runs each command as late as allowed, and accesses the host's memory
// only then.
struct Late {
  std::deque<std::function<void()>> left;
  size_t done = 0, copied = 0;     // commands run so far; commands run at the last copy
  std::map<void*, size_t> events;  // maps an event to the number of commands before it
  std::set<void*> memory;
  int contexts = 0;
  bool freed_early = false;
  std::string fails;  // name of the driver call that fails; empty if none does

  void run(size_t count) {
    for (; done < count; ++done) {
      left.front()();
      left.pop_front();
    }
  }
  size_t submitted() const { return done + left.size(); }
  int status(const char* call) const { return contexts == 0 ? 201 : fails == call ? 2 : 0; }
  int copy(void* to, const void* from, size_t bytes) {
    left.push_back([=] { std::memcpy(to, from, bytes); });
    copied = submitted();
    return 0;
  }
};

Late* late = nullptr;

CudaDriver driver_of_late() {
  CudaDriver driver{};
  driver.error_name = [](int, const char** name) { return *name = "CUDA_ERROR_OF_A_TEST", 0; };
  driver.get_context = [](void** context) { return *context = late, 0; };
  driver.push_context = [](void*) { return ++late->contexts, 0; };
  driver.pop_context = [](void** context) { return *context = late, --late->contexts, 0; };
  driver.allocate_host = [](void** memory, size_t bytes, unsigned) {
    if (int status = late->status("allocate_host")) return status;
    return late->memory.insert(*memory = std::malloc(bytes)), 0;
  };
  driver.free_host = [](void* memory) {
    late->freed_early =
        late->freed_early || late->done < late->copied || late->memory.count(memory) == 0;
    late->memory.erase(memory);
    return std::free(memory), 0;
  };
  driver.copy_to_device = [](uint64_t to, const void* from, size_t bytes, void*) {
    if (int status = late->status("copy_to_device")) return status;
    return late->copy(reinterpret_cast<void*>(to), from, bytes);
  };
  driver.copy_to_host = [](void* to, uint64_t from, size_t bytes, void*) {
    if (int status = late->status("copy_to_host")) return status;
    std::memset(to, 0xff, bytes);
    return late->copy(to, reinterpret_cast<void*>(from), bytes);
  };
  driver.create_event = [](void** event, unsigned) {
    if (int status = late->status("create_event")) return status;
    return late->events[*event = new char] = 0, 0;
  };
  driver.destroy_event = [](void* event) {
    late->events.erase(event);
    return delete static_cast<char*>(event), 0;
  };
  driver.record_event = [](void* event, void*) {
    if (int status = late->status("record_event")) return status;
    return late->events.at(event) = late->submitted(), 0;
  };
  driver.wait_for_event = [](void* event) {
    if (int status = late->status("wait_for_event")) return status;
    return late->run(late->events.at(event)), 0;
  };
  return driver;
}

ffi::Tensor tensor(std::vector<int32_t> values) {
  ffi::Tensor result = allocate_host({static_cast<int64_t>(values.size())}, kInt32);
  std::copy(values.begin(), values.end(), static_cast<int32_t*>(result.data_ptr()));
  return result;
}
std::vector<int32_t> values(const ffi::Tensor& tensor) {
  const auto* first = reinterpret_cast<const int32_t*>(bytes_of(tensor));
  return {first, first + tensor.numel()};
}

// Runs a fake model whose result is its input plus a thousand. Host tensors stand in for device
// tensors.
struct Bench {
  explicit Bench(std::string fails = {}) {
    late = &device;
    device.fails = std::move(fails);
    copies = open_cuda_copies(driver, kDevice, {2 * kAlignment, kAlignment});
    device.fails.clear();
  }
  void close() {
    device.fails.clear();
    copies.reset();
    CHECK(!device.freed_early);
    CHECK(device.memory.empty() && device.events.empty() && device.contexts == 0);
  }

  uint64_t launch(std::vector<int32_t> given) {
    copies->begin();
    ffi::Tensor host = tensor(given);
    written = copies->write(host, input);
    // The caller may change the host array at once.
    std::fill_n(static_cast<int32_t*>(host.data_ptr()), 2, -1);
    run();
    return copies->finish(output);
  }
  void run() {
    device.left.push_back([this] {
      for (int i = 0; i < 2; ++i) at(output, i) = at(input, i) + 1000;
    });
  }
  // Returns the result of take(), or an empty list if take() returns false.
  std::vector<int32_t> take(uint64_t step) {
    ffi::Tensor host = tensor({0, 0});
    return copies->take(step, host) ? values(host) : std::vector<int32_t>();
  }
  static int32_t& at(const ffi::Tensor& tensor, int i) {
    return static_cast<int32_t*>(tensor.data_ptr())[i];
  }

  Late device;
  const CudaDriver driver = driver_of_late();
  const ffi::Tensor input = tensor({0, 0}), output = tensor({0, 0});
  std::unique_ptr<StepCopies> copies;
  bool written = false;
};

using Values = std::vector<int32_t>;

TEST(a_step_is_done_when_it_is_taken) {
  Bench bench;
  const uint64_t step = bench.launch({1, 2});
  CHECK(bench.written && step != 0);
  CHECK_EQ(bench.device.done, 0u);
  CHECK(bench.take(step) == Values({1001, 1002}));
  bench.close();
}

TEST(two_steps_in_flight_have_places_of_their_own) {
  Bench bench;
  uint64_t before = bench.launch({0, 1});
  for (int i = 1; i < 20; ++i) {
    const uint64_t next = bench.launch({2 * i, 2 * i + 1});
    CHECK(bench.take(before) == Values({1000 + 2 * i - 2, 1000 + 2 * i - 1}));
    // The next step's three commands remain, because take() does not wait for them.
    CHECK_EQ(bench.device.left.size(), 3u);
    before = next;
  }
  bench.close();
}

TEST(a_place_that_is_taken_again_is_waited_for) {
  Bench bench;
  bench.launch({1, 2});
  const uint64_t second = bench.launch({3, 4});
  bench.launch({5, 6});  // the results of the two earlier steps were not taken
  CHECK_EQ(bench.device.done, 3u);
  CHECK(bench.take(second) == Values({1003, 1004}));
  bench.close();
}

TEST(a_step_that_was_not_finished_is_waited_for) {
  Bench bench;
  bench.copies->begin();
  // After this write, the step's kernels fail to launch.
  CHECK(bench.copies->write(tensor({7, 8}), bench.input));
  bench.run();
  bench.launch({1, 2});
  bench.launch({3, 4});
  CHECK(bench.take(1).empty());
  CHECK_EQ(bench.device.done, 5u);  // the five commands before the buffer was reused have run
  CHECK_EQ(bench.at(bench.output, 0), 1001);
  bench.close();
}

TEST(what_is_not_known_is_not_given) {
  Bench bench;
  CHECK(bench.take(0).empty());
  CHECK(!bench.copies->write(tensor({1, 2}), bench.input));  // fails, because no step has begun
  CHECK_EQ(bench.copies->finish(bench.output), 0u);
  const uint64_t step = bench.launch({1, 2});
  CHECK(!bench.copies->take(step, tensor({0})));
  bench.launch({3, 4});
  bench.launch({5, 6});
  CHECK(bench.take(step).empty());
  bench.copies->begin();
  CHECK_EQ(bench.copies->finish(ffi::Tensor()), 0u);
  CHECK_EQ(bench.copies->given_up(), "");
  bench.close();
}

TEST(what_has_no_room_goes_another_way) {
  Bench bench;
  bench.copies->begin();
  const ffi::Tensor small = tensor(Values(8)), large = tensor(Values(33));
  CHECK(!bench.copies->write(large, large));
  CHECK(bench.copies->write(small, small));
  CHECK(bench.copies->write(small, small));
  CHECK(!bench.copies->write(small, small));
  CHECK_EQ(bench.copies->finish(large), 0u);
  CHECK_EQ(bench.copies->given_up(), "");
  bench.close();
}

TEST(any_error_ends_it_and_nothing_is_left) {
  const std::pair<const char*, const char*> calls[] = {{"copy_to_device", "cuMemcpyHtoDAsync"},
                                                       {"copy_to_host", "cuMemcpyDtoHAsync"},
                                                       {"record_event", "cuEventRecord"},
                                                       {"wait_for_event", "cuEventSynchronize"}};
  for (const auto& [fails, name] : calls) {
    Bench bench;
    uint64_t before = bench.launch({1, 2});
    bench.device.fails = fails;
    const uint64_t next = bench.launch({3, 4});
    const bool took = !bench.take(before).empty();
    CHECK(!took || next == 0);
    CHECK_CONTAINS(bench.copies->given_up(), concat(name, " failed with CUDA_ERROR_OF_A_TEST (2)"));
    bench.device.fails.clear();
    CHECK_EQ(bench.launch({5, 6}), 0u);
    CHECK(!bench.written && bench.take(next).empty());
    bench.close();
  }
}

TEST(a_driver_without_memory_for_it_says_so) {
  for (const char* fails : {"allocate_host", "create_event"}) {
    Late device;
    late = &device;
    device.fails = fails;
    const CudaDriver driver = driver_of_late();
    CHECK_CONTAINS(ERROR_OF(WHERRY_INTERNAL, open_cuda_copies(driver, kDevice, {64, 64})),
                   "failed with");
    CHECK(device.memory.empty() && device.events.empty() && device.contexts == 0);
  }
}

TEST(devices_that_are_not_cuda_have_none) {
  CHECK(open_step_copies(DLDevice{kDLCPU, 0}, {64, 64}) == nullptr);
}

}  // namespace
}  // namespace wherry
#endif
