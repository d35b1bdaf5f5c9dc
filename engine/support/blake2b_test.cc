// Compares BLAKE2b with Python's hashlib.blake2b(data, digest_size=32).
#include "support/blake2b.h"

#include <algorithm>
#include <vector>

#include "testing/testing.h"

namespace wherry {
namespace {

std::string hex(const Blake2b::Digest& digest) {
  std::string text;
  for (uint8_t byte : digest) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

std::vector<uint8_t> data_of(size_t n) {
  std::vector<uint8_t> data(n);
  for (size_t i = 0; i < n; ++i) data[i] = static_cast<uint8_t>(i * 7 + i / 256);
  return data;
}

TEST(known_digests) {
  CHECK_EQ(hex(Blake2b().bytes("abc", 3).finish()),
           "bddd813c634239723171ef3fee98579b94964e3bb1cb3e427262c8c068d52319");
  const struct {
    size_t n;
    const char* digest;
  } cases[] = {
      {0, "0e5751c026e543b2e8ab2eb06099daa1d1e5df47778f7787faab45cdf12fe3a8"},
      {127, "4ff62e7c4c43fe101a078479c48836be4907d9d498dcc577ca89d694b2c11f9b"},
      {128, "14696d2a98d9f8a280da8b132b1045b345e1033759c6b02fcc4ee885c8ae7c37"},
      {129, "3934215260b1039be9d9d2b073b059bcd50120c327a22af93eb4d98cf821c14c"},
      {256, "3d0cb2693dfbac42af5a6cc960953fea8714aa39c4bcd054ef61d6b5e98ade4a"},
      {1000, "38981cec8fd0971914a759c4fac0538dbb29495eec4aea07f277e1f5f8562d27"},
  };
  for (const auto& each : cases) {
    CHECK_EQ(hex(Blake2b().bytes(data_of(each.n).data(), each.n).finish()), each.digest);
  }
}

TEST(pieces_do_not_matter) {
  std::vector<uint8_t> data = data_of(1000);
  for (size_t piece : {1, 7, 64, 127, 128, 129, 500}) {
    Blake2b hash;
    for (size_t i = 0; i < data.size(); i += piece) {
      hash.bytes(data.data() + i, std::min(piece, data.size() - i));
    }
    CHECK_EQ(hex(hash.finish()),
             "38981cec8fd0971914a759c4fac0538dbb29495eec4aea07f277e1f5f8562d27");
  }
}

TEST(texts_keep_their_borders) {
  CHECK(Blake2b().text("ab").text("c").finish() != Blake2b().text("a").text("bc").finish());
}

}  // namespace
}  // namespace wherry
