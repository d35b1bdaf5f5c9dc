#include "backends/files.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <system_error>

namespace wherry::backends {

namespace {

namespace fs = std::filesystem;

std::string& folder() {
  static std::string value;
  return value;
}

}  // namespace

const std::string& cache_folder() { return folder(); }

void set_cache_folder(const std::string& chosen) { folder() = chosen; }

std::string read_cached(const std::string& name) {
  if (folder().empty()) return "";
  std::ifstream file(fs::path(folder()) / name, std::ios::binary);
  return std::string((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
}

void write_cached(const std::string& name, const std::string& content) {
  if (folder().empty()) return;
  std::error_code error;
  fs::create_directories(folder(), error);
  fs::path path = fs::path(folder()) / name;
  fs::path temporary = path;
  temporary += "." + std::to_string(getpid()) + "." + std::to_string(std::random_device()());
  {
    std::ofstream file(temporary, std::ios::binary);
    file << content;
    file.flush();
    if (!file) {
      file.close();
      fs::remove(temporary, error);
      return;
    }
  }
  fs::rename(temporary, path, error);
  if (error) fs::remove(temporary, error);
}

}  // namespace wherry::backends
