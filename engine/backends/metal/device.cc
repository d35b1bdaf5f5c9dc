#include "backends/metal/device.h"

#include <tvm/ffi/error.h>

#include <cstring>
#include <utility>

namespace wherry::metal {

namespace {

// Threads of a group that every GPU since A11 allows; a kernel's own limit may be lower, see
// Pipelines.
constexpr int64_t kThreadsPerGroup = 1024;
constexpr int64_t kSimdWidth = 32;

Buffer& buffer_of(const void* data) {
  return *const_cast<Buffer*>(static_cast<const Buffer*>(data));
}

bool can_blit(size_t from_offset, size_t to_offset, size_t bytes) {
  return (from_offset | to_offset | bytes) % kBlitAlignment == 0;
}

backends::DeviceList enumerate() {
  AutoreleasePool pool;
  backends::DeviceList list;
  Own device(MTLCreateSystemDefaultDevice());
  if (device) list.devices.push_back(std::make_unique<MetalDevice>(std::move(device)));
  return list;
}

}  // namespace

MetalDevice::MetalDevice(Own device)
    : device_(std::move(device)), stream_(device_.get()), memory_(device_.get()) {}

std::string MetalDevice::name() const { return text_of(Api::get().name(device_.get())); }

bool MetalDevice::supports_family(Int family) const {
  return Api::get().supports_family(device_.get(), family) != 0;
}

backends::DeviceFacts MetalDevice::facts() const {
  AutoreleasePool pool;
  const Api& metal = Api::get();
  backends::DeviceFacts facts;
  facts.name = name();
  facts.driver = "Metal of " + system_version();
  // What Metal recommends is what the GPU can use without slowing down, not the machine's memory.
  facts.memory = metal.recommended_max_working_set_size(device_.get());
  const uint64_t used = metal.current_allocated_size(device_.get());
  facts.available_memory = used < facts.memory ? static_cast<int64_t>(facts.memory - used) : 0;
  facts.largest_buffer = metal.max_buffer_length(device_.get());
  facts.threads_per_block = kThreadsPerGroup;
  facts.shared_memory = static_cast<int64_t>(metal.max_threadgroup_memory_length(device_.get()));
  facts.warp_size = kSimdWidth;
  return facts;
}

void MetalDevice::refuse(size_t bytes) const {
  const Api& metal = Api::get();
  TVM_FFI_THROW(MemoryError)
      << "Metal: no memory for a tensor of " << bytes << " bytes; " << name() << " allows "
      << metal.max_buffer_length(device_.get()) << " a buffer and recommends "
      << metal.recommended_max_working_set_size(device_.get()) << " in all, of which this program "
      << "has " << metal.current_allocated_size(device_.get())
      << ". Take a smaller KV cache (option \"kv_memory\"), --context or --prefill-chunk, or "
         "4-bit weights (--quant q4f16_1)";
  throw;
}

void* MetalDevice::allocate(size_t bytes) {
  Call call(*this);
  std::unique_ptr<Buffer> buffer;
  if (bytes <= Api::get().max_buffer_length(device_.get())) buffer = memory_.take(bytes);
  if (buffer == nullptr) refuse(bytes);
  ++tensors_;
  return buffer.release();
}

void MetalDevice::free(void* data) {
  Call call(*this);
  for (Fetched& fetched : fetched_) {
    if (fetched.from == data) drop(fetched);
  }
  memory_.give(std::unique_ptr<Buffer>(static_cast<Buffer*>(data)));
  if (--tensors_ > 0) return;
  stream_.abandon();  // no model is loaded
  for (Fetched& fetched : fetched_) drop(fetched);
  memory_.trim();
}

void MetalDevice::drop(Fetched& fetched) {
  fetched.from = nullptr;
  if (fetched.here != nullptr) memory_.give(std::move(fetched.here));
}

std::unique_ptr<Buffer> MetalDevice::idle_buffer(size_t bytes) {
  auto buffer = memory_.take(bytes, [this](uint64_t number) { return stream_.done(number); });
  if (buffer == nullptr) refuse(bytes);
  return buffer;
}

void MetalDevice::launch(const Launch& launch) {
  Call call(*this);
  const Api& metal = Api::get();
  Id encoder = stream_.compute();
  stream_.set_pipeline(launch.pipeline);
  UInt index = 0;
  for (const Argument& argument : launch.tensors) {
    metal.set_buffer(encoder, argument.buffer->object.get(), 0, index++);
    argument.buffer->used = stream_.recorded();
    if (argument.written) argument.buffer->written = stream_.recorded();
  }
  if (!launch.numbers.empty()) {
    metal.set_bytes(encoder, launch.numbers.data(), launch.numbers.size() * sizeof(uint64_t),
                    index);
  }
  metal.dispatch(encoder, launch.groups, launch.threads);
}

void MetalDevice::record_copy(Buffer& from, size_t from_offset, Buffer& to, size_t to_offset,
                              size_t bytes) {
  Id encoder = stream_.copies();
  Api::get().copy(encoder, from.object.get(), from_offset, to.object.get(), to_offset, bytes);
  from.used = to.used = to.written = stream_.recorded();
}

void MetalDevice::copy(const void* from, size_t from_offset, void* to, size_t to_offset,
                       size_t bytes) {
  Call call(*this);
  Buffer &source = buffer_of(from), &target = buffer_of(to);
  if (can_blit(from_offset, to_offset, bytes)) {
    record_copy(source, from_offset, target, to_offset, bytes);
    return;
  }
  stream_.wait_for(source.written);
  stream_.wait_for(target.used);
  std::memcpy(target.host + to_offset, source.host + from_offset, bytes);
}

// If commands use the memory, the device copies the bytes after them, from a buffer of their own.
void MetalDevice::write(const char* host, void* to, size_t to_offset, size_t bytes) {
  Call call(*this);
  Buffer& target = buffer_of(to);
  const bool idle = stream_.done(target.used);
  if (!idle && can_blit(0, to_offset, bytes)) {
    std::unique_ptr<Buffer> staged = idle_buffer(bytes);
    std::memcpy(staged->host, host, bytes);
    record_copy(*staged, 0, target, to_offset, bytes);
    memory_.give(std::move(staged));
    return;
  }
  stream_.wait_for(target.used);
  std::memcpy(target.host + to_offset, host, bytes);
}

void MetalDevice::read(const void* from, size_t from_offset, char* host, size_t bytes) {
  Call call(*this);
  Buffer& source = buffer_of(from);
  stream_.wait_for(source.written);
  std::memcpy(host, source.host + from_offset, bytes);
}

void MetalDevice::start(const void* from, size_t from_offset, size_t bytes) {
  Call call(*this);
  Fetched& fetched = fetched_[fetch_turn_++ % fetched_.size()];
  drop(fetched);
  if (can_blit(from_offset, 0, bytes)) {
    fetched.here = idle_buffer(bytes);
    record_copy(buffer_of(from), from_offset, *fetched.here, 0, bytes);
    fetched.from = from;
    fetched.offset = from_offset;
    fetched.bytes = bytes;
  }
  stream_.commit();
}

bool MetalDevice::take(const void* from, size_t from_offset, char* host, size_t bytes) {
  Call call(*this);
  for (Fetched& fetched : fetched_) {
    if (fetched.from != from || fetched.offset != from_offset || fetched.bytes != bytes) continue;
    stream_.wait_for(fetched.here->written);
    std::memcpy(host, fetched.here->host, bytes);
    drop(fetched);
    return true;
  }
  return false;
}

void MetalDevice::wait() {
  Call call(*this);
  stream_.wait();
}

backends::Devices& devices() {
  // The device is never destroyed, because tensors of static storage duration may outlive any
  // order of destruction.
  static auto* all = new backends::Devices(
      kDLMetal, "Metal", "Apple's systems have one, but not all virtual machines", enumerate);
  return *all;
}

}  // namespace wherry::metal
