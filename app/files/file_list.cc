#include "app/files/file_list.h"

#include <algorithm>
#include <string_view>

#include "app/files/download_error.h"
#include "app/files/sha256.h"
#include "app/value/json_text.h"
#include "support/error.h"

namespace wherry::app {

namespace {

using json::Value;

constexpr int64_t kSchema = 2;
constexpr size_t kLongestName = 255;            // bytes, the limit of common file systems
constexpr int64_t kLargest = int64_t{1} << 50;  // bytes; larger values cannot be the size of a file

bool is_letter_or_digit(char c) {
  return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

bool is_hash(const std::string& text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

// Whether the name follows the compiler's rules: it neither leaves the folder nor is hidden.
bool is_file_name(const std::string& name) {
  if (name.empty() || name.size() > kLongestName || name == kManifest) return false;
  if (!is_letter_or_digit(name[0]) && name[0] != '_') return false;
  return std::all_of(name.begin(), name.end(), [](char c) {
    return is_letter_or_digit(c) || std::string_view("_.+-").find(c) != std::string_view::npos;
  });
}

// Returns the length of the JSON string that begins at text[at].
size_t string_length(const std::string& text, size_t at) {
  size_t end = at + 1;
  while (end < text.size() && text[end] != '"') end += text[end] == '\\' ? 2 : 1;
  return std::min(end + 1, text.size()) - at;
}

// Returns the text that the manifest's digest covers: all other fields, on one line. Numbers stay
// as written, because a JSON parser would change them ("1e-05").
std::string digested(const std::string& text) {
  constexpr size_t kField = std::string_view("\"digest\": \"\"").size() + 64;
  std::string line;
  size_t field = 0;  // position of "digest" in `line`
  int depth = 0;
  for (size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (c == '"') {
      const size_t length = string_length(text, at);
      const bool name = line == "{" || (line.size() > 1 && line.substr(line.size() - 2) == ", ");
      if (depth == 1 && name && text.compare(at, length, "\"digest\"") == 0) field = line.size();
      line.append(text, at, length);
      at += length;
      continue;
    }
    if (c == '{' || c == '[') ++depth;
    if (c == '}' || c == ']') --depth;
    if (std::string_view(" \n\r\t").find(c) == std::string_view::npos) line += c;
    if (c == ',' || c == ':') line += ' ';
    ++at;
  }
  if (field == 0 || field + kField >= line.size()) return line;
  if (field > 1) return line.erase(field - 2, kField + 2);  // also removes the preceding comma
  return line.erase(field, kField + (line[field + kField] == ',' ? 2 : 0));
}

std::string text_of(const Value& object, const char* name) {
  const Value* match = object.dict().find(std::string_view(name));
  return match != nullptr && match->is_string() ? match->text() : std::string();
}

int64_t integer_of(const Value& object, const char* name) {
  const Value* match = object.dict().find(std::string_view(name));
  return match != nullptr && match->is(json::Kind::kInt) ? match->integer() : -1;
}

Value parsed(const std::string& text, const std::string& source) {
  try {
    Value value = json::from_json(text);
    if (value.is_dict()) return value;
  } catch (const json::Failure&) {
    // The error is thrown below.
  }
  throw Error(WHERRY_INCOMPATIBLE,
              source +
                  " is no manifest of a model: no JSON object. The address is that of a folder "
                  "that `wherry package` or `wherry compile` has written");
}

}  // namespace

std::vector<FileRecord> file_list(const std::string& text, const std::string& source) {
  const Value manifest = parsed(text, source);
  if (const int64_t schema = integer_of(manifest, "schema"); schema != kSchema) {
    throw Error(WHERRY_INCOMPATIBLE, concat(source, " has schema ", schema, ", this runtime reads ",
                                            kSchema, "; compile the model again"));
  }
  const std::string line = digested(text);
  if (text_of(manifest, "digest") != Sha256().bytes(line.data(), line.size()).finish()) {
    throw DownloadError(WHERRY_DAMAGED, source + " has changed: its digest differs");
  }
  const Value* files = manifest.dict().find("files");
  if (files == nullptr || !files->is_dict()) {
    throw Error(WHERRY_INCOMPATIBLE, source + " lists no files");
  }
  Problems problems;
  std::vector<FileRecord> matches;
  for (const auto& [key, record] : files->dict().items) {
    if (!key.is_string() || !is_file_name(key.text())) {
      problems.add(json::to_json(key), " is no name of a file in its folder");
      continue;
    }
    FileRecord result{key.text(), -1, ""};
    if (record.is_dict()) {
      result.size = integer_of(record, "size");
      result.sha256 = text_of(record, "sha256");
    }
    if (result.size < 0 || result.size > kLargest) problems.add(result.name, " has no size");
    if (!is_hash(result.sha256)) problems.add(result.name, " has no SHA-256");
    matches.push_back(std::move(result));
  }
  problems.raise(WHERRY_INCOMPATIBLE, source + " cannot be used");
  return matches;
}

}  // namespace wherry::app
