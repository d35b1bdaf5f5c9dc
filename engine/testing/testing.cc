#include "testing/testing.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <vector>

#include "system/files.h"
#include "system/path.h"

namespace wherry::testing {

namespace {

struct Test {
  std::string suite, name;
  void (*body)();
};

std::vector<Test>& tests() {
  static std::vector<Test> all;
  return all;
}

bool run(const Test& test) {
  try {
    test.body();
    return true;
  } catch (const Failure& failure) {
    std::printf("FAILED %s.%s\n  %s\n", test.suite.c_str(), test.name.c_str(),
                failure.text.c_str());
  } catch (const std::exception& error) {
    std::printf("FAILED %s.%s\n  exception: %s\n", test.suite.c_str(), test.name.c_str(),
                error.what());
  }
  return false;
}

}  // namespace

Registration::Registration(const char* file, const char* name, void (*body)()) {
  std::string suite = std::filesystem::path(file).stem().string();
  suite.resize(suite.rfind("_test"));
  tests().push_back({suite, name, body});
}

void fail(const char* file, int line, const std::string& text) {
  throw Failure{concat(file, ":", line, ": ", text)};
}

std::string error_of(const char* file, int line, wherry_status status,
                     const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    if (error.status() == status) return error.what();
    fail(file, line, concat("status ", error.status(), ", not ", status, ": ", error.what()));
  }
  fail(file, line, "no error");
}

TemporaryFolder::TemporaryFolder() {
  static std::atomic<int> count{0};
  const std::filesystem::path parent = std::filesystem::temp_directory_path();
  do {
    path_ = text_of(parent / concat("wherry-test-", files::process_id(), "-", count.fetch_add(1),
                                    "-", files::wall_clock() % 1000000));
  } while (!std::filesystem::create_directory(path_of(path_)));
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code error;
  std::filesystem::remove_all(path_of(path_), error);
}

std::string TemporaryFolder::write(const std::string& name, const std::string& content) const {
  std::string path = path_ + "/" + name;
  std::ofstream(path_of(path), std::ios::binary) << content;
  return path;
}

}  // namespace wherry::testing

// Runs all tests, or those of one suite or one test: wherry_tests [suite[.test]]
int main(int argc, char** argv) {
  std::string selected = argc > 1 ? argv[1] : "";
  int ran = 0, failed = 0;
  for (const auto& test : wherry::testing::tests()) {
    bool chosen =
        selected.empty() || selected == test.suite || selected == test.suite + "." + test.name;
    if (!chosen) continue;
    ++ran;
    if (!wherry::testing::run(test)) ++failed;
  }
  std::printf("%d tests, %d failed\n", ran, failed);
  return ran == 0 || failed > 0 ? EXIT_FAILURE : EXIT_SUCCESS;  // a suite without tests fails
}
