#include "app/lite/arguments.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "app/lite/usage.h"

namespace wherry::lite {

namespace {

enum Commands : unsigned { kChatOption = 1, kRunOption = 2, kServeOption = 4 };
constexpr unsigned kAsks = kChatOption | kRunOption, kAnyOption = kAsks | kServeOption;
enum class Kind { kText, kCount, kInteger, kNumber, kFlag };  // kCount is an integer from 1
enum class For { kModel, kRequest, kOwn };

struct Option {
  const char* name;
  unsigned commands;
  Kind kind;
  For part;
};

constexpr Option kOptions[] = {
    {"device", kAnyOption, Kind::kText, For::kModel},
    {"library", kAnyOption, Kind::kText, For::kModel},
    {"pack-dir", kAnyOption, Kind::kText, For::kModel},
    {"threads", kAnyOption, Kind::kCount, For::kModel},
    {"context", kAnyOption, Kind::kCount, For::kModel},
    {"kv-tokens", kAnyOption, Kind::kCount, For::kModel},
    {"kv-memory", kAnyOption, Kind::kInteger, For::kModel},
    {"max-batch", kAnyOption, Kind::kCount, For::kModel},
    {"name", kServeOption, Kind::kText, For::kModel},
    {"driver", kAnyOption, Kind::kText, For::kModel},
    {"runtime", kAnyOption, Kind::kText, For::kModel},
    {"max-tokens", kAsks, Kind::kCount, For::kRequest},
    {"temperature", kAsks, Kind::kNumber, For::kRequest},
    {"top-p", kAsks, Kind::kNumber, For::kRequest},
    {"top-k", kAsks, Kind::kInteger, For::kRequest},
    {"min-p", kAsks, Kind::kNumber, For::kRequest},
    {"repetition-penalty", kAsks, Kind::kNumber, For::kRequest},
    {"seed", kAsks, Kind::kInteger, For::kRequest},
    {"system", kAsks, Kind::kText, For::kOwn},
    {"image", kRunOption, Kind::kText, For::kOwn},
    {"completion", kRunOption, Kind::kFlag, For::kOwn},
    {"host", kServeOption, Kind::kText, For::kOwn},
    {"port", kServeOption, Kind::kInteger, For::kOwn},
    {"api-key", kServeOption, Kind::kText, For::kOwn},
    {"allow-host", kServeOption, Kind::kText, For::kOwn},
    {"max-body", kServeOption, Kind::kCount, For::kOwn},
    {"quiet", kServeOption, Kind::kFlag, For::kOwn},
};

unsigned commands_of(const std::string& name) {
  if (name == "chat") return kChatOption;
  if (name == "run") return kRunOption;
  return name == "serve" ? unsigned{kServeOption} : 0;
}

[[noreturn]] void refuse(const std::string& name, const std::string& text, const char* takes) {
  throw UsageError("--" + name + " is \"" + text + "\"; it takes " + takes);
}

Value value_of(const Option& option, const std::string& text) {
  if (option.kind == Kind::kText) return Value(text);
  char* end = nullptr;
  errno = 0;
  if (option.kind == Kind::kNumber) {
    const double value = std::strtod(text.c_str(), &end);
    if (text.empty() || *end != '\0' || !std::isfinite(value)) {
      refuse(option.name, text, "a number");
    }
    return Value(value);
  }
  const long long value = std::strtoll(text.c_str(), &end, 10);
  if (text.empty() || *end != '\0' || errno == ERANGE) {
    refuse(option.name, text, "a whole number");
  }
  if (option.kind == Kind::kCount && (value < 1 || value > std::numeric_limits<int32_t>::max())) {
    refuse(option.name, text, "a whole number from 1 to 2147483647");
  }
  return Value(static_cast<int64_t>(value));
}

const Option& option_of(const std::string& name, const Arguments& typed) {
  const auto* match = std::find_if(std::begin(kOptions), std::end(kOptions),
                                   [&](const Option& option) { return name == option.name; });
  if (match == std::end(kOptions)) throw UsageError("there is no option --" + name);
  if ((match->commands & commands_of(typed.command)) == 0) {
    throw UsageError("`wherry-lite " + typed.command + "` has no option --" + name);
  }
  return *match;
}

void set(Arguments& typed, const Option& option, const std::string& text) {
  if (std::string(option.name) == "allow-host") return typed.hosts.push_back(text);
  if (std::string(option.name) == "image") return typed.images.push_back(text);
  Items& items = option.part == For::kModel     ? typed.model
                 : option.part == For::kRequest ? typed.request
                                                : typed.own;
  std::string field = option.name;
  if (option.part != For::kOwn) std::replace(field.begin(), field.end(), '-', '_');
  const Value result = option.kind == Kind::kFlag ? Value(true) : value_of(option, text);
  for (auto& [name, value] : items) {
    if (name.text() != field) continue;
    value = result;  // if an option occurs several times, the last one wins
    return;
  }
  items.emplace_back(field, result);
}

void take_words(Arguments& typed, std::vector<std::string> words) {
  const size_t most = typed.command == "run" ? 2 : 1;
  if (words.empty() && !typed.help) {
    throw UsageError("which model? FOLDER is what `wherry compile` or `wherry package` wrote");
  }
  if (words.size() > most) {
    throw UsageError("\"" + words[most] + "\" is one word too many; a PROMPT goes in quotes");
  }
  if (!words.empty()) typed.folder = words[0];
  if (words.size() > 1) typed.prompt = words[1];
}

}  // namespace

const Value* Arguments::find(const char* name) const {
  for (const auto& [known, value] : own) {
    if (known.text() == name) return &value;
  }
  return nullptr;
}

std::string Arguments::text(const char* name, const std::string& otherwise) const {
  const Value* match = find(name);
  return match != nullptr ? match->text() : otherwise;
}

int64_t Arguments::number(const char* name, int64_t otherwise) const {
  const Value* match = find(name);
  return match != nullptr ? match->integer() : otherwise;
}

Arguments parse(const std::vector<std::string>& words) {
  Arguments typed;
  if (words.empty() || words[0] == "--help" || words[0] == "-h") {
    typed.help = true;
    return typed;
  }
  typed.command = words[0];
  if (commands_of(typed.command) == 0) {
    throw UsageError("there is no command \"" + typed.command + "\"; there are chat, run, serve");
  }
  std::vector<std::string> others;
  bool only_words = false;
  for (size_t i = 1; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (only_words || (word.rfind("--", 0) != 0 && word != "-h")) {
      others.push_back(word);
    } else if (word == "--") {
      only_words = true;
    } else if (word == "--help" || word == "-h") {
      typed.help = true;
    } else {
      const size_t equals = word.find('=');
      const std::string name = word.substr(2, equals == word.npos ? equals : equals - 2);
      const Option& option = option_of(name, typed);
      std::string text;
      if (equals != word.npos) {
        text = word.substr(equals + 1);
      } else if (option.kind != Kind::kFlag) {
        if (++i == words.size()) throw UsageError("--" + name + " needs a value");
        text = words[i];
      }
      set(typed, option, text);
    }
  }
  if (!typed.help) take_words(typed, std::move(others));
  return typed;
}

}  // namespace wherry::lite
