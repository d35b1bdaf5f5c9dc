// A thread with a large stack: some systems give threads half a MiB by default, but templates can
// recurse deeply.
#ifndef WHERRY_APP_SUPPORT_THREAD_H_
#define WHERRY_APP_SUPPORT_THREAD_H_

#include <pthread.h>

#include <functional>

namespace wherry::app {

class Thread {
 public:
  explicit Thread(std::function<void()> work);  // throws Error if the system starts no more threads
  ~Thread();                                    // joins the thread
  Thread(const Thread&) = delete;
  Thread& operator=(const Thread&) = delete;

 private:
  std::function<void()> work_;
  pthread_t thread_;
};

}  // namespace wherry::app

#endif  // WHERRY_APP_SUPPORT_THREAD_H_
