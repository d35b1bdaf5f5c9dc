// Child processes for tests of files that processes share and of processes that are killed.
#ifndef WHERRY_ENGINE_TESTING_PROCESSES_H_
#define WHERRY_ENGINE_TESTING_PROCESSES_H_

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <functional>

#include "testing/testing.h"

namespace wherry::testing {

// Forks this process and runs `body` in the child, which is killed if it outlives the object. No
// threads may run.
class ChildProcess {
 public:
  explicit ChildProcess(const std::function<void()>& body) : id_(fork()) {
    if (id_ < 0) throw Failure{"fork failed"};
    if (id_ > 0) return;
    try {
      body();
    } catch (const Failure& failure) {
      std::fprintf(stderr, "in a child: %s\n", failure.text.c_str());
      _exit(1);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "in a child: %s\n", error.what());
      _exit(1);
    }
    _exit(0);
  }
  ~ChildProcess() { kill(); }
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  // Whether the body returned without an exception or a crash.
  bool succeeded() {
    int status = wait();
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }
  void kill() {
    if (id_ <= 0) return;
    ::kill(id_, SIGKILL);
    wait();
  }

 private:
  int wait() {
    int status = -1;
    waitpid(id_, &status, 0);
    id_ = 0;
    return status;
  }

  pid_t id_;
};

}  // namespace wherry::testing

#endif  // WHERRY_ENGINE_TESTING_PROCESSES_H_
