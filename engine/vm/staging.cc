#include "vm/staging.h"

#include "support/error.h"

namespace wherry {

namespace {

ffi::Tensor prefix(const ffi::Tensor& tensor, int64_t n) {
  const int64_t stride = 1;
  return tensor.as_strided(ffi::ShapeView(&n, 1), ffi::ShapeView(&stride, 1));
}

}  // namespace

Staging::Staging(int64_t capacity, DLDataType dtype, DLDevice device)
    : host_(allocate_host({capacity}, dtype)), device_(to_device(host_, device)) {}

void Staging::require_room(int64_t n) const {
  if (n <= host_.size(0)) return;
  throw Error(WHERRY_INTERNAL,
              concat("a batch has ", n, " elements; the session was opened for ", host_.size(0)));
}

ffi::Tensor Staging::moved(int64_t n) {
  ffi::Tensor here = prefix(host_, n);
  if (is_host(device_.device())) return here;
  ffi::Tensor there = prefix(device_, n);
  if (copies_ == nullptr || !copies_->write(here, there)) copy_tensor(here, there);
  return there;
}

void copy_tensor(const ffi::Tensor& from, const ffi::Tensor& to) {
  static const ffi::Function between =
      ffi::Function::GetGlobalRequired("runtime.TVMTensorCopyFromTo");
  between(from, to);
}

ffi::Tensor part_of(const ffi::Tensor& tensor, int64_t i) {
  std::vector<int64_t> shape = shape_of(tensor), strides(shape.size(), 1);
  for (size_t d = shape.size() - 1; d-- > 0;) strides[d] = strides[d + 1] * shape[d + 1];
  shape[0] = 1;
  return tensor.as_strided(ffi::ShapeView(shape.data(), shape.size()),
                           ffi::ShapeView(strides.data(), strides.size()), i * strides[0]);
}

ffi::Tensor rows_of(const ffi::Tensor& tensor, int64_t first, int64_t rows) {
  const int64_t shape[] = {rows, tensor.size(1)}, strides[] = {tensor.size(1), 1};
  return tensor.as_strided(ffi::ShapeView(shape, 2), ffi::ShapeView(strides, 2),
                           first * strides[0]);
}

ffi::Tensor element_of(const ffi::Tensor& tensor, int64_t i) {
  const int64_t one = 1;
  return tensor.as_strided(ffi::ShapeView(&one, 1), ffi::ShapeView(&one, 1), i);
}

const char* bytes_of(const ffi::Tensor& host) {
  return static_cast<const char*>(host.data_ptr()) + host.byte_offset();
}

}  // namespace wherry
