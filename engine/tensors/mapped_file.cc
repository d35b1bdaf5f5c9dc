#include "tensors/mapped_file.h"

#include <cerrno>
#include <cstring>

#include "support/error.h"
#include "system/files.h"
#include "system/pages.h"

namespace wherry {

namespace {

[[noreturn]] void fail(const std::string& path, const char* action, int error) {
  wherry_status status = error == ENOENT || error == ENOTDIR ? WHERRY_NOT_FOUND : WHERRY_INTERNAL;
  throw Error(status, concat(path, ": cannot ", action, ": ", std::strerror(error)));
}

}  // namespace

std::shared_ptr<const MappedFile> MappedFile::open(const std::string& path) {
  const files::File opened(path, files::Open::kRead);
  if (!opened) fail(path, "open", errno);
  const std::optional<files::Info> info = opened.info();
  if (!info && errno == EISDIR) throw Error(WHERRY_NOT_FOUND, path + " is not a file");
  if (!info) fail(path, "read the size", errno);
  std::shared_ptr<MappedFile> file(new MappedFile);
  file->size_ = static_cast<size_t>(info->bytes);
  if (file->size_ == 0) return file;  // nothing to map
  void* data = pages::map(opened, file->size_);
  if (data == nullptr) fail(path, "map", errno);
  file->data_ = static_cast<char*>(data);
  return file;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) pages::unmap(data_, size_);
}

std::string read_file(const std::string& path) {
  std::shared_ptr<const MappedFile> file = MappedFile::open(path);
  return std::string(file->data(), file->size());
}

}  // namespace wherry
