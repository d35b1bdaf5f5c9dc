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
  // Creates and locks the folder at `path`. Throws WHERRY_BUSY if another download holds the lock.
  explicit ModelFolder(std::string path);

  const std::string& path() const { return path_; }
  // Returns the manifest of a complete model; "" if there is none.
  std::string manifest() const;
  // Returns the files that are missing or have another size.
  std::vector<FileRecord> lacking(const std::vector<FileRecord>& files) const;
  // Returns the files that are missing or differ in size or content; `read` is called with the
  // bytes read so far and the total.
  std::vector<FileRecord> differing(const std::vector<FileRecord>& files,
                                    const std::function<void(int64_t, int64_t)>& read) const;
  // Returns the free bytes on the disk; -1 if unknown.
  int64_t room() const;
  // Moves complete part files into place, then the manifest; deletes the remaining files of an
  // older model.
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
