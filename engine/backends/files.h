// Files of a cache that may go missing at any time.
#ifndef WHERRY_ENGINE_BACKENDS_FILES_H_
#define WHERRY_ENGINE_BACKENDS_FILES_H_

#include <string>

namespace wherry::backends {

// Folder of what drivers compiled; empty: nothing is kept. Set when a plugin is opened.
const std::string& cache_folder();
void set_cache_folder(const std::string& folder);

// Content of a file in the cache's folder; empty if there is none.
std::string read_cached(const std::string& name);

// Written under a temporary name and renamed. A cache that cannot be written costs time at the next
// start, nothing else: errors are passed by.
void write_cached(const std::string& name, const std::string& content);

}  // namespace wherry::backends

#endif  // WHERRY_ENGINE_BACKENDS_FILES_H_
