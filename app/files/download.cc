#include "app/files/download.h"

#include <algorithm>

#include "app/files/download_error.h"
#include "app/files/model_folder.h"
#include "app/files/part_file.h"
#include "app/files/server.h"
#include "app/request/fields.h"
#include "app/value/json_text.h"
#include "support/error.h"

namespace wherry::app {

namespace {

constexpr int kTries = 2;                     // number of attempts for a file that arrives damaged
constexpr size_t kMostManifest = 16 << 20;    // bytes
constexpr int64_t kSpare = 16 << 20;          // bytes that must stay free on the disk
constexpr int64_t kBetweenReports = 1 << 16;  // bytes
constexpr int64_t kLongestWait = 60'000;      // milliseconds

// Reports progress to the caller, whose callback can cancel the download.
class Report {
 public:
  explicit Report(const wherry_app_progress* given) : given_(given) {}

  void say(const char* phase, int64_t done, int64_t total) {
    phase_ = phase;
    done_ = done;
    total_ = total;
    again();
  }
  // Counts received (or wasted) bytes; reports them at intervals.
  void more(int64_t bytes) {
    done_ += bytes;
    if (std::abs(done_ - said_) >= kBetweenReports || done_ == total_) again();
  }
  void again() {
    said_ = done_;
    if (given_ == nullptr || given_->report == nullptr) return;
    if (given_->report(given_->context, phase_, done_, total_) == 0) return;
    throw DownloadError(WHERRY_CANCELLED, "the download was cancelled");
  }

 private:
  const wherry_app_progress* given_;
  const char* phase_ = "check";
  int64_t done_ = 0, total_ = 0, said_ = 0;
};

std::string gigabytes(int64_t bytes) {
  std::string text = std::to_string(static_cast<double>(bytes) / 1e9);
  return text.substr(0, text.find('.') + 3) + " GB";
}

class Download {
 public:
  Download(const std::string& url, const std::string& folder, const DownloadOptions& options,
           const wherry_app_fetcher& fetcher, const wherry_app_progress* progress)
      : base_(url.empty() || url.back() != '/' ? url + "/" : url),
        verify_(options.verify),
        folder_(folder),
        report_(progress),
        server_(fetcher, options.retry_wait, [this] { report_.again(); }) {}

  void run() {
    const std::string kept = folder_.manifest();
    const std::string manifest = find_manifest(kept);
    const std::vector<FileRecord> files = file_list(manifest, base_ + kManifest);
    int64_t total = 0;
    for (const FileRecord& file : files) total += file.size;
    const bool known = manifest == kept;
    const std::vector<FileRecord> missing =
        known && !verify_
            ? folder_.lacking(files)
            : folder_.differing(files, [this](auto... at) { report_.say("check", at...); });
    if (!known || !missing.empty()) fetch(missing, total);
    if (!known || !missing.empty()) folder_.take(missing, files, manifest);
    report_.say("download", total, total);
  }

 private:
  // Returns the server's manifest; without a connection, the manifest of a model that is already
  // complete.
  std::string find_manifest(const std::string& kept) {
    try {
      return server_.download(base_ + kManifest, kMostManifest);
    } catch (const Unreachable& error) {
      if (error.http_status() != 0 || kept.empty()) throw;
      if (!folder_.lacking(file_list(kept, folder_.path() + "/" + kManifest)).empty()) throw;
      return kept;
    }
  }

  void fetch(const std::vector<FileRecord>& missing, int64_t total) {
    int64_t needed = 0, parts = 0;
    for (const FileRecord& file : missing) {
      needed += file.size;
      parts += PartFile(folder_.path(), file).kept();
    }
    check_room(needed - parts);
    report_.say("download", total - needed + parts, total);
    for (const FileRecord& file : missing) fetch_file(file);
  }

  void check_room(int64_t needed) const {
    const int64_t room = folder_.room();
    if (needed == 0 || room < 0 || needed + kSpare <= room) return;
    throw DownloadError(
        WHERRY_NO_SPACE,
        concat(base_, " needs ", gigabytes(needed + kSpare), " more, ", folder_.path(), " has ",
               gigabytes(room), " free. Remove other files, or take another model"));
  }

  // Fetches the missing rest of a file. If the file is damaged, fetches the whole file once more.
  void fetch_file(const FileRecord& file) {
    PartFile part(folder_.path(), file);
    for (int round = 0; round < kTries; ++round) {
      const int64_t from = part.open([this] { report_.again(); });
      server_.stream(base_ + file.name, from, file.size, [&](const char* data, size_t n) {
        part.append(data, n);
        report_.more(static_cast<int64_t>(n));
      });
      if (part.finish()) return;
      report_.more(-file.size);
    }
    throw DownloadError(WHERRY_DAMAGED,
                        concat(base_, file.name, " is not what ", kManifest, " lists (", file.size,
                               " bytes, SHA-256 ", file.sha256,
                               "), also when it is fetched again. Upload the folder again"));
  }

  std::string base_;
  bool verify_;
  ModelFolder folder_;
  Report report_;
  Server server_;
};

}  // namespace

DownloadOptions read_download_options(const std::string& json) {
  DownloadOptions options;
  if (json.empty()) return options;
  Value given;
  try {
    given = json::from_json(json);
  } catch (const json::Failure& failure) {
    throw Error(WHERRY_INVALID_ARGUMENT, std::string("the options are no JSON: ") + failure.what());
  }
  if (!given.is_dict()) throw Error(WHERRY_INVALID_ARGUMENT, "the options are no JSON object");
  Problems problems;
  for (const auto& [name, value] : given.dict().items) {
    if (name.text() == "verify" && value.is(json::Kind::kBool)) {
      options.verify = value.integer() != 0;
    } else if (name.text() == "retry_wait" && value.is(json::Kind::kInt) && value.integer() >= 0 &&
               value.integer() <= kLongestWait) {
      options.retry_wait = value.integer();
    } else {
      problems.add(name.text(), ": found ", json::to_json(value),
                   "; options are \"verify\", true or false, and \"retry_wait\", 0 to ",
                   kLongestWait, " ms");
    }
  }
  problems.raise(WHERRY_INVALID_ARGUMENT, "the options cannot be used");
  return options;
}

void download(const std::string& url, const std::string& folder, const DownloadOptions& options,
              const wherry_app_fetcher& fetcher, const wherry_app_progress* progress) {
  Download(url, folder, options, fetcher, progress).run();
}

std::string missing_files(const std::string& manifest, const std::string& folder) {
  const std::vector<FileRecord> files = file_list(manifest, kManifest);
  json::Values values;
  for (const FileRecord& file : ModelFolder(folder).lacking(files)) {
    const PartFile part(folder, file);
    if (part.kept() == file.size) continue;  // complete, or empty and so not fetched
    const std::string name = part.path().substr(part.path().rfind('/') + 1);
    values.push_back(json::make_dict({{"name", file.name}, {"size", file.size}, {"part", name}}));
  }
  return json::to_compact_json(json::make_list(std::move(values)));
}

}  // namespace wherry::app
