#include "app/support/thread.h"

#include "support/error.h"

namespace wherry::app {

namespace {

// Bytes of stack; the system allocates pages on first use.
constexpr size_t kStack = size_t{16} << 20;

}  // namespace

Thread::Thread(std::function<void()> work) : work_(std::move(work)) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kStack);
  const int status = pthread_create(
      &thread_, &attributes,
      [](void* self) -> void* {
        static_cast<Thread*>(self)->work_();
        return nullptr;
      },
      this);
  pthread_attr_destroy(&attributes);
  if (status != 0) throw Error(WHERRY_OUT_OF_MEMORY, "a thread cannot be started");
}

Thread::~Thread() { pthread_join(thread_, nullptr); }

}  // namespace wherry::app
