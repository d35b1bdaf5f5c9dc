#include "support/json_reader.h"

#include <algorithm>
#include <utility>

#include "support/tvm_calls.h"

namespace wherry {

namespace {

// Read a JSON value as a C++ type without conversion: `true` is no integer, 3 is no string.
std::optional<int64_t> exact(const ffi::Any& value, int64_t*) {
  if (value.type_index() != ffi::TypeIndex::kTVMFFIInt) return std::nullopt;
  return value.cast<int64_t>();
}

std::optional<double> exact(const ffi::Any& value, double*) {
  if (value.type_index() != ffi::TypeIndex::kTVMFFIFloat) return std::nullopt;
  return value.cast<double>();
}

std::optional<bool> exact(const ffi::Any& value, bool*) {
  if (value.type_index() != ffi::TypeIndex::kTVMFFIBool) return std::nullopt;
  return value.cast<bool>();
}

std::optional<std::string> exact(const ffi::Any& value, std::string*) {
  if (auto text = value.try_cast<ffi::String>()) return std::string(*text);
  return std::nullopt;
}

std::optional<ffi::json::Object> exact(const ffi::Any& value, ffi::json::Object*) {
  return value.as<ffi::json::Object>();
}

template <typename T>
std::optional<T> exact(const ffi::Any& value) {
  return exact(value, static_cast<T*>(nullptr));
}

// Upper bound on nesting, because the parser uses a stack frame for each level; our own files have
// far fewer levels.
constexpr int kDeepest = 64;

// Returns how deep brackets nest in `text`, valid JSON or not.
int depth_of(const std::string& text) {
  int depth = 0, deepest = 0;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (quoted) {
      if (c == '\\') ++i;
      quoted = c != '"';
    } else if (c == '"') {
      quoted = true;
    } else if (c == '[' || c == '{') {
      deepest = std::max(deepest, ++depth);
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return deepest;
}

}  // namespace

ffi::json::Object parse_json_object(const std::string& text, const std::string& what,
                                    wherry_status status) {
  if (int depth = depth_of(text); depth > kDeepest) {
    throw Error(status,
                concat(what, " nests ", depth, " levels deep; at most ", kDeepest, " are read"));
  }
  std::string problem;
  ffi::Any value = parse_json(text, problem);
  if (!problem.empty()) throw Error(status, concat(what, " is not JSON: ", problem));
  auto object = value.as<ffi::json::Object>();
  if (!object.has_value()) throw Error(status, concat(what, " must be a JSON object"));
  return *object;
}

JsonReader::JsonReader(ffi::json::Object object, std::string where, Problems& problems)
    : object_(std::move(object)), where_(std::move(where)), problems_(problems) {}

std::optional<ffi::Any> JsonReader::find(const char* key) const {
  auto it = object_.find(ffi::String(key));
  if (it == object_.end()) return std::nullopt;
  return (*it).second;
}

bool JsonReader::has(const char* key) const { return find(key).has_value(); }

template <typename T>
T JsonReader::read(const char* key, const char* type) {
  std::optional<ffi::Any> value = find(key);
  if (!value) {
    problems_.add(where_, " lacks \"", key, "\" (", type, ")");
    return T();
  }
  std::optional<T> result = exact<T>(*value);
  if (!result) {
    problems_.add(where_, ": \"", key, "\" must be ", type);
    return T();
  }
  return *result;
}

template <typename T>
std::vector<T> JsonReader::read_array(const char* key, const char* type) {
  std::optional<ffi::Any> value = find(key);
  if (!value) {
    problems_.add(where_, " lacks \"", key, "\" (a list of ", type, "s)");
    return {};
  }
  std::vector<T> result;
  if (auto array = value->as<ffi::json::Array>()) {
    for (const ffi::Any& item : *array) {
      if (std::optional<T> element = exact<T>(item)) result.push_back(*element);
    }
    if (result.size() == array->size()) return result;
  }
  problems_.add(where_, ": \"", key, "\" must be a list of ", type, "s");
  return {};
}

int64_t JsonReader::integer(const char* key) { return read<int64_t>(key, "an integer"); }
std::string JsonReader::string(const char* key) { return read<std::string>(key, "a string"); }

std::vector<int64_t> JsonReader::integers(const char* key) {
  return read_array<int64_t>(key, "integer");
}

std::vector<std::string> JsonReader::strings(const char* key) {
  return read_array<std::string>(key, "string");
}

std::vector<ffi::json::Object> JsonReader::objects(const char* key) {
  std::optional<ffi::Any> value = find(key);
  if (!value) {
    problems_.add(where_, " lacks \"", key, "\" (a list of objects)");
    return {};
  }
  std::vector<ffi::json::Object> result;
  if (auto array = value->as<ffi::json::Array>()) {
    for (const ffi::Any& item : *array) {
      if (auto object = exact<ffi::json::Object>(item)) result.push_back(*object);
    }
    if (result.size() == array->size()) return result;
  }
  problems_.add(where_, ": \"", key, "\" must be a list of objects");
  return {};
}

int64_t JsonReader::integer_or(const char* key, int64_t otherwise) {
  return has(key) ? integer(key) : otherwise;
}

double JsonReader::number_or(const char* key, double otherwise) {
  std::optional<ffi::Any> value = find(key);
  if (!value) return otherwise;
  if (std::optional<int64_t> integer = exact<int64_t>(*value)) return static_cast<double>(*integer);
  return read<double>(key, "a number");
}

bool JsonReader::boolean_or(const char* key, bool otherwise) {
  return has(key) ? read<bool>(key, "true or false") : otherwise;
}

std::string JsonReader::string_or(const char* key, const std::string& otherwise) {
  return has(key) ? string(key) : otherwise;
}

void JsonReader::only(const std::vector<std::string>& known) {
  for (const auto& [key, value] : object_) {
    std::string name = exact<std::string>(key).value_or("?");
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    std::string accepted;
    for (const std::string& k : known) accepted += (accepted.empty() ? "" : ", ") + k;
    problems_.add(where_, ": unknown key \"", name, "\"; known are ", accepted);
  }
}

}  // namespace wherry
