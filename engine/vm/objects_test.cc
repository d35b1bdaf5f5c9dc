#include "vm/objects.h"

#include "support/error.h"
#include "testing/testing.h"

namespace wherry {
namespace {

// Returns one file of a tar archive: a header of 512 bytes, and the content padded to blocks.
std::string archived(const std::string& content, char type = '0') {
  std::string header(512, '\0');
  header.replace(0, 3, "a.o");
  std::string digits(11, '0');
  for (size_t size = content.size(), at = 11; size > 0; size /= 8) {
    digits[--at] = static_cast<char>('0' + size % 8);
  }
  header.replace(124, 11, digits);
  header[156] = type;
  std::string padding((512 - content.size() % 512) % 512, '\0');
  return header + content + padding;
}

const std::string kEnd(1024, '\0');

TEST(files_of_an_archive) {
  const std::string large(700, 'x');
  const std::string archive = archived("one") + archived("a folder", '5') + archived(large) + kEnd;
  auto files = archived_files(archive);
  CHECK_EQ(files.size(), 2U);
  CHECK(files[0] == "one");
  CHECK(files[1] == large);
}

TEST(a_damaged_archive) {
  const std::string complete = archived(std::string(600, 'x')) + kEnd;
  std::string letters = complete;
  letters[130] = 'z';
  std::string endless = complete;
  endless.replace(124, 11, "77777777777");
  for (const std::string& archive :
       {std::string(), kEnd, complete.substr(0, 700), letters, endless, std::string(100, 'x')}) {
    CHECK_CONTAINS(ERROR_OF(WHERRY_INCOMPATIBLE, archived_files(archive)), "is damaged");
  }
}

TEST(which_libraries_are_archives) {
  CHECK(is_archive("/models/a/model.tar"));
  CHECK(!is_archive("/models/a.tar/model.so"));
  CHECK(!is_archive(".tar"));
}

}  // namespace
}  // namespace wherry
