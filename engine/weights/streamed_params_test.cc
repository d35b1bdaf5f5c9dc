#include "weights/streamed_params.h"

#include <cstring>

#include "testing/testing.h"

namespace wherry {
namespace {

constexpr DLDataType kFloat{kDLFloat, 32, 1};

// Stored tensors in this order: y, x, unused, each [2]. Parameter p is pack(x, y) = x - y; q is y
// itself.
struct Example {
  Example() {
    metadata.json = "{}";
    add("p", "pack", {"x", "y"});
    add("q", "", {"y"});
  }
  void add(const char* name, const char* pack, std::vector<std::string> from) {
    ParamSpec spec;
    spec.name = name;
    spec.shape = {2};
    spec.dtype = kFloat;
    spec.pack = pack;
    spec.from = std::move(from);
    metadata.params.push_back(spec);
  }
  StreamedParams streamed() {
    TensorCache cache = TensorCache::parse(R"({"records": [{"dataPath": "shard.bin", "nbytes": 24,
      "records": [
        {"name": "unused", "shape": [2], "dtype": "float32", "nbytes": 8, "byteOffset": 16},
        {"name": "x", "shape": [2], "dtype": "float32", "nbytes": 8, "byteOffset": 8},
        {"name": "y", "shape": [2], "dtype": "float32", "nbytes": 8, "byteOffset": 0}]}]})");
    return StreamedParams(metadata, cache, {kDLCPU, 0},
                          [this](const std::string&, const std::vector<ffi::Tensor>& from) {
                            ++calls;
                            ffi::Tensor result = allocate_host({2}, kFloat);
                            for (int i = 0; i < 2; ++i)
                              at(result)[i] = at(from[0])[i] - at(from[1])[i];
                            return std::vector<ffi::Tensor>{result};
                          });
  }
  static float* at(const ffi::Tensor& tensor) { return static_cast<float*>(tensor.data_ptr()); }
  static void fill(StreamedParams& params, size_t i, float a, float b) {
    ffi::Tensor place = params.place(i);
    at(place)[0] = a;
    at(place)[1] = b;
    params.filled(i);
  }

  Metadata metadata;
  int calls = 0;
};

TEST(packs_when_the_last_tensor_is_there) {
  Example example;
  StreamedParams params = example.streamed();
  CHECK_EQ(params.required_tensors().size(), 2u);
  CHECK_EQ(params.required_tensors()[0].name, "y");  // they are in the order of the tensors' bytes
  Example::fill(params, 0, 1, 2);
  CHECK_EQ(example.calls, 0);
  Example::fill(params, 1, 10, 20);
  CHECK_EQ(example.calls, 1);
  std::vector<ffi::Tensor> tensors = params.finish();
  const float expected[2][2] = {{9, 18}, {1, 2}};
  for (size_t k = 0; k < 2; ++k) CHECK_EQ(std::memcmp(tensors[k].data_ptr(), expected[k], 8), 0);
}

TEST(says_what_has_not_come) {
  Example example;
  StreamedParams params = example.streamed();
  ERROR_OF(WHERRY_INVALID_ARGUMENT, params.filled(0));
  Example::fill(params, 0, 1, 2);
  ERROR_OF(WHERRY_INVALID_ARGUMENT, params.filled(0));
  std::string text = ERROR_OF(WHERRY_INVALID_ARGUMENT, params.finish());
  CHECK(text.find("- x") != std::string::npos);
  CHECK(text.find("- y") == std::string::npos);
}

TEST(refuses_an_index_that_does_not_fit) {
  Example example;
  example.add("r", "", {"z"});
  example.metadata.params[1].shape = {3};
  std::string text = ERROR_OF(WHERRY_INCOMPATIBLE, example.streamed());
  CHECK(text.find("z is missing") != std::string::npos);
  CHECK(text.find("the library takes float32 [3]") != std::string::npos);
}

}  // namespace
}  // namespace wherry
