// What a thread tells the operating system about itself.
#ifndef WHERRY_ENGINE_SYSTEM_THIS_THREAD_H_
#define WHERRY_ENGINE_SYSTEM_THIS_THREAD_H_

namespace wherry::this_thread {

// The name that debuggers and lists of threads show, of at most 15 characters.
void set_name(const char* name);

// Tells Apple's systems that a person waits for this thread's work, so that it runs on fast cores.
void run_soon();

// Leaves signals to the program's other threads. A limit on file sizes (ulimit -f) sends SIGXFSZ to
// the writing thread, which would end the process; with the signal blocked, the write fails with
// EFBIG instead. Windows has no such signals.
void block_signals();

}  // namespace wherry::this_thread

#endif  // WHERRY_ENGINE_SYSTEM_THIS_THREAD_H_
