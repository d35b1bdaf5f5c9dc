// The stream interface, as the sources of TVM's runtime use it; TVM's wheel does not contain this
// header.
#ifndef TVM_SUPPORT_IO_H_
#define TVM_SUPPORT_IO_H_

#include <cstddef>
#include <cstdint>

namespace tvm::support {

// Says how a type is written and read; serializer.h specialises it.
template <typename T, typename = void>
struct Serializer {
  static constexpr bool enabled = false;
};

class Stream {
 public:
  virtual ~Stream() = default;
  // Reads at most `size` bytes; returns the number of bytes read, which is less than `size` at the
  // end.
  virtual size_t Read(void* data, size_t size) = 0;
  virtual size_t Write(const void* data, size_t size) = 0;

  template <typename T>
  void Write(const T& value) {
    Serializer<T>::Write(this, value);
  }
  template <typename T>
  bool Read(T* value) {
    return Serializer<T>::Read(this, value);
  }
  template <typename T>
  void WriteArray(const T* values, size_t count) {
    for (size_t i = 0; i < count; ++i) Write<T>(values[i]);
  }
  template <typename T>
  bool ReadArray(T* values, size_t count) {
    for (size_t i = 0; i < count; ++i) {
      if (!Read<T>(values + i)) return false;
    }
    return true;
  }
};

}  // namespace tvm::support

#endif  // TVM_SUPPORT_IO_H_
