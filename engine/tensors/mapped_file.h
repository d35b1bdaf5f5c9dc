// A file that is mapped into memory read-only.
#ifndef WHERRY_ENGINE_TENSORS_MAPPED_FILE_H_
#define WHERRY_ENGINE_TENSORS_MAPPED_FILE_H_

#include <cstddef>
#include <memory>
#include <string>

namespace wherry {

class MappedFile {
 public:
  // Maps the file at `path`. Throws WHERRY_NOT_FOUND or WHERRY_INTERNAL (with the system's reason).
  static std::shared_ptr<const MappedFile> open(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  const char* data() const { return data_; }
  size_t size() const { return size_; }  // bytes

 private:
  MappedFile() = default;

  char* data_ = nullptr;
  size_t size_ = 0;
};

// Returns the whole content of a file. Throws as MappedFile::open does.
std::string read_file(const std::string& path);

}  // namespace wherry

#endif  // WHERRY_ENGINE_TENSORS_MAPPED_FILE_H_
