// NVIDIA's driver, as far as the core calls it: streams that capture, and graphs.
//
// A graph has the kernels that were launched on a capturing stream, with the values that the host
// gave them. Playing it fails if memory that it was captured with has been freed since, where a
// device would read and write what others have there. emulated_cuda_fault() makes it fail
// otherwise.
#include "driver.h"

#include <tvm/ffi/error.h>
#include <tvm/ffi/extra/c_env_api.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "queue.h"

namespace emulator {
namespace {

struct Allocation {
  size_t bytes;
  uint64_t id;
};

struct Launch {
  const char* kernel;
  std::vector<std::pair<void*, uint64_t>> buffers;  // and the allocation that each lay in
  std::function<void()> run;
};

struct Graph {
  std::vector<Launch> launches;
  std::vector<std::pair<char*, std::string>> baked;  // see emulated_cuda_fault
};

struct Stream {
  std::unique_ptr<Graph> captured;  // null: it does not capture
  bool valid = true;
};

struct Driver {
  std::map<char*, Allocation> allocations;
  std::map<char*, size_t> writes;  // of the host, small ones
  uint64_t ids = 0;
  std::set<Stream*> streams;
  std::set<Graph*> graphs;
  std::map<void*, std::shared_ptr<Graph>> executables;
  std::string fault;
  uint64_t played = 0;
  uint64_t captured = 0;  // kernels
};

Driver& driver() {
  static auto* driver = new Driver;
  return *driver;
}

thread_local Stream* capturing = nullptr;

// 0: none has it.
uint64_t allocation_of(void* data) {
  auto after = driver().allocations.upper_bound(static_cast<char*>(data));
  if (after == driver().allocations.begin()) return 0;
  const auto& [begin, allocation] = *std::prev(after);
  return static_cast<char*>(data) < begin + allocation.bytes ? allocation.id : 0;
}

void require_memory(const char* kernel, void* data, uint64_t id) {
  if (id != 0 && allocation_of(data) == id) return;
  TVM_FFI_THROW(RuntimeError) << "kernel " << kernel << " of a graph has memory that was freed";
}

}  // namespace

bool has_fault(const char* name) { return driver().fault == name; }

bool is_allocated(void* data, size_t bytes) {
  Lock lock(device_mutex());
  const uint64_t id = allocation_of(data);
  return id != 0 && bytes > 0 && allocation_of(static_cast<char*>(data) + bytes - 1) == id;
}

void add_allocation(void* data, size_t bytes) {
  Lock lock(device_mutex());
  driver().allocations[static_cast<char*>(data)] = {bytes, ++driver().ids};
}

void remove_allocation(void* data) {
  Lock lock(device_mutex());
  auto entry = driver().allocations.find(static_cast<char*>(data));
  if (entry == driver().allocations.end()) {
    TVM_FFI_THROW(RuntimeError) << "cudaFree of what is no allocation";
  }
  std::memset(data, 0xff, entry->second.bytes);
  driver().allocations.erase(entry);
  auto& writes = driver().writes;
  writes.erase(writes.lower_bound(static_cast<char*>(data)),
               writes.lower_bound(static_cast<char*>(data) + entry->second.bytes));
}

void note_write(void* to, size_t bytes) {
  constexpr size_t kSmall = 64 << 10;
  Lock lock(device_mutex());
  if (bytes <= kSmall) driver().writes[static_cast<char*>(to)] = bytes;
}

void refuse_while_capturing(const char* what) {
  if (capturing == nullptr) return;
  capturing->valid = false;
  TVM_FFI_THROW(RuntimeError) << what << " while a stream is captured";
}

void submit(const char* kernel, const std::vector<void*>& buffers, std::function<void()> run) {
  auto* stream = static_cast<Stream*>(TVMFFIEnvGetStream(kDLCUDA, 0));
  if (!has_context()) TVM_FFI_THROW(RuntimeError) << "kernel " << kernel << " without a context";
  if (stream == nullptr) return ask(std::move(run));
  Lock lock(device_mutex());
  if (driver().streams.count(stream) == 0) TVM_FFI_THROW(RuntimeError) << "no such stream";
  if (!stream->captured) TVM_FFI_THROW(RuntimeError) << "a stream that captures nothing";
  if (has_fault("capture")) {
    stream->valid = false;
    TVM_FFI_THROW(RuntimeError) << "CUDALaunch Error: CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED";
  }
  Launch launch{kernel, {}, std::move(run)};
  for (void* data : buffers) launch.buffers.emplace_back(data, allocation_of(data));
  stream->captured->launches.push_back(std::move(launch));
  ++driver().captured;
}

namespace {

void play(Graph& graph) {
  for (auto& [to, bytes] : graph.baked) std::swap_ranges(bytes.begin(), bytes.end(), to);
  for (const Launch& launch : graph.launches) launch.run();
  for (auto& [to, bytes] : graph.baked) std::swap_ranges(bytes.begin(), bytes.end(), to);
}

}  // namespace
}  // namespace emulator

using namespace emulator;

extern "C" {

// What goes wrong from here on: "begin", "capture", "instantiate", "launch": the call of that name
// fails. "baked": a graph has what the host wrote before it, as if kernels had got that as numbers.
// "host memory", "event", "upload", "readback", "record", "wait": those of queue.cc. "": nothing.
void emulated_cuda_fault(const char* name) {
  Lock lock(device_mutex());
  driver().fault = name;
}

// Of graphs: how many were played, how many there are; kernels that were captured; other handles;
// how often a copy of the run time's made the host wait.
void emulated_cuda_counts(uint64_t* counts) {
  Lock lock(device_mutex());
  counts[0] = driver().played, counts[1] = driver().executables.size();
  counts[2] = driver().captured;
  counts[3] = driver().streams.size() + driver().graphs.size() + host_handles();
  counts[4] = waits();
}

int cuGetErrorName(int status, const char** name) {
  static const std::map<int, const char*> names = {
      {kInvalidValue, "CUDA_ERROR_INVALID_VALUE"},
      {kOutOfMemory, "CUDA_ERROR_OUT_OF_MEMORY"},
      {kInvalidContext, "CUDA_ERROR_INVALID_CONTEXT"},
      {kInvalidated, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED"}};
  auto entry = names.find(status);
  if (entry == names.end()) return kInvalidValue;
  *name = entry->second;
  return kSuccess;
}

int cuCtxGetCurrent(void** context) {
  *context = has_context() ? &driver() : nullptr;
  return kSuccess;
}
int cuCtxPushCurrent_v2(void* context) {
  if (context != &driver()) return kInvalidValue;
  return push_context() ? kSuccess : kInvalidValue;
}
int cuCtxPopCurrent_v2(void** context) {
  *context = &driver();
  return pop_context() ? kSuccess : kInvalidContext;
}

int cuStreamCreate(void** stream, unsigned flags) {
  if (flags != 1) return kInvalidValue;  // others would wait for it
  Lock lock(device_mutex());
  *stream = *driver().streams.insert(new Stream).first;
  return kSuccess;
}
int cuStreamDestroy_v2(void* handle) {
  Lock lock(device_mutex());
  auto* stream = static_cast<Stream*>(handle);
  if (driver().streams.erase(stream) == 0) return kInvalidValue;
  delete stream;
  return kSuccess;
}

int cuStreamBeginCapture_v2(void* handle, int mode) {
  Lock lock(device_mutex());
  auto* stream = static_cast<Stream*>(handle);
  if (has_fault("begin")) return kOutOfMemory;
  if (driver().streams.count(stream) == 0 || stream->captured || mode != 1) return kInvalidValue;
  stream->captured = std::make_unique<Graph>();
  stream->valid = true;
  capturing = stream;
  return kSuccess;
}
int cuStreamEndCapture(void* handle, void** result) {
  Lock lock(device_mutex());
  auto* stream = static_cast<Stream*>(handle);
  *result = nullptr;
  if (driver().streams.count(stream) == 0 || stream != capturing) return kInvalidValue;
  capturing = nullptr;
  std::unique_ptr<Graph> graph = std::move(stream->captured);
  if (!stream->valid) return kInvalidated;
  if (has_fault("baked")) {
    wait_for(submitted());
    for (const auto& [to, bytes] : driver().writes)
      graph->baked.emplace_back(to, std::string(to, bytes));
  }
  *result = *driver().graphs.insert(graph.release()).first;
  return kSuccess;
}

int cuGraphInstantiateWithFlags(void** executable, void* handle, unsigned long long) {
  Lock lock(device_mutex());
  auto* graph = static_cast<Graph*>(handle);
  if (has_fault("instantiate")) return kOutOfMemory;
  if (driver().graphs.count(graph) == 0) return kInvalidValue;
  auto instance = std::make_shared<Graph>(*graph);
  driver().executables[instance.get()] = instance;
  *executable = instance.get();
  return kSuccess;
}
int cuGraphDestroy(void* handle) {
  Lock lock(device_mutex());
  auto* graph = static_cast<Graph*>(handle);
  if (driver().graphs.erase(graph) == 0) return kInvalidValue;
  delete graph;
  return kSuccess;
}
int cuGraphLaunch(void* handle, void* stream) {
  Lock lock(device_mutex());
  if (!has_context()) return kInvalidContext;
  if (has_fault("launch")) return kOutOfMemory;
  auto entry = driver().executables.find(handle);
  if (entry == driver().executables.end() || stream != nullptr) return kInvalidValue;
  for (const Launch& launch : entry->second->launches) {
    for (const auto& [data, id] : launch.buffers) require_memory(launch.kernel, data, id);
  }
  ask([graph = entry->second] { play(*graph); });  // freed when it has ended
  ++driver().played;
  return kSuccess;
}
int cuGraphExecDestroy(void* handle) {
  Lock lock(device_mutex());
  return driver().executables.erase(handle) == 0 ? kInvalidValue : kSuccess;
}

}  // extern "C"
