// Streams over memory, as the sources of TVM's runtime use them; TVM's wheel does not contain this
// header.
#ifndef WHERRY_WEB_CORE_SUPPORT_BYTES_IO_H_
#define WHERRY_WEB_CORE_SUPPORT_BYTES_IO_H_

#include <tvm/ffi/error.h>
#include <tvm/ffi/string.h>
#include <tvm/support/io.h>
#include <tvm/support/serializer.h>

#include <algorithm>
#include <cstring>
#include <string>

namespace tvm::support {

// Reads from `bytes`, which must outlive the stream.
class BytesInStream : public Stream {
 public:
  BytesInStream(const void* data, size_t size)
      : data_(static_cast<const char*>(data)), left_(size) {}
  explicit BytesInStream(const ffi::Bytes& bytes) : BytesInStream(bytes.data(), bytes.size()) {}
  explicit BytesInStream(const std::string& bytes) : BytesInStream(bytes.data(), bytes.size()) {}

  using Stream::Read;
  using Stream::Write;
  size_t Read(void* data, size_t size) override {
    const size_t n = std::min(size, left_);
    if (n > 0) std::memcpy(data, data_, n);
    data_ += n;
    left_ -= n;
    return n;
  }
  size_t Write(const void*, size_t) override {
    TVM_FFI_THROW(InternalError) << "this stream is for reading";
  }

 private:
  const char* data_;
  size_t left_;
};

// Appends what is written to a string.
class BytesOutStream : public Stream {
 public:
  explicit BytesOutStream(std::string* bytes) : bytes_(bytes) {}

  using Stream::Read;
  using Stream::Write;
  size_t Read(void*, size_t) override {
    TVM_FFI_THROW(InternalError) << "this stream is for writing";
  }
  size_t Write(const void* data, size_t size) override {
    bytes_->append(static_cast<const char*>(data), size);
    return size;
  }

 private:
  std::string* bytes_;
};

}  // namespace tvm::support

#endif  // WHERRY_WEB_CORE_SUPPORT_BYTES_IO_H_
