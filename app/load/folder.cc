#include "app/load/folder.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "app/value/json_text.h"
#include "support/error.h"

namespace wherry::app {

namespace {

namespace fs = std::filesystem;

constexpr int64_t kSchema = 2;  // schema version of wherry.json that this code reads

[[noreturn]] void refuse(const std::string& what) { throw Error(WHERRY_INCOMPATIBLE, what); }

std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw Error(WHERRY_NOT_FOUND, path + " cannot be read");
  return std::string(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
}

std::string text_of(const Value& object, const char* name, const std::string& path) {
  const Value* match = object.dict().find(std::string_view(name));
  if (match == nullptr || !match->is_string()) refuse(path + " has no text \"" + name + "\"");
  return match->text();
}

int64_t number_of_field(const Value* object, const char* name) {
  if (object == nullptr || !object->is_dict()) return 0;
  const Value* match = object->dict().find(std::string_view(name));
  return match != nullptr && match->is(json::Kind::kInt) ? match->integer() : 0;
}

// Returns the symbol prefix of a library that consists of object files; "" for other libraries.
std::string linked_symbols(const Value& manifest) {
  const Value* at = &manifest;
  for (const char* name : {"target", "objects", "symbols"}) {
    at = at != nullptr && at->is_dict() ? at->dict().find(name) : nullptr;
  }
  return at != nullptr && at->is_string() ? at->text() : "";
}

// Checks the sizes of a folder's files and reports all mismatches in one error; returns the total
// bytes.
int64_t check_files(const std::string& folder, const Value& files) {
  Problems problems;
  int64_t bytes = 0;
  for (const auto& [name, record] : files.dict().items) {
    if (!name.is_string() || name.text().find('/') != std::string::npos) {
      problems.add("\"", json::to_string(name), "\" is no name of a file");
      continue;
    }
    const int64_t declared = number_of_field(&record, "size");
    std::error_code error;
    const auto match = fs::file_size(folder + "/" + name.text(), error);
    if (error) {
      problems.add(name.text(), " is missing");
    } else if (static_cast<int64_t>(match) != declared) {
      problems.add(name.text(), " has ", match, " bytes, not ", declared);
    }
    bytes += declared;
  }
  problems.raise(WHERRY_INCOMPATIBLE, folder + " is damaged; copy it again");
  return bytes;
}

}  // namespace

Files files_of(const std::string& folder) {
  return {folder, [folder](const std::string& name) -> std::optional<std::string> {
            const std::string path = folder + "/" + name;
            if (!fs::is_regular_file(path)) return std::nullopt;
            return read_text(path);
          }};
}

Manifest read_manifest(const std::string& folder) {
  const std::string path = folder + "/wherry.json";
  if (!fs::is_regular_file(path)) {
    throw Error(WHERRY_NOT_FOUND, folder +
                                      " is no compiled model: it has no wherry.json. Type: "
                                      "wherry compile MODEL -o " +
                                      folder);
  }
  const Value manifest = read_object(files_of(folder), "wherry.json");
  const int64_t schema = number_of_field(&manifest, "schema");
  if (schema != kSchema) {
    refuse(path + " has schema " + std::to_string(schema) + ", this runtime reads " +
           std::to_string(kSchema) + "; compile the model again");
  }
  const Value* files = manifest.dict().find("files");
  if (files == nullptr || !files->is_dict()) refuse(path + " lists no files");
  Manifest result;
  result.bytes = check_files(folder, *files);
  result.name = text_of(manifest, "name", path);
  result.library = text_of(manifest, "library", path);
  if (files->dict().find(Value(result.library)) == nullptr)
    result.linked = linked_symbols(manifest);
  const Value* deployment = manifest.dict().find("deployment");
  result.context = number_of_field(deployment, "context");
  result.max_batch = number_of_field(deployment, "max_batch");
  result.prefill_chunk = number_of_field(deployment, "prefill_chunk");
  return result;
}

}  // namespace wherry::app
