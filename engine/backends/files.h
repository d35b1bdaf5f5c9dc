// A cache of files for driver binaries; the files may be deleted at any time.
#ifndef WHERRY_ENGINE_BACKENDS_FILES_H_
#define WHERRY_ENGINE_BACKENDS_FILES_H_

#include <string>

namespace wherry::backends {

// Returns the folder for binaries that drivers compiled; empty if there is no cache. Opening a
// plugin sets it.
const std::string& cache_folder();
void set_cache_folder(const std::string& folder);

// Returns the content of a file in the cache folder; empty if the file does not exist.
std::string read_cached(const std::string& name);

// Writes a cache file atomically (a temporary file, then a rename). Ignores errors: without the
// cache, only the next start takes longer.
void write_cached(const std::string& name, const std::string& content);

}  // namespace wherry::backends

#endif  // WHERRY_ENGINE_BACKENDS_FILES_H_
