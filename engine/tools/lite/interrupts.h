// Ctrl-C: the first ends an answer, the second the program; where no answer is written the first.
#ifndef WHERRY_ENGINE_TOOLS_LITE_INTERRUPTS_H_
#define WHERRY_ENGINE_TOOLS_LITE_INTERRUPTS_H_

namespace wherry::lite {

constexpr int kInterrupted = 130;  // exit code, as shells have it: 128 + SIGINT

// While one of these is there Ctrl-C is noted, and the next one ends the program.
class Answering {
 public:
  Answering();
  ~Answering();
  bool interrupted() const;
};

}  // namespace wherry::lite

#endif  // WHERRY_ENGINE_TOOLS_LITE_INTERRUPTS_H_
