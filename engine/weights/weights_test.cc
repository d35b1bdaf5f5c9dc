#include "weights/weights.h"

#include <cstring>
#include <filesystem>

#include "testing/testing.h"
#include "weights/packed_file.h"

namespace wherry {
namespace {

using testing::TemporaryFolder;

constexpr DLDataType kFloat{kDLFloat, 32, 1};

// Stored tensors: x [4], y [4]. Parameters: p and q are the elements 1 and 0 of pack(x, y) = (x +
// y, x - y), r is y as it is, s is element 0 of pack(y, x).
struct Example {
  Example() {
    write({1, 2, 3, 4, 10, 20, 30, 40});
    metadata.json = "{}";
    add("p", "pack", {"x", "y"}, 1);
    add("r", "", {"y"}, 0);
    add("q", "pack", {"x", "y"}, 0);
    add("s", "pack", {"y", "x"}, 0);
  }
  void add(const char* name, const char* pack, std::vector<std::string> from, int64_t index) {
    ParamSpec spec;
    spec.name = name;
    spec.shape = {4};
    spec.dtype = kFloat;
    spec.pack = pack;
    spec.from = std::move(from);
    spec.index = index;
    metadata.params.push_back(spec);
  }
  void write(std::vector<float> values) {
    std::string bytes(32, '\0');
    std::memcpy(bytes.data(), values.data(), 32);
    folder.write("shard.bin", bytes);
    folder.write("tensor-cache.json", R"({"records": [{"dataPath": "shard.bin", "nbytes": 32,
      "records": [
        {"name": "x", "shape": [4], "dtype": "float32", "nbytes": 16, "byteOffset": 0},
        {"name": "y", "shape": [4], "dtype": "float32", "nbytes": 16, "byteOffset": 16}]}]})");
  }
  std::vector<ffi::Tensor> load(const std::string& pack_dir, bool check = true) {
    WeightsOptions options;
    options.check = check;
    options.pack_dir = pack_dir;
    options.library_hash = library_hash;
    return load_params(metadata, TensorCache::open(folder.path()), options,
                       [this](const std::string& name, const std::vector<ffi::Tensor>& from) {
                         CHECK_EQ(name, "pack");
                         ++calls;
                         return pack(from);
                       });
  }
  std::vector<ffi::Tensor> pack(const std::vector<ffi::Tensor>& from) const {
    ffi::Tensor sum = allocate_host({4}, kFloat), difference = allocate_host({4}, kFloat);
    for (int i = 0; i < 4; ++i) {
      float a = static_cast<float*>(from[0].data_ptr())[i];
      float b = static_cast<float*>(from[1].data_ptr())[i];
      static_cast<float*>(sum.data_ptr())[i] = a + b;
      static_cast<float*>(difference.data_ptr())[i] = a - b;
    }
    return {sum, difference};
  }
  void check(const std::vector<ffi::Tensor>& params) const {
    const float expected[4][4] = {
        {-9, -18, -27, -36}, {10, 20, 30, 40}, {11, 22, 33, 44}, {11, 22, 33, 44}};
    for (size_t k = 0; k < 4; ++k) {
      CHECK_EQ(std::memcmp(params[k].data_ptr(), expected[k], 16), 0);
      CHECK(params[k].IsAligned(kAlignment));
    }
  }
  std::string only_file() const {
    std::string file;
    for (const auto& entry : std::filesystem::directory_iterator(folder.path() + "/packed")) {
      CHECK(file.empty());
      file = entry.path().string();
    }
    return file;
  }

  TemporaryFolder folder;
  Metadata metadata;
  uint64_t library_hash = 1;
  int calls = 0;
};

TEST(packs_once_for_each_function_and_its_tensors) {
  Example example;
  example.check(example.load(""));
  CHECK_EQ(example.calls, 2);
}

TEST(the_second_load_maps_the_packed_file) {
  Example example;
  std::string packed = example.folder.path() + "/packed";
  example.check(example.load(packed));
  example.check(example.load(packed));
  CHECK_EQ(example.calls, 2);
}

TEST(a_damaged_packed_file_is_packed_again) {
  Example example;
  std::string packed = example.folder.path() + "/packed";
  example.load(packed);
  std::string path = example.only_file(), content = read_file(path);
  for (const std::string& damaged : {std::string(), content.substr(0, content.size() / 2),
                                     "X" + content.substr(1), content + "x"}) {
    int before = example.calls;
    example.folder.write("packed/" + std::filesystem::path(path).filename().string(), damaged);
    example.check(example.load(packed));
    CHECK_EQ(example.calls, before + 2);
    CHECK(read_file(example.only_file()) == content);
  }
}

TEST(a_flip_anywhere_in_the_packed_file_never_reaches_the_weights) {
  Example example;
  std::string packed = example.folder.path() + "/packed";
  example.load(packed);
  const std::string path = example.only_file(), content = read_file(path);
  const std::string name = "packed/" + std::filesystem::path(path).filename().string();
  for (size_t i = 0; i < content.size(); i += 5) {
    std::string damaged = content;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x40);
    example.folder.write(name, damaged);
    example.check(example.load(packed));
  }
}

TEST(what_the_caller_knows_to_be_complete_is_not_read) {
  Example example;
  const std::string packed = example.folder.path() + "/packed";
  example.load(packed);
  const std::string path = example.only_file();
  std::string damaged = read_file(path);
  damaged[256] = static_cast<char>(damaged[256] ^ 1);  // damages a byte of p
  example.folder.write("packed/" + std::filesystem::path(path).filename().string(), damaged);
  auto params = example.load(packed, false);
  CHECK_EQ(std::string(static_cast<const char*>(params[0].data_ptr()), 4), damaged.substr(256, 4));
  damaged[0] = 'X';  // damages the header, which is always checked
  example.folder.write("packed/" + std::filesystem::path(path).filename().string(), damaged);
  example.check(example.load(packed, false));
}

TEST(a_stored_tensor_that_changes_under_its_packed_file_is_named) {
  Example example;
  const std::string packed = example.folder.path() + "/packed";
  const std::string shard = example.folder.path() + "/shard.bin";
  example.load(packed);
  auto time = std::filesystem::last_write_time(shard);
  example.write({1, 2, 3, 4, 10, 20, 30, 41});  // changes r, which is y and not in the packed file
  std::filesystem::last_write_time(shard, time);
  CHECK_CONTAINS(ERROR_OF(WHERRY_INCOMPATIBLE, example.load(packed)), "y in " + shard);
  // Changes x, which is packed, so only the packed file is read.
  example.write({1, 2, 3, 5, 10, 20, 30, 40});
  std::filesystem::last_write_time(shard, time);
  example.check(example.load(packed));
}

TEST(the_file_belongs_to_one_library_and_its_weights) {
  Example example;
  TensorCache cache = TensorCache::open(example.folder.path());
  uint64_t key = packed_key(example.metadata, cache, 1);
  CHECK(packed_key(example.metadata, cache, 2) != key);
  example.metadata.json = "{ }";
  CHECK(packed_key(example.metadata, cache, 1) != key);
  example.metadata.json = "{}";
  CHECK_EQ(packed_key(example.metadata, cache, 1), key);
  auto path = example.folder.path() + "/shard.bin";
  auto time = std::filesystem::last_write_time(path);
  std::filesystem::last_write_time(path, time + std::chrono::seconds(2));
  CHECK(packed_key(example.metadata, cache, 1) != key);
}

TEST(a_pack_function_that_fails_leaves_no_file) {
  Example example;
  std::string packed = example.folder.path() + "/packed";
  WeightsOptions options;
  options.pack_dir = packed;
  TensorCache cache = TensorCache::open(example.folder.path());
  auto fails = [](const std::string&, const std::vector<ffi::Tensor>&) -> std::vector<ffi::Tensor> {
    throw Error(WHERRY_INTERNAL, "no");
  };
  ERROR_OF(WHERRY_INTERNAL, load_params(example.metadata, cache, options, fails));
  CHECK(std::filesystem::is_empty(packed));
  auto one_result = [&](const std::string&, const std::vector<ffi::Tensor>& from) {
    return std::vector<ffi::Tensor>{from[0]};
  };
  CHECK_CONTAINS(
      ERROR_OF(WHERRY_INCOMPATIBLE, load_params(example.metadata, cache, options, one_result)),
      "p: index 1 of 1 results");
  auto wrong_shape = [&](const std::string&, const std::vector<ffi::Tensor>&) {
    return std::vector<ffi::Tensor>{allocate_host({5}, kFloat), allocate_host({5}, kFloat)};
  };
  CHECK_CONTAINS(
      ERROR_OF(WHERRY_INCOMPATIBLE, load_params(example.metadata, cache, options, wrong_shape)),
      "p became float32 [5]; the metadata says float32 [4]");
  CHECK(std::filesystem::is_empty(packed));
}

TEST(missing_and_unfit_tensors_are_all_named_before_anything_runs) {
  Example example;
  example.metadata.params[1].shape = {5};
  example.metadata.params[0].from = {"x", "z"};
  example.add("t", "", {"w"}, 0);
  std::string text = ERROR_OF(WHERRY_INCOMPATIBLE, example.load(""));
  CHECK_CONTAINS(text, "z is missing (for parameter p)");
  CHECK_CONTAINS(text, "y is float32 [4]; the library takes float32 [5]");
  CHECK_CONTAINS(text, "w is missing (for parameter t)");
  CHECK_EQ(example.calls, 0);
}

}  // namespace
}  // namespace wherry
