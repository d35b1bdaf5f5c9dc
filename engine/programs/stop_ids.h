// Reads a model's stop tokens from its Hugging Face folder.
#ifndef WHERRY_ENGINE_PROGRAMS_STOP_IDS_H_
#define WHERRY_ENGINE_PROGRAMS_STOP_IDS_H_

#include <cstdint>
#include <string>
#include <vector>

namespace wherry {

// Returns eos_token_id of generation_config.json and config.json in a folder, which is an id, a
// list of ids, or absent. Throws std::runtime_error if it is something else, or a file is not JSON.
std::vector<int32_t> stop_ids_of(const std::string& folder);

}  // namespace wherry

#endif  // WHERRY_ENGINE_PROGRAMS_STOP_IDS_H_
