#include "app/tools/call_object.h"

#include <algorithm>

#include "app/tools/json_value.h"

namespace wherry::app {

namespace {

bool among(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

void ignore(std::string_view) {}

// Reads one call object, and emits its arguments as soon as the tool's name is known.
class ObjectReader {
 public:
  ObjectReader(const CallObject& form, std::string_view end, Scanner& s, Output& out,
               const Tools* known)
      : form_(form), end_(end), s_(s), out_(out), known_(known) {}

  // Returns whether there was a call, complete or truncated.
  bool run() {
    const bool closed = object();
    if (seen_.begun) return true;
    if (!closed || seen_.name.empty()) return false;
    begin();
    out_.arguments(seen_.early.value_or("{}"));  // the arguments precede the name, or are missing
    out_.end();
    return true;
  }

 private:
  // What the members so far have said.
  struct Members {
    std::string name, id;
    std::optional<std::string> early;  // arguments that precede the name
    bool named = false, begun = false, nested = false;
  };

  // Reads an object and its members; returns whether it is complete and valid.
  bool object() {  // NOLINT(misc-no-recursion): Members::nested limits it to one level
    if (s_.space() != '{') return false;
    ++s_.at;
    for (Rounds rounds(s_); rounds.next(seen_) && s_.space() != '}';) {
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
    if (first == '"' && (key == "function" || among(form_.name, key)) && !seen_.named) {
      seen_.named = true;
      seen_.name = json_name(s_).value_or("");
      return !seen_.name.empty() && (known_ == nullptr || known_->has(seen_.name));
    }
    if (first == '{' && key == "function" && !seen_.nested) {  // OpenAI nests name and arguments
      seen_.nested = true;
      return object();
    }
    if (among(form_.arguments, key) && !seen_.begun && !seen_.early) return arguments(first);
    if (first == '"' && key == "id" && form_.ids) {
      const std::optional<std::string> id = json_name(s_);
      seen_.id = id.value_or("");
      return id.has_value();
    }
    return json_value(s_, ignore, end_);
  }

  // Reads the arguments, whose first character is `first`; returns whether they are complete.
  bool arguments(char32_t first) {
    const auto early = s_.kept_text();
    if (seen_.named) begin();
    const Emit emit = seen_.named ? out_.to_arguments() : s_.to(early);
    bool complete = false;
    if (first == '"') {
      complete = json_unquoted(s_, emit);
    } else if (first == 'n') {  // `null` means no arguments
      complete = json_value(s_, ignore, end_);
      emit("{}");
    } else {
      complete = json_value(s_, emit, end_);
    }
    if (seen_.named) {
      out_.end(complete);
    } else {
      seen_.early = *early;
    }
    return complete;
  }

  void begin() {
    seen_.begun = true;
    out_.begin(seen_.name, seen_.id);
  }

  const CallObject& form_;
  std::string_view end_;
  Scanner& s_;
  Output& out_;
  const Tools* known_;
  Members seen_;
};

}  // namespace

bool CallObject::list(Scanner& s, Output& out, const Tools* known, std::string_view end) const {
  const auto read = [&] { return ObjectReader(*this, end, s, out, known).run(); };
  if (s.space() != '[') return read();
  ++s.at;
  if (!read()) return false;
  for (Rounds rounds(s); rounds.next() && s.space() == ',';) {
    ++s.at;
    s.attempt(read);
  }
  if (s.space() == ']') ++s.at;
  return true;
}

}  // namespace wherry::app
