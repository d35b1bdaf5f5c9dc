#include "app/chat/folder.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "app/template/json_text.h"
#include "support/error.h"

namespace wherry::app {

namespace {

namespace fs = std::filesystem;

constexpr int64_t kSchema = 2;  // of wherry.json
constexpr int64_t kMostIds = 1 << 24;

[[noreturn]] void refuse(const std::string& what) { throw Error(WHERRY_INCOMPATIBLE, what); }

std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw Error(WHERRY_NOT_FOUND, path + " cannot be read");
  return std::string(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
}

// A JSON object; an empty one if there is no such file.
Value read_object(const std::string& path) {
  if (!fs::is_regular_file(path)) return jinja::make_dict({});
  try {
    Value value = jinja::from_json(read_text(path));
    if (!value.is_dict()) refuse(path + " holds no JSON object");
    return value;
  } catch (const jinja::Failure& failure) {
    refuse(path + " is not JSON: " + failure.what());
  }
}

std::string text_of(const Value& object, const char* name, const std::string& path) {
  const Value* found = object.dict().find(std::string_view(name));
  if (found == nullptr || !found->is_string()) refuse(path + " has no text \"" + name + "\"");
  return found->text();
}

int64_t number_of_field(const Value* object, const char* name) {
  if (object == nullptr || !object->is_dict()) return 0;
  const Value* found = object->dict().find(std::string_view(name));
  return found != nullptr && found->is(jinja::Kind::kInt) ? found->integer() : 0;
}

// The prefix of the symbols of a library of object files; "": it is another.
std::string linked_symbols(const Value& manifest) {
  const Value* at = &manifest;
  for (const char* name : {"target", "objects", "symbols"}) {
    at = at != nullptr && at->is_dict() ? at->dict().find(name) : nullptr;
  }
  return at != nullptr && at->is_string() ? at->text() : "";
}

// Sizes of the files, all that are wrong at once; bytes of all.
int64_t check_files(const std::string& folder, const Value& files) {
  Problems problems;
  int64_t bytes = 0;
  for (const auto& [name, record] : files.dict().items) {
    if (!name.is_string() || name.text().find('/') != std::string::npos) {
      problems.add("\"", jinja::to_string(name), "\" is no name of a file");
      continue;
    }
    const int64_t wanted = number_of_field(&record, "size");
    std::error_code error;
    const auto found = fs::file_size(folder + "/" + name.text(), error);
    if (error) {
      problems.add(name.text(), " is missing");
    } else if (static_cast<int64_t>(found) != wanted) {
      problems.add(name.text(), " has ", found, " bytes, not ", wanted);
    }
    bytes += wanted;
  }
  problems.raise(WHERRY_INCOMPATIBLE, folder + " is damaged; copy it again");
  return bytes;
}

Value special_tokens(const std::string& folder) {
  std::vector<std::pair<Value, Value>> made;
  for (const char* file : {"/special_tokens_map.json", "/tokenizer_config.json"}) {
    const Value config = read_object(folder + file);
    for (const char* name :
         {"bos_token", "eos_token", "unk_token", "pad_token", "sep_token", "cls_token"}) {
      const Value* token = config.dict().find(std::string_view(name));
      if (token == nullptr) continue;
      const Value* content = token->is_dict() ? token->dict().find("content") : token;
      // What the later file says counts, also that there is none.
      made.emplace_back(name, content != nullptr && content->is_string() ? *content : Value());
    }
  }
  const Value all = jinja::make_dict(std::move(made));
  std::vector<std::pair<Value, Value>> texts;
  for (const auto& item : all.dict().items) {
    if (item.second.is_string()) texts.push_back(item);
  }
  return jinja::make_dict(std::move(texts));
}

// The template's text: chat_template.jinja, else that of tokenizer_config.json; of several named
// ones "default".
std::optional<std::string> template_source(const std::string& folder) {
  const std::string path = folder + "/chat_template.jinja";
  if (fs::is_regular_file(path)) return read_text(path);
  const std::string config_path = folder + "/tokenizer_config.json";
  const Value config = read_object(config_path);
  const Value* found = config.dict().find("chat_template");
  if (found == nullptr || found->is_none()) return std::nullopt;
  if (found->is_string()) return found->text();
  if (!found->is_sequence()) {
    refuse(config_path + ": chat_template is a " + jinja::type_name(*found) + ", not a text");
  }
  const Value* chosen = nullptr;
  for (const Value& one : found->items()) {
    if (!one.is_dict()) continue;
    const Value* name = one.dict().find("name");
    const Value* source = one.dict().find("template");
    if (source == nullptr || !source->is_string()) continue;
    const bool usual = name != nullptr && name->is_string() && name->text() == "default";
    if (usual || chosen == nullptr) chosen = source;
    if (usual) break;
  }
  return chosen ? std::optional<std::string>(chosen->text()) : std::nullopt;
}

void add_ids(const Value& config, const std::string& path, std::vector<int32_t>& ids) {
  const Value* value = config.dict().find("eos_token_id");
  if (value == nullptr) {  // models that also see nest it
    const Value* nested = config.dict().find("text_config");
    if (nested != nullptr && nested->is_dict()) value = nested->dict().find("eos_token_id");
  }
  if (value == nullptr || value->is_none()) return;
  const Values found = value->is_sequence() ? value->items() : Values{*value};
  for (const Value& id : found) {
    if (!id.is(jinja::Kind::kInt) || id.integer() < 0 || id.integer() >= kMostIds) {
      refuse(path + ": eos_token_id is " + jinja::repr(*value) +
             "; it takes an id or a list of ids");
    }
    ids.push_back(static_cast<int32_t>(id.integer()));
  }
}

std::vector<int32_t> eos_ids(const std::string& folder, const Tokenizer& tokenizer,
                             const Value& special) {
  std::vector<int32_t> ids, made;
  for (const char* name : {"/generation_config.json", "/config.json"}) {
    add_ids(read_object(folder + name), folder + name, ids);
  }
  if (const Value* token = special.dict().find("eos_token")) {
    if (const auto id = tokenizer.id_of(token->text())) ids.push_back(*id);
  }
  for (int32_t id : ids) {
    if (std::find(made.begin(), made.end(), id) == made.end()) made.push_back(id);
  }
  return made;
}

// The fields of generation_config.json that are read, each within what it may be.
Value generation_defaults(const std::string& folder) {
  const std::string path = folder + "/generation_config.json";
  const Value config = read_object(path);
  struct Row {
    const char* name;
    double low, high;
    bool low_is_out, high_is_out;
    const char* expected;
  };
  static constexpr Row kRows[] = {
      {"temperature", 0, 100, false, false, "a number from 0 to 100"},
      {"top_p", 0, 1, true, false, "a number above 0, up to 1"},
      {"top_k", -1, 2147483648.0, false, true, "a whole number from -1"},
      {"min_p", 0, 1, false, true, "a number from 0, below 1"},
      {"typical_p", 0, 1, true, false, "a number above 0, up to 1"},
      {"repetition_penalty", 0, 100, true, false, "a number above 0, up to 100"},
  };
  Problems problems;
  for (const Row& row : kRows) {
    const Value* value = config.dict().find(std::string_view(row.name));
    if (value == nullptr || value->is_none()) continue;
    const bool number = value->is_number() && !value->is(jinja::Kind::kBool);
    const double found = number ? value->number() : 0;
    const bool fits = number && (row.low_is_out ? found > row.low : found >= row.low) &&
                      (row.high_is_out ? found < row.high : found <= row.high);
    if (!fits) {
      problems.add(row.name, ": found ", jinja::repr(*value), ", expected ", row.expected);
    }
  }
  problems.raise(WHERRY_INCOMPATIBLE, path + " cannot be used");
  return config;
}

}  // namespace

Manifest read_manifest(const std::string& folder) {
  const std::string path = folder + "/wherry.json";
  if (!fs::is_regular_file(path)) {
    throw Error(WHERRY_NOT_FOUND, folder +
                                      " is no compiled model: it has no wherry.json. Type: "
                                      "wherry compile MODEL -o " +
                                      folder);
  }
  const Value manifest = read_object(path);
  const int64_t schema = number_of_field(&manifest, "schema");
  if (schema != kSchema) {
    refuse(path + " has schema " + std::to_string(schema) + ", this runtime reads " +
           std::to_string(kSchema) + "; compile the model again");
  }
  const Value* files = manifest.dict().find("files");
  if (files == nullptr || !files->is_dict()) refuse(path + " lists no files");
  Manifest made;
  made.bytes = check_files(folder, *files);
  made.name = text_of(manifest, "name", path);
  made.library = text_of(manifest, "library", path);
  if (files->dict().find(Value(made.library)) == nullptr) made.linked = linked_symbols(manifest);
  const Value* deployment = manifest.dict().find("deployment");
  made.context = number_of_field(deployment, "context");
  made.max_batch = number_of_field(deployment, "max_batch");
  made.prefill_chunk = number_of_field(deployment, "prefill_chunk");
  return made;
}

Speech read_speech(const std::string& folder, const std::string& tool_format) {
  const std::string path = folder + "/tokenizer.json";
  if (!fs::is_regular_file(path)) throw Error(WHERRY_NOT_FOUND, folder + " has no tokenizer.json");
  Speech made;
  made.tokenizer = Tokenizer::read(read_text(path));
  const Value special = special_tokens(folder);
  made.eos_ids = eos_ids(folder, *made.tokenizer, special);
  made.defaults = generation_defaults(folder);
  try {
    if (std::optional<std::string> source = template_source(folder)) {
      const auto known = [&](const std::string& name) {
        return made.tokenizer->id_of(name).has_value();
      };
      made.dialect = std::make_unique<Dialect>(jinja::ChatTemplate(std::move(*source), special),
                                               tool_format, known);
    }
  } catch (const jinja::Invalid& error) {
    refuse(folder + ": " + error.what());
  }
  return made;
}

}  // namespace wherry::app
