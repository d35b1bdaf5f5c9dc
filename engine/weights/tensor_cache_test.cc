#include "weights/tensor_cache.h"

#include <cstring>

#include "model/metadata.h"
#include "testing/testing.h"

namespace wherry {
namespace {

using testing::TemporaryFolder;

// Index of a shard of 76 bytes: a [16] float32 (1 .. 16), b [2] float32 stored as bfloat16, c [4]
// int16.
constexpr char kIndex[] = R"({"metadata": {}, "records": [
  {"dataPath": "shard.bin", "format": "raw-shard", "nbytes": 76, "records": [
    {"name": "a", "shape": [16], "dtype": "float32", "format": "raw", "nbytes": 64,
     "byteOffset": 0},
    {"name": "b", "shape": [2], "dtype": "float32", "format": "f32-to-bf16", "nbytes": 4,
     "byteOffset": 64},
    {"name": "c", "shape": [2, 2], "dtype": "int16", "format": "f32-to-bf16", "nbytes": 8,
     "byteOffset": 68}]}]})";

std::string shard() {
  float a[16];
  for (int i = 0; i < 16; ++i) a[i] = static_cast<float>(i + 1);
  const uint16_t b[] = {0x3FC0, 0xC000};  // 1.5 and -2 as bfloat16
  const int16_t c[] = {1, -2, 3, -4};
  std::string bytes(76, '\0');
  std::memcpy(bytes.data(), a, 64);
  std::memcpy(bytes.data() + 64, b, 4);
  std::memcpy(bytes.data() + 68, c, 8);
  return bytes;
}

TEST(reads_mapped_copied_and_widened_tensors) {
  TemporaryFolder folder;
  folder.write("tensor-cache.json", kIndex);
  folder.write("shard.bin", shard());
  TensorCache cache = TensorCache::open(folder.path());
  CHECK(cache.find("d") == nullptr);
  ffi::Tensor a = cache.load(*cache.find("a"));
  ffi::Tensor b = cache.load(*cache.find("b"));
  ffi::Tensor c = cache.load(*cache.find("c"));
  for (int i = 0; i < 16; ++i) CHECK_EQ(static_cast<float*>(a.data_ptr())[i], i + 1);
  CHECK_EQ(describe(b.dtype(), shape_of(b)), "float32 [2]");
  CHECK_EQ(static_cast<float*>(b.data_ptr())[0], 1.5f);
  CHECK_EQ(static_cast<float*>(b.data_ptr())[1], -2.0f);
  CHECK_EQ(describe(c.dtype(), shape_of(c)), "int16 [2, 2]");
  CHECK_EQ(static_cast<int16_t*>(c.data_ptr())[3], -4);
  for (const ffi::Tensor& tensor : {a, b, c}) CHECK(tensor.IsAligned(kAlignment));
  // The tensor is a view of the mapping itself.
  CHECK_EQ(reinterpret_cast<uintptr_t>(a.data_ptr()) % 4096, 0u);
}

TEST(rows_of_a_tensor_are_a_tensor) {
  TemporaryFolder folder;
  folder.write("tensor-cache.json", kIndex);
  folder.write("shard.bin", shard());
  TensorCache cache = TensorCache::open(folder.path());
  const StoredTensor* rows = cache.find("a[3:5]");
  CHECK(rows != nullptr && rows == cache.find("a[3:5]"));
  CHECK_EQ(rows->name, "a[3:5]");
  CHECK_EQ(rows->offset, 12);
  CHECK_EQ(rows->nbytes, 8);
  ffi::Tensor a = cache.load(*rows);
  CHECK_EQ(describe(a.dtype(), shape_of(a)), "float32 [2]");
  CHECK_EQ(static_cast<float*>(a.data_ptr())[1], 5.0f);
  CHECK_EQ(static_cast<float*>(cache.load(*cache.find("b[1:2]")).data_ptr())[0], -2.0f);
  CHECK_EQ(static_cast<int16_t*>(cache.load(*cache.find("c[1:2]")).data_ptr())[1], -4);
  for (const char* none : {"a[3:3]", "a[5:3]", "a[0:17]", "a[-1:3]", "a[3:5", "a[3:5]x", "a[3]",
                           "a[]", "d[0:1]", "[0:1]", "a[0:99999999999999999999]"}) {
    CHECK(cache.find(none) == nullptr);
  }
}

TEST(a_mapped_tensor_outlives_the_cache) {
  TemporaryFolder folder;
  folder.write("tensor-cache.json", kIndex);
  folder.write("shard.bin", shard());
  ffi::Tensor a;
  {
    TensorCache cache = TensorCache::open(folder.path());
    a = cache.load(*cache.find("a"));
  }
  CHECK_EQ(static_cast<float*>(a.data_ptr())[15], 16);
}

TEST(every_kind_of_damage_is_named) {
  const char* cases[][3] = {
      {"\"nbytes\": 76", "\"nbytes\": 77", "has 76 bytes; the index says 77"},
      {"shard.bin", "../shard.bin", "is outside the folder"},
      {"shard.bin", "/shard.bin", "is outside the folder"},
      {"shard.bin", "other.bin", "other.bin"},
      {"raw-shard", "zip", "format \"zip\""},
      {"\"raw\"", "\"gz\"", "a: format \"gz\"; known are raw, f32-to-bf16"},
      {"[16]", "[17]", "a: 64 bytes; float32 [17] takes 68"},
      {"[16]", "[-16]", "the extent -16"},
      {"[16]", "[16, 4294967296, 4294967296]", "a: \"shape\" has more than 2^48 elements"},
      {"\"byteOffset\": 68", "\"byteOffset\": 72", "c: bytes 72 + 8 lie outside"},
      {"\"byteOffset\": 68", "\"byteOffset\": -4", "c: bytes -4 + 8 lie outside"},
      {"\"byteOffset\": 68", "\"byteOffset\": 9223372036854775807", "lie outside"},
      {"int16", "int1x", "unknown dtype"},
      {"\"name\": \"c\"", "\"name\": \"a\"", "a is listed twice"},
      {"\"records\": [\n  {", "\"tensors\": [\n  {", "lacks \"records\""},
  };
  TemporaryFolder folder;
  folder.write("shard.bin", shard());
  for (const auto& [from, to, message] : cases) {
    std::string text = kIndex;
    size_t at = text.find(from);
    CHECK(at != std::string::npos);
    folder.write("tensor-cache.json", text.replace(at, std::strlen(from), to));
    CHECK_CONTAINS(ERROR_OF(WHERRY_INCOMPATIBLE, TensorCache::open(folder.path())), message);
  }
  folder.write("tensor-cache.json", "{");
  ERROR_OF(WHERRY_INCOMPATIBLE, TensorCache::open(folder.path()));
  TemporaryFolder empty;
  ERROR_OF(WHERRY_NOT_FOUND, TensorCache::open(empty.path()));
}

}  // namespace
}  // namespace wherry
