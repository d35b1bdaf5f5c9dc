#include "tensors/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "support/error.h"

namespace wherry {

namespace {

[[noreturn]] void fail(const std::string& path, const char* action, int error) {
  wherry_status status = error == ENOENT || error == ENOTDIR ? WHERRY_NOT_FOUND : WHERRY_INTERNAL;
  throw Error(status, concat(path, ": cannot ", action, ": ", std::strerror(error)));
}

// A file descriptor that closes itself, also when an exception is thrown.
struct Descriptor {
  int fd;
  ~Descriptor() { close(fd); }
};

}  // namespace

std::shared_ptr<const MappedFile> MappedFile::open(const std::string& path) {
  int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) fail(path, "open", errno);
  Descriptor descriptor{fd};
  struct stat info{};
  if (fstat(fd, &info) != 0) fail(path, "read the size", errno);
  if (!S_ISREG(info.st_mode)) throw Error(WHERRY_NOT_FOUND, path + " is not a file");
  std::shared_ptr<MappedFile> file(new MappedFile);
  file->size_ = static_cast<size_t>(info.st_size);
  if (file->size_ == 0) return file;  // mmap rejects a length of 0
  void* data = mmap(nullptr, file->size_, PROT_READ, MAP_PRIVATE, fd, 0);
  if (data == MAP_FAILED) fail(path, "map", errno);
  file->data_ = static_cast<char*>(data);
  return file;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) munmap(data_, size_);
}

std::string read_file(const std::string& path) {
  std::shared_ptr<const MappedFile> file = MappedFile::open(path);
  return std::string(file->data(), file->size());
}

}  // namespace wherry
