// A model's family is the first row of app/data/tool_families.json all of whose signs occur in its
// chat template; the model's name does not matter.
#include "app/tools/families.h"

#include <algorithm>
#include <random>

#include "app/data/data.h"
#include "app/tools/formats/formats.h"
#include "app/value/json_text.h"
#include "support/blake2b.h"
#include "support/error.h"

namespace wherry::app {

namespace {

constexpr std::string_view kIdLetters =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
constexpr size_t kShortId = 9;

// Reads the fields of a row, which have the names of the fields in the Python classes.
class Row {
 public:
  explicit Row(const Value& fields) : fields_(fields) {}

  // Stores the field `name` in `into`, if the row has it.
  Row& take(const char* name, std::string& into) {
    if (const Value* value = next(name)) into = value->text();
    return *this;
  }
  Row& take(const char* name, bool& into) {
    if (const Value* value = next(name)) into = json::truth(*value);
    return *this;
  }
  Row& take(const char* name, Texts& into) {
    if (const Value* value = next(name)) into = texts_of(*value);
    return *this;
  }
  Row& take(const char* name, std::vector<std::pair<std::string, std::string>>& into) {
    if (const Value* value = next(name)) {
      for (const Value& pair : value->items()) {
        into.emplace_back(pair.items()[0].text(), pair.items()[1].text());
      }
    }
    return *this;
  }
  Row& take(const char* name, CallObject& into) {
    if (const Value* value = next(name)) {
      Row(*value).take("name", into.name).take("arguments", into.arguments).end();
    }
    return *this;
  }
  void end() const {  // throws Error for unread fields, which are mistakes in the data
    if (taken_ < fields_.dict().items.size()) {
      throw Error(WHERRY_INTERNAL, "unknown field in " + json::to_json(fields_));
    }
  }

  static Texts texts_of(const Value& list) {
    Texts texts;
    for (const Value& text : list.items()) texts.push_back(text.text());
    return texts;
  }

 private:
  const Value* next(const char* name) {
    const Value* match = fields_.dict().find(name);
    taken_ += match != nullptr;
    return match;
  }

  const Value& fields_;
  size_t taken_ = 0;
};

void fill(Tagged& f, Row& row) {
  row.take("begins", f.begin).take("end", f.end).take("listed", f.listed).take("form", f.form);
  row.take("head", f.head).take("middle", f.middle).take("space", f.space);
  row.take("silent", f.left_out);
}

void fill(Bare& f, Row& row) {
  row.take("begins", f.begin).take("middle", f.middle).take("fences", f.fences);
  row.take("amid", f.between);
}

void fill(Headed& f, Row& row) {
  row.take("begin", f.begin).take("middle", f.middle).take("before", f.before).take("tag", f.tag);
  row.take("whole_id", f.id_is_header).take("end", f.end).take("section", f.section);
  row.take("section_end", f.section_end).take("between", f.between);
}

void fill(Mistral& f, Row& row) { row.take("named", f.named); }

void fill(Markup& f, Row& row) {
  row.take("outer", f.outer).take("outer_end", f.outer_end).take("call", f.call);
  row.take("named", f.named).take("call_end", f.call_end).take("key", f.key);
  row.take("keyed", f.keyed).take("ended", f.ended).take("several", f.several).take("pad", f.pad);
  row.take("line", f.line).take("typed", f.typed).take("unclosed", f.unclosed);
  row.take("wrappers", f.wrappers);
}

void fill(Braces& f, Row& row) {
  row.take("begin", f.begin).take("end", f.end).take("quote", f.quote);
}

void fill(Pythonic& f, Row& row) {
  row.take("begins", f.begin).take("end", f.end).take("brackets", f.brackets);
}

void fill(Harmony&, Row&) {}

template <typename Kind>
std::shared_ptr<const Format> read_format(Row& row) {
  auto format = std::make_shared<Kind>();
  fill(*format, row);
  row.end();
  return format;
}

std::shared_ptr<const Format> format_of(const Value& fields) {
  Row row(fields);
  std::string kind;
  row.take("kind", kind);
  if (kind == "tagged") return read_format<Tagged>(row);
  if (kind == "bare") return read_format<Bare>(row);
  if (kind == "headed") return read_format<Headed>(row);
  if (kind == "mistral") return read_format<Mistral>(row);
  if (kind == "markup") return read_format<Markup>(row);
  if (kind == "braces") return read_format<Braces>(row);
  if (kind == "pythonic") return read_format<Pythonic>(row);
  if (kind == "harmony") return read_format<Harmony>(row);
  throw Error(WHERRY_INTERNAL, "unknown kind of format: " + kind);
}

Family family_in(const Value& fields) {
  Family family;
  Row row(fields);
  row.take("name", family.name).take("signs", family.signs).take("stops", family.stops);
  row.take("short_ids", family.short_ids).take("thinking_field", family.thinking_field);
  row.take("channels", family.channels);
  family.format = format_of(*fields.dict().find("format"));
  return family;
}

const std::vector<Family>& families() {  // in the order of the data, the generic family last
  static const std::vector<Family> kFamilies = [] {
    std::vector<Family> result;
    const Value data = json::from_json(data::kToolFamilies);
    for (const Value& row : data.items()) result.push_back(family_in(row));
    return result;
  }();
  return kFamilies;
}

template <typename Known>
const Family& first_family(Known known) {
  return *std::find_if(families().begin(), families().end(), [&](const Family& family) {
    return std::all_of(family.signs.begin(), family.signs.end(), known);
  });
}

}  // namespace

std::string Family::new_id() const {
  static thread_local std::random_device device;
  std::string result = short_ids ? "" : "call_";
  const size_t letters = short_ids ? kIdLetters.size() : 16;
  for (size_t i = 0; i < (short_ids ? kShortId : 24); ++i) {
    result += short_ids ? kIdLetters[device() % letters] : "0123456789abcdef"[device() % letters];
  }
  return result;
}

std::string Family::known_id(const std::string& given) const {
  const bool fits =
      given.size() == kShortId && given.find_first_not_of(kIdLetters) == std::string::npos;
  if (!short_ids || fits) return given;
  const Blake2b::Digest digest = Blake2b().bytes(given.data(), given.size()).finish();
  uint64_t number = 0;
  for (size_t i = 0; i < sizeof number; ++i) number = number << 8 | digest[i];
  std::string result;
  for (size_t i = 0; i < kShortId; ++i, number /= kIdLetters.size()) {
    result += kIdLetters[number % kIdLetters.size()];
  }
  return result;
}

const Family& generic_family() { return families().back(); }

const Family& family_at(size_t row) {
  if (row < families().size()) return families()[row];
  throw Error(WHERRY_INVALID_ARGUMENT, "there is no family " + std::to_string(row));
}

const Family& family_of(std::string_view chat_template) {
  return first_family(
      [&](const std::string& sign) { return chat_template.find(sign) != chat_template.npos; });
}

const Family& family_of_tokens(const std::function<bool(const std::string&)>& known) {
  return first_family(known);
}

const Family& family_named(const std::string& name) {
  std::string names, last;
  for (const Family& family : families()) {
    if (family.name == name) return family;
    if (family.name != last) names += (names.empty() ? "" : ", ") + family.name;
    last = family.name;
  }
  throw Error(WHERRY_INVALID_ARGUMENT,
              "tool_format is " + json::repr_text(name) + "; it takes one of " + names);
}

}  // namespace wherry::app
