#include "programs/stop_ids.h"

#include <tvm/ffi/extra/json.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>

namespace wherry {

namespace {

namespace ffi = tvm::ffi;

constexpr char kKey[] = "eos_token_id";

void add(const ffi::Any& value, const std::string& path, std::vector<int32_t>& ids) {
  if (auto id = value.as<int64_t>()) {
    ids.push_back(static_cast<int32_t>(*id));
  } else if (auto list = value.as<ffi::json::Array>()) {
    for (const ffi::Any& one : *list) add(one, path, ids);
  } else if (value != nullptr) {
    throw std::runtime_error(path + ": " + kKey + " is neither an id nor a list of ids");
  }
}

void add_file(const std::string& path, std::vector<int32_t>& ids) {
  if (!std::filesystem::is_regular_file(path)) return;
  std::ifstream file(path);
  std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  ffi::String error;
  auto object = ffi::json::Parse(text, &error).as<ffi::json::Object>();
  if (!object) throw std::runtime_error(path + " is not a JSON object. " + std::string(error));
  ffi::String key = kKey;
  if (object->count(key) != 0) add((*object)[key], path, ids);
  ffi::String nested = "text_config";  // object of the text model's fields in multimodal models
  if (object->count(key) == 0 && object->count(nested) != 0) {
    auto inner = (*object)[nested].as<ffi::json::Object>();
    if (inner && inner->count(key) != 0) add((*inner)[key], path, ids);
  }
}

}  // namespace

std::vector<int32_t> stop_ids_of(const std::string& folder) {
  std::vector<int32_t> ids;
  for (const char* name : {"generation_config.json", "config.json"}) {
    add_file(folder + "/" + name, ids);
  }
  return ids;
}

}  // namespace wherry
