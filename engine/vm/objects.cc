#include "vm/objects.h"

#include <tvm/ffi/container/array.h>
#include <tvm/ffi/function.h>

#include <algorithm>
#include <cstdint>

#include "support/error.h"
#include "tensors/mapped_file.h"

namespace wherry {

namespace {

constexpr std::string_view kSuffix = ".tar";
constexpr size_t kBlock = 512;  // bytes; headers and contents are padded to whole blocks
// Offsets and length, in bytes, of the fields of a tar header.
constexpr size_t kSizeAt = 124, kSizeDigits = 11, kTypeAt = 156;

[[noreturn]] void refuse(const std::string& why) {
  throw Error(WHERRY_INCOMPATIBLE, "the archive of objects is damaged: " + why);
}

uint64_t octal(std::string_view digits) {
  uint64_t value = 0;
  for (char digit : digits) {
    if (digit < '0' || digit > '7') refuse("a file's size is not an octal number");
    value = value * 8 + static_cast<uint64_t>(digit - '0');
  }
  return value;
}

bool is_empty(std::string_view block) {
  return std::all_of(block.begin(), block.end(), [](char byte) { return byte == '\0'; });
}

}  // namespace

bool is_archive(const std::string& lib) {
  return lib.size() > kSuffix.size() &&
         lib.compare(lib.size() - kSuffix.size(), kSuffix.size(), kSuffix) == 0;
}

std::vector<std::string_view> archived_files(std::string_view archive) {
  std::vector<std::string_view> files;
  while (archive.size() >= kBlock && !is_empty(archive.substr(0, kBlock))) {
    const uint64_t size = octal(archive.substr(kSizeAt, kSizeDigits));
    const char type = archive[kTypeAt];
    archive.remove_prefix(kBlock);
    if (size > archive.size()) refuse("a file is longer than the archive");
    if (type == '0' || type == '\0') files.push_back(archive.substr(0, size));
    archive.remove_prefix(std::min<size_t>(archive.size(), (size + kBlock - 1) / kBlock * kBlock));
  }
  if (files.empty()) refuse("it has no files");
  return files;
}

ffi::Module load_objects(const std::string& lib) {
  auto session = ffi::Function::GetGlobal("tvm_ffi_orcjit.GlobalDefaultSession");
  auto load = ffi::Function::GetGlobal("tvm_ffi_orcjit.SessionLoadModule");
  if (!session.has_value() || !load.has_value()) {
    throw Error(WHERRY_INCOMPATIBLE,
                lib +
                    " is an archive of objects, and this process has no linker for them: load "
                    "libtvm_ffi_orcjit first, or compile the model with --format library");
  }
  auto file = MappedFile::open(lib);
  ffi::Array<ffi::Any> objects;
  for (std::string_view object : archived_files({file->data(), file->size()})) {
    objects.push_back(ffi::Bytes(object.data(), object.size()));
  }
  return (*load)((*session)(), objects, ffi::String(""), nullptr, nullptr).cast<ffi::Module>();
}

}  // namespace wherry
