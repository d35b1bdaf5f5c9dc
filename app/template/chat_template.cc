#include "app/template/chat_template.h"

#include <ctime>

#include "app/template/globals.h"
#include "app/template/parser.h"
#include "app/template/runtime.h"
#include "app/value/code_points.h"

namespace wherry::jinja {

namespace {

constexpr size_t kLargestSource = size_t{1} << 18;  // upper bound on a template's characters
constexpr size_t kLongestReason = 1000;
constexpr const char* kDatetime = "datetime";  // a variable of Firefunction's template

std::string reason(const Failure& failure) {
  const std::string message = failure.what();
  return message.empty() ? "it raises an exception"
                         : message.substr(0, byte_of(message, kLongestReason));
}

// Returns the present time, as "2026-11-28 16:34:59 GMT".
std::string date_text() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
#if defined(_WIN32)
  gmtime_s(&utc, &now);
#else
  gmtime_r(&now, &utc);
#endif
  char text[32];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S GMT", &utc)};
}

void add(std::vector<std::pair<Value, Value>>& into, const Value& from) {
  if (!from.is_dict()) return;
  const auto& items = from.dict().items;
  into.insert(into.end(), items.begin(), items.end());
}

}  // namespace

InterpretedTemplate::InterpretedTemplate(std::string source, Value special_tokens)
    : source_(well_formed(source)), special_tokens_(std::move(special_tokens)) {
  const size_t size = count_code_points(source_);
  if (size > kLargestSource) {
    throw Invalid("The chat template has " + std::to_string(size) + " characters; at most " +
                  std::to_string(kLargestSource) + " are read");
  }
  try {
    program_ = parse(source_);
  } catch (const SyntaxError& error) {
    throw Invalid("The chat template, line " + std::to_string(error.line()) + ": " + error.what());
  }
}

InterpretedTemplate::~InterpretedTemplate() = default;

const std::set<std::string>& InterpretedTemplate::variables() const { return program_->variables; }

std::string InterpretedTemplate::render(const Value& messages, bool add_generation_prompt,
                                        const Value& variables,
                                        const std::function<bool()>& gone) const {
  try {
    std::vector<std::pair<Value, Value>> items;
    add(items, special_tokens_);
    items.emplace_back("tools", Value());
    items.emplace_back("documents", Value());
    if (program_->variables.count(kDatetime) > 0) items.emplace_back(kDatetime, date_text());
    add(items, variables);
    items.emplace_back("messages", messages);
    items.emplace_back("add_generation_prompt", add_generation_prompt);
    const Value given = make_dict(std::move(items));
    Budget budget(size_of(given), gone);
    return Runtime(*program_, given.dict(), globals(), budget).render();
  } catch (const Failure& failure) {
    throw Refused("The model's chat template does not accept these messages: " + reason(failure));
  }
}

}  // namespace wherry::jinja
