#include "app/tools/call_object.h"

#include <algorithm>

#include "app/tools/json_value.h"

namespace wherry::app {

namespace {

bool among(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Reads one call object, and emits its arguments as soon as the tool's name is known.
class ObjectReader {
 public:
  ObjectReader(const CallObject& form, Scanner& s, Output& out, const Tools* known)
      : form_(form), s_(s), out_(out), known_(known) {}

  bool run() {
    const bool closed = object();
    if (begun_) return true;
    if (!closed || name_.empty()) return false;
    begin();
    out_.arguments(early_.value_or("{}"));  // the arguments precede the name, or are missing
    out_.end();
    return true;
  }

 private:
  // Reads an object and its members; returns whether it is complete and valid.
  bool object() {  // NOLINT(misc-no-recursion): nested_ limits it to one level
    if (s_.space() != '{') return false;
    ++s_.at;
    while (s_.space() != '}') {
      const std::optional<std::string> key = json_name(s_);
      if (!key || s_.space() != ':') return false;
      ++s_.at;
      if (!member(*key)) return false;
      if (s_.space() == ',') ++s_.at;
    }
    ++s_.at;
    return true;
  }

  // Reads the value of one member; returns false if it is invalid or incomplete.
  bool member(const std::string& key) {  // NOLINT(misc-no-recursion)
    const char32_t first = s_.space();
    if (first == '"' && (key == "function" || among(form_.name, key)) && !named_) {
      named_ = true;
      name_ = json_name(s_).value_or("");
      return !name_.empty() && (known_ == nullptr || known_->has(name_));
    }
    if (first == '{' && key == "function" && !nested_) {  // OpenAI nests name and arguments
      nested_ = true;
      return object();
    }
    if (among(form_.arguments, key) && !begun_ && !early_) return arguments(first);
    if (first == '"' && key == "id" && form_.ids) {
      const std::optional<std::string> id = json_name(s_);
      id_ = id.value_or("");
      return id.has_value();
    }
    return json_value(s_, [](std::string_view) {}, form_.end);
  }

  // Reads the arguments, whose first character is `first`; returns whether they are complete.
  bool arguments(char32_t first) {
    Emit emit = out_.to_arguments();
    if (named_) {
      begin();
    } else {
      early_ = "";
      emit = [this](std::string_view text) { *early_ += text; };
    }
    bool whole = false;
    if (first == '"') {
      whole = json_unquoted(s_, emit);
    } else if (first == 'n') {  // `null` means no arguments
      whole = json_value(s_, [](std::string_view) {}, form_.end);
      emit("{}");
    } else {
      whole = json_value(s_, emit, form_.end);
    }
    if (begun_) out_.end(whole);
    return whole;
  }

  void begin() {
    begun_ = true;
    out_.begin(name_, id_);
  }

  const CallObject& form_;
  Scanner& s_;
  Output& out_;
  const Tools* known_;
  std::string name_, id_;
  std::optional<std::string> early_;  // arguments that precede the name
  bool named_ = false, begun_ = false, nested_ = false;
};

}  // namespace

bool CallObject::read(Scanner& s, Output& out, const Tools* known) const {
  return ObjectReader(*this, s, out, known).run();
}

bool CallObject::list(Scanner& s, Output& out, const Tools* known) const {
  if (s.space() != '[') return read(s, out, known);
  ++s.at;
  const bool found = read(s, out, known);
  while (found && s.space() == ',') {
    ++s.at;
    s.attempt([&] { return read(s, out, known); });
  }
  if (found && s.space() == ']') ++s.at;
  return found;
}

}  // namespace wherry::app
