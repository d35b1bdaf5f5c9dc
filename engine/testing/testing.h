// A small test framework, so that a fresh machine needs nothing but a compiler.
#ifndef WHERRY_ENGINE_TESTING_TESTING_H_
#define WHERRY_ENGINE_TESTING_TESTING_H_

#include <functional>
#include <string>

#include "support/error.h"

namespace wherry::testing {

// Registers a test before main() runs. The suite is the test file's name without _test.cc.
struct Registration {
  Registration(const char* file, const char* name, void (*body)());
};

struct Failure {
  std::string text;
};

[[noreturn]] void fail(const char* file, int line, const std::string& text);

// Returns the message of the Error that `call` must throw with this status.
std::string error_of(const char* file, int line, wherry_status status,
                     const std::function<void()>& call);

// A temporary folder; the destructor deletes it.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  const std::string& path() const { return path_; }
  std::string write(const std::string& name, const std::string& content) const;

 private:
  std::string path_;
};

}  // namespace wherry::testing

#define TEST(name)                                                                     \
  static void name();                                                                  \
  static const ::wherry::testing::Registration register_##name(__FILE__, #name, name); \
  static void name()

#define CHECK(condition)                                                       \
  do {                                                                         \
    if (!(condition)) ::wherry::testing::fail(__FILE__, __LINE__, #condition); \
  } while (false)

#define CHECK_EQ(a, b)                                                               \
  do {                                                                               \
    const auto a_ = (a); /* copies: an operand may be part of a temporary object */  \
    const auto b_ = (b);                                                             \
    if (!(a_ == b_)) {                                                               \
      ::wherry::testing::fail(__FILE__, __LINE__,                                    \
                              ::wherry::concat(#a " == " #b ": ", a_, " and ", b_)); \
    }                                                                                \
  } while (false)

#define ERROR_OF(status, ...) \
  ::wherry::testing::error_of(__FILE__, __LINE__, status, [&] { __VA_ARGS__; })

#define CHECK_CONTAINS(text, part)                                              \
  do {                                                                          \
    const std::string text_ = (text);                                           \
    if (text_.find(part) == std::string::npos) {                                \
      ::wherry::testing::fail(__FILE__, __LINE__,                               \
                              "no \"" + std::string(part) + "\" in: " + text_); \
    }                                                                           \
  } while (false)

#endif  // WHERRY_ENGINE_TESTING_TESTING_H_
