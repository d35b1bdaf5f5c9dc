#include "backends/metal/archive.h"

#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <random>
#include <system_error>

#include "backends/files.h"
#include "backends/metal/api.h"
#include "support/hash.h"

namespace wherry::metal {

namespace {

namespace fs = std::filesystem;

std::string hex(uint64_t number) {
  char text[20];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(number));
  return text;
}

// Metal writes the file itself, so the hash of its content is in a file of its own: a driver may
// crash on a damaged archive.
std::string sum_of(const std::string& name) { return name + ".sum"; }

std::string path_of(const std::string& name) {
  return (fs::path(backends::cache_folder()) / name).string();
}

Id url_of(const std::string& path) {
  return Api::get().file_url(class_of("NSURL"), string_of(path));
}

}  // namespace

Archive::Archive(Id device, uint64_t identity)
    : device_(device), name_(hex(identity) + ".metalarchive") {
  const std::string content = backends::read_cached(name_);
  if (content.empty()) return;
  if (backends::read_cached(sum_of(name_)) != hex(Hash().text(content).value())) return;
  known_ = open(path_of(name_));
}

Own Archive::open(const std::string& path) const {
  const Api& metal = Api::get();
  if (!responds(device_, metal.new_archive.selector())) return Own();
  Own descriptor = make("MTLBinaryArchiveDescriptor");
  if (!path.empty()) metal.set_url(descriptor.get(), url_of(path));
  Id error = nullptr;
  return Own(metal.new_archive(device_, descriptor.get(), &error));
}

void Archive::write(const std::vector<Id>& descriptors) const {
  if (backends::cache_folder().empty()) return;
  const Api& metal = Api::get();
  Own archive = open("");
  if (!archive) return;
  Id error = nullptr;
  for (Id descriptor : descriptors) {
    if (!metal.add_functions(archive.get(), descriptor, &error)) return;
  }
  std::error_code failed;
  fs::create_directories(backends::cache_folder(), failed);
  const std::string own =
      name_ + "." + std::to_string(getpid()) + "." + hex(std::random_device()());
  if (metal.serialize(archive.get(), url_of(path_of(own)), &error)) {
    const std::string sum = hex(Hash().text(backends::read_cached(own)).value());
    fs::rename(path_of(own), path_of(name_), failed);
    if (!failed) backends::write_cached(sum_of(name_), sum);
  }
  fs::remove(path_of(own), failed);
}

}  // namespace wherry::metal
