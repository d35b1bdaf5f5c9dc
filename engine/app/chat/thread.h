// A thread with a stack that is known to be large enough: some systems give threads half a MiB, and
// a template may go deep.
#ifndef WHERRY_ENGINE_APP_CHAT_THREAD_H_
#define WHERRY_ENGINE_APP_CHAT_THREAD_H_

#include <pthread.h>

#include <functional>

namespace wherry::app {

class Thread {
 public:
  explicit Thread(std::function<void()> work);  // throws Error if there can be no thread
  ~Thread();                                    // waits for its end
  Thread(const Thread&) = delete;
  Thread& operator=(const Thread&) = delete;

 private:
  std::function<void()> work_;
  pthread_t thread_;
};

}  // namespace wherry::app

#endif  // WHERRY_ENGINE_APP_CHAT_THREAD_H_
