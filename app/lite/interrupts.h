// Handles Ctrl-C: during a response, the first Ctrl-C ends the response and the second the program;
// at other times the first one ends the program.
#ifndef WHERRY_APP_LITE_INTERRUPTS_H_
#define WHERRY_APP_LITE_INTERRUPTS_H_

namespace wherry::lite {

constexpr int kInterrupted = 130;  // the shell's exit code for Ctrl-C: 128 + SIGINT

// While such an object exists, the first Ctrl-C sets a flag, and the second ends the program.
class Answering {
 public:
  Answering();
  ~Answering();
  bool interrupted() const;
};

}  // namespace wherry::lite

#endif  // WHERRY_APP_LITE_INTERRUPTS_H_
