#include "app/files/model_folder.h"

#include <fcntl.h>
#include <sys/file.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>

#include "app/files/part_file.h"
#include "support/error.h"

namespace wherry::app {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPart = ".part";

// Optional files of a model folder that wherry_app_open reads if they exist.
constexpr std::string_view kRead[] = {
    "config.json",           "generation_config.json",       "tokenizer.json",
    "tokenizer_config.json", "special_tokens_map.json",      "chat_template.jinja",
    "chat_template.json",    "chat_template.tool_use.jinja", "tensor-cache.json",
    "wherry-head.json"};

bool ends_with(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

bool is_of_a_model(std::string_view name) {
  if (std::find(std::begin(kRead), std::end(kRead), name) != std::end(kRead)) return true;
  return name.substr(0, 13) == "params_shard_" && ends_with(name, ".bin");
}

bool is_a_part(std::string_view name) { return name[0] == '.' && ends_with(name, kPart); }

}  // namespace

ModelFolder::ModelFolder(std::string path) : path_(std::move(path)) {
  std::error_code error;
  fs::create_directories(path_, error);
  if (error) fail_to_write(path_, error.value());
  lock_ = Descriptor(::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!lock_.open()) fail_to_write(path_, errno);
  if (::flock(lock_.get(), LOCK_EX | LOCK_NB) == 0) return;
  if (errno != EWOULDBLOCK) fail_to_write(path_, errno);
  throw Error(WHERRY_BUSY, "another download writes to " + path_);
}

std::string ModelFolder::manifest() const {
  std::ifstream file(path_ + "/" + kManifest, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
}

std::vector<FileRecord> ModelFolder::lacking(const std::vector<FileRecord>& files) const {
  std::vector<FileRecord> matches;
  for (const FileRecord& file : files) {
    if (size_of(place(file)) != file.size) matches.push_back(file);
  }
  return matches;
}

std::vector<FileRecord> ModelFolder::differing(
    const std::vector<FileRecord>& files, const std::function<void(int64_t, int64_t)>& read) const {
  std::vector<FileRecord> matches = lacking(files), here;
  int64_t done = 0, total = 0;
  for (const FileRecord& file : files) {
    if (size_of(place(file)) != file.size) continue;
    here.push_back(file);
    total += file.size;
  }
  for (const FileRecord& file : here) {
    Sha256 hash;
    hash_file(place(file), hash, [&](int64_t n) { read(done += n, total); });
    if (hash.finish() != file.sha256) matches.push_back(file);
  }
  return matches;
}

int64_t ModelFolder::room() const {
  std::error_code error;
  const fs::space_info space = fs::space(path_, error);
  return error ? -1 : static_cast<int64_t>(space.available);
}

void ModelFolder::take(const std::vector<FileRecord>& fetched, const std::vector<FileRecord>& files,
                       const std::string& manifest) const {
  // A manifest promises that all files are complete, so it is deleted first and written last.
  std::remove((path_ + "/" + kManifest).c_str());
  for (const FileRecord& file : fetched) {
    const std::string part = PartFile(path_, file).path();
    if (std::rename(part.c_str(), place(file).c_str()) != 0) fail_to_write(place(file), errno);
  }
  remove_others(files);
  // This makes the renames durable; some systems cannot sync a folder and write it later.
  ::fsync(lock_.get());
  write_file(path_ + "/" + kManifest, manifest);
  ::fsync(lock_.get());
}

void ModelFolder::remove_others(const std::vector<FileRecord>& files) const {
  std::error_code error;
  std::vector<fs::path> others;
  for (fs::directory_iterator each(path_, error), end; !error && each != end;
       each.increment(error)) {
    const std::string name = each->path().filename().string();
    const bool listed = std::any_of(files.begin(), files.end(),
                                    [&](const FileRecord& file) { return file.name == name; });
    if (!listed && (is_of_a_model(name) || is_a_part(name))) others.push_back(each->path());
  }
  for (const fs::path& path : others) fs::remove(path, error);
}

}  // namespace wherry::app
