#include "app/lite/model.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>

#include "app/value/json_text.h"

namespace wherry::lite {

namespace {

namespace fs = std::filesystem;

void check(int status) {
  if (status != WHERRY_OK) throw std::runtime_error(wherry_app_last_error());
}

// Shows the progress of loading a model on a terminal.
class Waiting {
 public:
  explicit Waiting(const std::string& folder) : shown_(isatty(STDERR_FILENO) != 0) {
    if (shown_) std::fprintf(stderr, "Loading %s ...", folder.c_str());
  }
  ~Waiting() {
    if (shown_) std::fprintf(stderr, "\r\x1b[2K");
  }

 private:
  const bool shown_;
};

// Returns an existing cache folder for packed weights; "" if there is none, which packs weights in
// memory.
std::string usual_pack_dir() {
  const char* base = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  fs::path folder;
  if (base != nullptr && *base != '\0') {
    folder = fs::path(base) / "wherry-lite";
  } else if (home != nullptr && *home != '\0') {
    folder = fs::path(home) / ".cache" / "wherry-lite";
  } else {
    return "";
  }
  std::error_code error;
  fs::create_directories(folder, error);
  return access(folder.c_str(), W_OK) == 0 ? folder.string() : "";
}

// Says which devices of a package cannot be used. An older CPU's code is no news.
void say_what_was_passed_over(const Value& stats) {
  const Value* passed = find(stats, "passed_over");
  if (passed == nullptr || !passed->is_sequence()) return;
  for (const Value& one : passed->items()) {
    const std::string code = text_at(one, "code");
    if (code.rfind("cpu", 0) == 0) continue;
    std::fprintf(stderr, "Runs on %s, not on %s: %s\n", text_at(stats, "device").c_str(),
                 code.c_str(), text_at(one, "reason").c_str());
  }
}

std::string options_of(const Arguments& typed) {
  Items items = typed.model;
  const auto given = std::find_if(items.begin(), items.end(), [](const auto& option) {
    return option.first.text() == "pack_dir";
  });
  if (given != items.end()) {
    if (!given->second.text().empty()) fs::create_directories(given->second.text());
  } else if (const std::string usual = usual_pack_dir(); !usual.empty()) {
    items.emplace_back("pack_dir", usual);
  }
  return json::to_compact_json(json::make_dict(std::move(items)));
}

}  // namespace

Model::Model(const Arguments& typed) {
  const std::string options = options_of(typed);
  {
    const Waiting waiting(typed.folder);
    check(wherry_app_open(typed.folder.c_str(), options.c_str(), nullptr, &app_));
  }
  const Value match = stats();
  name_ = text_at(match, "model");
  context_ = find(match, "context")->integer();
  reads_images_ = json::truth(*find(match, "images"));
  say_what_was_passed_over(match);
}

Model::~Model() { wherry_app_close(app_); }

Value Model::stats() const {
  char* json = nullptr;
  check(wherry_app_stats(app_, &json));
  const std::unique_ptr<char, void (*)(void*)> freed(json, wherry_app_free);
  return json::from_json(json);
}

const Value* find(const Value& value, std::string_view path) {
  const Value* at = &value;
  while (at != nullptr && !path.empty()) {
    const size_t slash = path.find('/');
    const std::string_view name = path.substr(0, slash);
    path = slash == path.npos ? "" : path.substr(slash + 1);
    if (at->is_dict()) {
      at = at->dict().find(name);
    } else if (at->is_sequence()) {
      const auto index = static_cast<size_t>(std::atoi(std::string(name).c_str()));
      at = index < at->items().size() ? &at->items()[index] : nullptr;
    } else {
      at = nullptr;
    }
  }
  return at;
}

std::string text_at(const Value& value, std::string_view path) {
  const Value* match = find(value, path);
  return match != nullptr && match->is_string() ? match->text() : "";
}

}  // namespace wherry::lite
