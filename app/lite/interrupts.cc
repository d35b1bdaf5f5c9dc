#include "app/lite/interrupts.h"

#include <unistd.h>

#include <csignal>

namespace wherry::lite {

namespace {

volatile std::sig_atomic_t noted = 0;

void note(int) {
  if (noted != 0) _exit(kInterrupted);
  noted = 1;
}

void handle(void (*handler)(int)) {
  struct sigaction action = {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
}

}  // namespace

Answering::Answering() {
  noted = 0;
  handle(note);
}

Answering::~Answering() { handle(SIG_DFL); }

bool Answering::interrupted() const { return noted != 0; }

}  // namespace wherry::lite
