// The program wherry-lite, which runs a compiled model in the terminal and over HTTP, without
// Python; usage.cc has the commands.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>

#include "app/lite/commands.h"
#include "app/lite/usage.h"

namespace {

constexpr int kUsage = 2;  // the shell's exit code for wrong usage

int carry_out(const wherry::lite::Arguments& typed) {
  if (typed.help) {
    std::fputs(wherry::lite::usage(typed.command).c_str(), stdout);
    return EXIT_SUCCESS;
  }
  if (typed.command == "chat") return wherry::lite::chat(typed);
  if (typed.command == "run") return wherry::lite::run(typed);
  return wherry::lite::serve(typed);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return carry_out(wherry::lite::parse(std::vector<std::string>(argv + 1, argv + argc)));
  } catch (const wherry::lite::UsageError& error) {
    std::fprintf(stderr, "wherry-lite: %s.\nType: wherry-lite --help\n", error.what());
    return kUsage;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "wherry-lite: %s\n", error.what());
    return EXIT_FAILURE;
  }
}
