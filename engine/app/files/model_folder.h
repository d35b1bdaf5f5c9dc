// The folder that a download writes: what it has of a model, and how a model takes its place.
#ifndef WHERRY_ENGINE_APP_FILES_MODEL_FOLDER_H_
#define WHERRY_ENGINE_APP_FILES_MODEL_FOLDER_H_

#include <functional>
#include <string>
#include <vector>

#include "app/files/descriptor.h"
#include "app/files/file_list.h"

namespace wherry::app {

class ModelFolder {
 public:
  // Makes it, and holds it: WHERRY_BUSY if somebody else does.
  explicit ModelFolder(std::string path);

  const std::string& path() const { return path_; }
  // The manifest of a model that was complete; "": there is none.
  std::string manifest() const;
  // Those of `files` that are missing or have another size.
  std::vector<FileRecord> lacking(const std::vector<FileRecord>& files) const;
  // Likewise, and with their contents; `read` is told how many bytes of how many were read.
  std::vector<FileRecord> differing(const std::vector<FileRecord>& files,
                                    const std::function<void(int64_t, int64_t)>& read) const;
  // Bytes that the disk has for it; -1: it does not say.
  int64_t room() const;
  // Files whose parts are whole take their places, then the manifest does; what is left of another
  // model goes.
  void take(const std::vector<FileRecord>& fetched, const std::vector<FileRecord>& files,
            const std::string& manifest) const;

 private:
  std::string place(const FileRecord& file) const { return path_ + "/" + file.name; }
  void remove_others(const std::vector<FileRecord>& files) const;

  std::string path_;
  Descriptor lock_;
};

}  // namespace wherry::app

#endif  // WHERRY_ENGINE_APP_FILES_MODEL_FOLDER_H_
