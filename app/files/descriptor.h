// A file descriptor that its destructor closes.
#ifndef WHERRY_APP_FILES_DESCRIPTOR_H_
#define WHERRY_APP_FILES_DESCRIPTOR_H_

#include <unistd.h>

#include <utility>

namespace wherry::app {

class Descriptor {
 public:
  explicit Descriptor(int number = -1) : number_(number) {}  // a negative number stands for no file
  ~Descriptor() { close(); }
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  int get() const { return number_; }
  bool open() const { return number_ >= 0; }
  void close() {
    if (open()) ::close(std::exchange(number_, -1));
  }

 private:
  int number_;
};

}  // namespace wherry::app

#endif  // WHERRY_APP_FILES_DESCRIPTOR_H_
