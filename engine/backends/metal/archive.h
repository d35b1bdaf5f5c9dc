// A file of compiled pipelines, MTLBinaryArchive, in the cache folder.
#ifndef WHERRY_ENGINE_BACKENDS_METAL_ARCHIVE_H_
#define WHERRY_ENGINE_BACKENDS_METAL_ARCHIVE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "backends/metal/objc.h"

namespace wherry::metal {

// The archive of one library on one device. Without a cache folder, or where the system has no
// archives, it is empty and stays so. All calls need an autorelease pool.
class Archive {
 public:
  // device: MTLDevice; identity: a hash of the library and of all else that its code depends on.
  Archive(Id device, uint64_t identity);

  // Returns the MTLBinaryArchive that was read; null if there is none.
  Id known() const { return known_.get(); }
  // Writes a new file with these pipelines. Ignores errors: without the file, only the next start
  // takes longer. descriptors: MTLComputePipelineDescriptor of each.
  void write(const std::vector<Id>& descriptors) const;

 private:
  // Returns an archive, read from a path; "": a new one. Null if the system refuses it.
  Own open(const std::string& path) const;

  Id device_;
  std::string name_;
  Own known_;
};

}  // namespace wherry::metal

#endif  // WHERRY_ENGINE_BACKENDS_METAL_ARCHIVE_H_
