#include "app/files/sha256.h"

#include <cstdint>

#include "testing/testing.h"

namespace wherry::app {
namespace {

std::string sha256(const std::string& text) {
  return Sha256().bytes(text.data(), text.size()).finish();
}

TEST(what_the_standard_s_examples_say) {
  CHECK_EQ(sha256(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK_EQ(sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK_EQ(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
           "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  CHECK_EQ(sha256(std::string(1000000, 'a')),
           "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(pieces_of_any_length_are_as_one) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += static_cast<char>(i * 7);
  for (const size_t piece : {1u, 3u, 63u, 64u, 65u, 200u}) {
    Sha256 hash;
    for (size_t at = 0; at < text.size(); at += piece) {
      hash.bytes(text.data() + at, std::min(piece, text.size() - at));
    }
    CHECK_EQ(hash.finish(), sha256(text));
  }
}

}  // namespace
}  // namespace wherry::app
