// Replaces a header of TVM: tensor.cc prints tensors in base64 when a graph is saved as text, which
// this runtime never does.
#ifndef WHERRY_WEB_CORE_SUPPORT_BASE64_H_
#define WHERRY_WEB_CORE_SUPPORT_BASE64_H_

#include "bytes_io.h"

namespace tvm::support {

class Base64OutStream : public BytesOutStream {
 public:
  explicit Base64OutStream(Stream*) : BytesOutStream(nullptr) {
    TVM_FFI_THROW(InternalError) << "base64 is not built in";
  }
  void Finish() {}
};

class Base64InStream : public BytesInStream {
 public:
  explicit Base64InStream(Stream*) : BytesInStream(nullptr, 0) {
    TVM_FFI_THROW(InternalError) << "base64 is not built in";
  }
  void InitPosition() {}
};

}  // namespace tvm::support

#endif  // WHERRY_WEB_CORE_SUPPORT_BASE64_H_
