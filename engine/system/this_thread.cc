#include "system/this_thread.h"

#if defined(_WIN32)
#include <windows.h>

#include "system/wide.h"
#else
#include <pthread.h>
#include <signal.h>

#include <initializer_list>
#endif

namespace wherry::this_thread {

#if defined(_WIN32)
void set_name(const char* name) { SetThreadDescription(GetCurrentThread(), wide_of(name).c_str()); }
void run_soon() {}
void block_signals() {}
#else
void set_name([[maybe_unused]] const char* name) {
#if defined(__APPLE__)
  pthread_setname_np(name);
#elif defined(__linux__)
  pthread_setname_np(pthread_self(), name);
#endif
}

void run_soon() {
#if defined(__APPLE__)
  pthread_set_qos_class_self_np(QOS_CLASS_USER_INITIATED, 0);
#endif
}

void block_signals() {
  sigset_t all;
  sigfillset(&all);
  for (int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP}) sigdelset(&all, fault);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
}
#endif

}  // namespace wherry::this_thread
