#include "backends/metal/stream.h"

#include <tvm/ffi/error.h>

#include <utility>

#include "backends/metal/api.h"

namespace wherry::metal {

namespace {

// Returns why a command buffer failed; "" if it did not.
std::string failure_of(Id commands) {
  const Api& metal = Api::get();
  if (metal.status(commands) != kStatusError) return "";
  Id error = metal.error(commands);
  std::string text = text_of_error(error);
  if (error != nullptr && metal.code(error) == kErrorNotPermitted) {
    text +=
        ". An app may not use the GPU in the background: stop requests when it leaves the "
        "foreground, or load the model with \"device\": \"cpu\"";
  }
  return text;
}

}  // namespace

Stream::Stream(Id device) : queue_(Api::get().new_command_queue(device)) {
  if (!queue_) TVM_FFI_THROW(RuntimeError) << "Metal: the device has no command queue";
}

// An encoder must end before it is released.
Stream::~Stream() { end_encoder(); }

Id Stream::compute() { return encoder(Kind::kCompute); }

Id Stream::copies() { return encoder(Kind::kCopies); }

Id Stream::encoder(Kind kind) {
  throw_failure();
  const Api& metal = Api::get();
  if (count_ >= kMostCommands) commit();
  ++count_;
  if (kind_ == kind) return encoder_.get();
  end_encoder();
  if (!commands_) {
    commands_ = Own::retained(metal.command_buffer(queue_.get()));
    if (!commands_) TVM_FFI_THROW(RuntimeError) << "Metal: the queue has no command buffer";
    ++number_;
  }
  Id encoder = kind == Kind::kCompute ? metal.compute_encoder(commands_.get())
                                      : metal.blit_encoder(commands_.get());
  if (encoder == nullptr) TVM_FFI_THROW(RuntimeError) << "Metal: the command buffer has no encoder";
  encoder_ = Own::retained(encoder);
  kind_ = kind;
  return encoder;
}

void Stream::set_pipeline(Id pipeline) {
  if (pipeline_ == pipeline) return;
  Api::get().set_pipeline(encoder_.get(), pipeline);
  pipeline_ = pipeline;
}

void Stream::end_encoder() {
  if (!encoder_) return;
  Api::get().end_encoding(encoder_.get());
  encoder_.reset();
  kind_ = Kind::kNone;
  pipeline_ = nullptr;
}

void Stream::commit() {
  if (!commands_) return;
  end_encoder();
  Api::get().commit(commands_.get());
  committed_.push_back({number_, std::move(commands_)});
  count_ = 0;
}

bool Stream::done(uint64_t number) {
  while (!committed_.empty()) {
    if (Api::get().status(committed_.front().commands.get()) < kStatusCompleted) break;
    collect(committed_.front());
    committed_.pop_front();
  }
  const bool running = !committed_.empty() && number >= committed_.front().number;
  return !running && !(commands_ && number == number_);
}

void Stream::wait_for(uint64_t number) {
  if (commands_ && number == number_) commit();
  while (!committed_.empty() && committed_.front().number <= number) {
    Api::get().wait_until_completed(committed_.front().commands.get());
    collect(committed_.front());
    committed_.pop_front();
  }
  throw_failure();
}

void Stream::abandon() {
  end_encoder();
  commands_.reset();
  count_ = 0;
  for (const Committed& one : committed_) Api::get().wait_until_completed(one.commands.get());
  committed_.clear();
  failure_.clear();
}

void Stream::collect(const Committed& ended) {
  if (failure_.empty()) failure_ = failure_of(ended.commands.get());
}

void Stream::throw_failure() {
  if (failure_.empty()) return;
  TVM_FFI_THROW(RuntimeError) << "Metal: the GPU failed: " << std::exchange(failure_, "");
}

}  // namespace wherry::metal
