// NVIDIA's driver, as far as copies are concerned that return before they are done.
//
// The bytes of a copy to the device are read when its turn comes, and those of a copy to the host
// are 0xff until then: whoever reads or writes such memory too early gets other tokens.
#include "queue.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "driver.h"

namespace emulator {
namespace {

struct Pinned {
  size_t bytes;
  uint64_t last = 0;  // asked for with it
};

struct Event {
  uint64_t behind = 0;  // what was asked for; 0: it was not recorded
};

struct Queue {
  std::recursive_mutex mutex;
  bool late = false;
  std::deque<std::function<void()>> left;
  uint64_t submitted = 0, waits = 0;
  std::map<char*, Pinned> pinned;
  std::set<Event*> events;
};

Queue& queue() {
  static auto* queue = new Queue;
  return *queue;
}

thread_local int pushed = 0;
thread_local bool current = false;

uint64_t done() { return queue().submitted - queue().left.size(); }

// Null: the driver does not know it, and would wait where it should not.
Pinned* pinned_at(const void* memory, size_t bytes) {
  char* data = static_cast<char*>(const_cast<void*>(memory));
  auto after = queue().pinned.upper_bound(data);
  if (after == queue().pinned.begin()) return nullptr;
  auto& [begin, block] = *std::prev(after);
  return data + bytes <= begin + block.bytes ? &block : nullptr;
}

// Asks for a copy, of which the host has `pinned`.
int ask_copy(Pinned* pinned, void* to, const void* from, size_t bytes) {
  ask([=] { std::memcpy(to, from, bytes); });
  pinned->last = queue().submitted;
  return kSuccess;
}

int refused(const char* fault) {
  if (!has_context()) return kInvalidContext;
  return has_fault(fault) ? kOutOfMemory : kSuccess;
}

}  // namespace

std::recursive_mutex& device_mutex() { return queue().mutex; }

void set_late(bool late) {
  Lock lock(queue().mutex);
  wait_for(queue().submitted);
  queue().late = late;
}

void ask(std::function<void()> run) {
  Lock lock(queue().mutex);
  queue().left.push_back(std::move(run));
  ++queue().submitted;
  if (!queue().late) wait_for(queue().submitted);
}

uint64_t submitted() { return queue().submitted; }

void wait_for(uint64_t count) {
  Lock lock(queue().mutex);
  while (done() < count) {
    std::function<void()> next = std::move(queue().left.front());
    queue().left.pop_front();
    next();
  }
}

void wait_for_all() {
  Lock lock(queue().mutex);
  queue().waits += !queue().left.empty();
  wait_for(queue().submitted);
}

uint64_t waits() { return queue().waits; }

size_t host_handles() { return queue().pinned.size() + queue().events.size(); }

void set_context() { current = true; }
bool has_context() { return current || pushed > 0; }
bool push_context() { return ++pushed > 0; }
bool pop_context() { return pushed > 0 && pushed-- > 0; }

}  // namespace emulator

using namespace emulator;

extern "C" {

// Whether the device is late from here on.
void emulated_cuda_late(int late) { set_late(late != 0); }

int cuMemHostAlloc(void** memory, size_t bytes, unsigned flags) {
  Lock lock(device_mutex());
  if (int status = refused("host memory")) return status;
  if (bytes == 0 || flags != 1) return kInvalidValue;
  char* data = static_cast<char*>(std::malloc(bytes));
  std::memset(data, 0xff, bytes);
  queue().pinned[data] = {bytes};
  *memory = data;
  return kSuccess;
}
int cuMemFreeHost(void* memory) {
  Lock lock(device_mutex());
  auto entry = queue().pinned.find(static_cast<char*>(memory));
  if (entry == queue().pinned.end() || entry->second.last > done()) return kInvalidValue;
  std::free(memory);
  queue().pinned.erase(entry);
  return kSuccess;
}

int cuMemcpyHtoDAsync_v2(uint64_t to, const void* from, size_t bytes, void* stream) {
  Lock lock(device_mutex());
  if (int status = refused("upload")) return status;
  auto* there = reinterpret_cast<char*>(to);
  Pinned* pinned = pinned_at(from, bytes);
  if (pinned == nullptr || stream != nullptr || !is_allocated(there, bytes)) return kInvalidValue;
  note_write(there, bytes);
  return ask_copy(pinned, there, from, bytes);
}
int cuMemcpyDtoHAsync_v2(void* to, uint64_t from, size_t bytes, void* stream) {
  Lock lock(device_mutex());
  if (int status = refused("readback")) return status;
  auto* there = reinterpret_cast<char*>(from);
  Pinned* pinned = pinned_at(to, bytes);
  if (pinned == nullptr || stream != nullptr || !is_allocated(there, bytes)) return kInvalidValue;
  std::memset(to, 0xff, bytes);
  return ask_copy(pinned, to, there, bytes);
}

int cuEventCreate(void** event, unsigned flags) {
  Lock lock(device_mutex());
  if (int status = refused("event")) return status;
  if (flags != 2) return kInvalidValue;  // others measure time
  *event = *queue().events.insert(new Event).first;
  return kSuccess;
}
int cuEventDestroy_v2(void* handle) {
  Lock lock(device_mutex());
  auto* event = static_cast<Event*>(handle);
  if (queue().events.erase(event) == 0) return kInvalidValue;
  delete event;
  return kSuccess;
}
int cuEventRecord(void* handle, void* stream) {
  Lock lock(device_mutex());
  if (int status = refused("record")) return status;
  auto* event = static_cast<Event*>(handle);
  if (queue().events.count(event) == 0 || stream != nullptr) return kInvalidValue;
  event->behind = submitted();
  return kSuccess;
}
int cuEventSynchronize(void* handle) {
  Lock lock(device_mutex());
  if (int status = refused("wait")) return status;
  auto* event = static_cast<Event*>(handle);
  if (queue().events.count(event) == 0) return kInvalidValue;
  wait_for(event->behind);
  return kSuccess;
}

}  // extern "C"
