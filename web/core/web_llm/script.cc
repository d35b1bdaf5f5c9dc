// The functions that tvmjs, the JavaScript below WebLLM (@mlc-ai/web-runtime 0.27), calls besides
// TVM's own: memory, callbacks, and tensors from and to its bytes.
#include <tvm/ffi/any.h>
#include <tvm/ffi/container/array.h>
#include <tvm/ffi/error.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/reflection/registry.h>
#include <tvm/runtime/tensor.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#define TVMJS_API extern "C" __attribute__((used, visibility("default")))

namespace {

namespace ffi = tvm::ffi;
using tvm::runtime::Tensor;

// Widens bfloat16 [n] to float32 [n]: each bfloat16 becomes the upper half of a float32. `to` may
// equal `from`.
void widen(const uint8_t* from, uint8_t* to, size_t n) {
  for (size_t i = n; i-- > 0;) {
    uint16_t half;
    std::memcpy(&half, from + 2 * i, sizeof half);
    const uint32_t widened = static_cast<uint32_t>(half) << 16;
    std::memcpy(to + 4 * i, &widened, sizeof widened);
  }
}

uint8_t* bytes_of(const Tensor& tensor) {
  return static_cast<uint8_t*>(tensor->data) + tensor->byte_offset;
}

// Returns the elements of a float32 tensor on the host, whose bytes must be twice the stored
// bfloat16 bytes.
size_t elements(const Tensor& tensor, int64_t stored_bytes) {
  const size_t bytes = ffi::GetDataSize(*tensor.operator->());
  if (tensor->device.device_type != kDLCPU || tensor->dtype.code != kDLFloat ||
      tensor->dtype.bits != 32 || static_cast<int64_t>(bytes) != 2 * stored_bytes) {
    TVM_FFI_THROW(ValueError) << stored_bytes << " bytes of bfloat16 for a tensor of " << bytes
                              << " bytes, which has to be float32 on the host";
  }
  return bytes / 4;
}

void decode_storage(Tensor to, TVMFFIByteArray* from, std::string format, std::string dtype) {
  if (format == "f32-to-bf16" && dtype == "float32") {
    const size_t n = elements(to, static_cast<int64_t>(from->size));
    widen(reinterpret_cast<const uint8_t*>(from->data), bytes_of(to), n);
  } else {
    to.CopyFromBytes(from->data, from->size);
  }
}

Tensor concatenated(const std::vector<Tensor>& parts) {
  int64_t rows = 0;
  for (const Tensor& part : parts) rows += part->shape[0];
  Tensor joined = Tensor::Empty({rows, parts[0]->shape[1]}, parts[0]->dtype, parts[0]->device);
  uint64_t at = 0;
  for (const Tensor& part : parts) {
    DLTensor to = *joined.operator->();
    to.shape = part->shape;
    to.byte_offset = at;
    Tensor::CopyFromTo(part.operator->(), &to);
    at += ffi::GetDataSize(*part.operator->());
  }
  return joined;
}

}  // namespace

// Functions that the script provides: one calls a JavaScript function, the other releases it.
extern "C" {
int TVMFFIWasmSafeCall(void* self, const TVMFFIAny* args, int32_t num_args, TVMFFIAny* result);
void TVMFFIWasmFunctionDeleter(void* self);
void __wasm_call_ctors(void);
}

// Runs the constructors of static objects; the script calls it before any other function.
TVMJS_API void _initialize() { __wasm_call_ctors(); }

TVMJS_API void* TVMWasmAllocSpace(int bytes) {
  return new int64_t[(static_cast<size_t>(bytes) + 7) / 8];
}
TVMJS_API void TVMWasmFreeSpace(void* space) { delete[] static_cast<int64_t*>(space); }

TVMJS_API int TVMFFIWasmFunctionCreate(void* self, TVMFFIObjectHandle* out) {
  return TVMFFIFunctionCreate(self, TVMFFIWasmSafeCall, TVMFFIWasmFunctionDeleter, out);
}

TVMJS_API const char* TVMFFIWasmGetLastError() {
  static std::string words;
  words = ffi::details::MoveFromSafeCallRaised().what();
  return words.c_str();
}

TVM_FFI_STATIC_INIT_BLOCK() {
  tvm::ffi::reflection::GlobalDef()
      .def("tvmjs.array.decode_storage", decode_storage)
      .def("tvmjs.array.decode_bf16_to_f32_inplace",
           [](Tensor tensor, int64_t stored_bytes) {
             widen(bytes_of(tensor), bytes_of(tensor), elements(tensor, stored_bytes));
           })
      .def("tvmjs.runtime.TensorCopyFromBytes",
           [](Tensor to, TVMFFIByteArray* from) { to.CopyFromBytes(from->data, from->size); })
      .def("tvmjs.runtime.TensorCopyToBytes",
           [](Tensor from) {
             std::string bytes(ffi::GetDataSize(*from.operator->()), '\0');
             from.CopyToBytes(bytes.data(), bytes.size());
             return ffi::Bytes(std::move(bytes));
           })
      .def_packed("tvmjs.runtime.ArrayConcat",
                  [](ffi::PackedArgs args, ffi::Any* result) {
                    ffi::Array<ffi::Any> all;
                    for (int i = 0; i < args.size(); ++i) {
                      for (const ffi::Any& item : args[i].cast<ffi::Array<ffi::Any>>()) {
                        all.push_back(item);
                      }
                    }
                    *result = all;
                  })
      .def_packed("tvmjs.runtime.ConcatEmbeddings", [](ffi::PackedArgs args, ffi::Any* result) {
        std::vector<Tensor> parts;
        for (int i = 0; i < args.size(); ++i) parts.push_back(args[i].cast<Tensor>());
        *result = concatenated(parts);
      });
}
