// A cache of files, which may be deleted at any time.
#ifndef WHERRY_ENGINE_BACKENDS_FILES_H_
#define WHERRY_ENGINE_BACKENDS_FILES_H_

#include <string>

namespace wherry::backends {

// The folder for binaries that drivers compiled; empty: no cache. Opening a plugin sets it.
const std::string& cache_folder();
void set_cache_folder(const std::string& folder);

// The content of a file in the cache's folder; empty if there is no file.
std::string read_cached(const std::string& name);

// Writes a temporary file and renames it. Ignores errors: without the cache only the next start
// takes longer.
void write_cached(const std::string& name, const std::string& content);

}  // namespace wherry::backends

#endif  // WHERRY_ENGINE_BACKENDS_FILES_H_
