// The target folder of a download: finds what is missing, and replaces an older model.
#ifndef WHERRY_APP_FILES_MODEL_FOLDER_H_
#define WHERRY_APP_FILES_MODEL_FOLDER_H_

#include <functional>
#include <string>
#include <vector>

#include "app/files/descriptor.h"
#include "app/files/file_list.h"

namespace wherry::app {

class ModelFolder {
 public:
  // Creates and locks the folder; throws WHERRY_BUSY if another download holds the lock.
  explicit ModelFolder(std::string path);

  const std::string& path() const { return path_; }
  // The manifest of a complete model; "" if there is none.
  std::string manifest() const;
  // Returns the files that are missing or have another size.
  std::vector<FileRecord> lacking(const std::vector<FileRecord>& files) const;
  // Like `lacking`, but also compares contents; `read` receives the bytes read and the total.
  std::vector<FileRecord> differing(const std::vector<FileRecord>& files,
                                    const std::function<void(int64_t, int64_t)>& read) const;
  // Free bytes on the disk; -1: unknown.
  int64_t room() const;
  // Moves complete part files into place, then the manifest; deletes the rest of an older model.
  void take(const std::vector<FileRecord>& fetched, const std::vector<FileRecord>& files,
            const std::string& manifest) const;

 private:
  std::string place(const FileRecord& file) const { return path_ + "/" + file.name; }
  void remove_others(const std::vector<FileRecord>& files) const;

  std::string path_;
  Descriptor lock_;
};

}  // namespace wherry::app

#endif  // WHERRY_APP_FILES_MODEL_FOLDER_H_
