// Reads tvm-ffi's JSON values with types; adds each mismatch to a list of problems.
#ifndef WHERRY_ENGINE_SUPPORT_JSON_READER_H_
#define WHERRY_ENGINE_SUPPORT_JSON_READER_H_

#include <tvm/ffi/extra/json.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "support/error.h"

namespace wherry {

namespace ffi = tvm::ffi;

// Parses `text`, which must be a JSON object of at most 64 nested levels. Errors have the given
// status and call the text `what`.
ffi::json::Object parse_json_object(const std::string& text, const std::string& what,
                                    wherry_status status);

// Reads the fields of one JSON object. If a field is missing or has another type, the reader adds a
// problem and returns a default, so that one error lists all problems.
class JsonReader {
 public:
  // where: the text that starts each problem ("params[3]"); both references must outlive the
  // reader.
  JsonReader(ffi::json::Object object, std::string where, Problems& problems);

  bool has(const char* key) const;
  int64_t integer(const char* key);
  std::string string(const char* key);
  std::vector<int64_t> integers(const char* key);
  std::vector<std::string> strings(const char* key);
  std::vector<ffi::json::Object> objects(const char* key);

  int64_t integer_or(const char* key, int64_t otherwise);
  double number_or(const char* key, double otherwise);  // also accepts integers
  bool boolean_or(const char* key, bool otherwise);
  std::string string_or(const char* key, const std::string& otherwise);

  // Adds a problem for each key that is not among `known`.
  void only(const std::vector<std::string>& known);

  const std::string& where() const { return where_; }

 private:
  std::optional<ffi::Any> find(const char* key) const;
  template <typename T>
  T read(const char* key, const char* type);
  template <typename T>
  std::vector<T> read_array(const char* key, const char* type);

  ffi::json::Object object_;
  std::string where_;
  Problems& problems_;
};

}  // namespace wherry

#endif  // WHERRY_ENGINE_SUPPORT_JSON_READER_H_
