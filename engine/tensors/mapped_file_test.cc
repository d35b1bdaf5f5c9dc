#include "tensors/mapped_file.h"

#include "testing/testing.h"

namespace wherry {
namespace {

TEST(content_and_errors) {
  testing::TemporaryFolder folder;
  std::string path = folder.write("f", "abc");
  CHECK_EQ(read_file(path), "abc");
  CHECK_EQ(MappedFile::open(path)->size(), 3u);
  CHECK_EQ(read_file(folder.write("empty", "")), "");
  CHECK_CONTAINS(ERROR_OF(WHERRY_NOT_FOUND, read_file(folder.path() + "/none")), "none");
  CHECK_CONTAINS(ERROR_OF(WHERRY_NOT_FOUND, read_file(folder.path())), "is not a file");
}

}  // namespace
}  // namespace wherry
