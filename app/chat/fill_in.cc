#include "app/chat/fill_in.h"

#include <algorithm>

namespace wherry::app {

namespace {

constexpr FillIn kWays[] = {
    // models: Qwen2.5-Coder, CodeGemma, Yi
    {"<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"},
    {"<fim_prefix>", "<fim_suffix>", "<fim_middle>"},              // models: StarCoder, Granite
    {"<fim-prefix>", "<fim-suffix>", "<fim-middle>"},              // models: SantaCoder
    {"▁<PRE>", "▁<SUF>", "▁<MID>"},                                // models: CodeLlama
    {"<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>"},        // models: DeepSeek-Coder
    {"<|code_prefix|>", "<|code_suffix|>", "<|code_middle|>"},     // models: GLM-4, CodeGeeX4
    {"<[fim-prefix]>", "<[fim-suffix]>", "<[fim-middle]>", true},  // models: Seed-Coder
    {"[PREFIX]", "[SUFFIX]", "", true},                            // models: Codestral
};
// Tokens that such models write after the gap, besides the marks and the end-of-text token.
constexpr const char* kEnds[] = {
    "<|endoftext|>", "▁<EOT>",       "<|fim_pad|>",        "<fim_pad>", "<fim-pad>",
    "<|repo_name|>", "<|file_sep|>", "<|file_separator|>", "<file_sep>"};

std::vector<std::string> marks_of(const FillIn& way) {
  std::vector<std::string> texts;
  for (const char* mark : {way.before_prefix, way.before_suffix, way.last}) {
    if (*mark != '\0') texts.emplace_back(mark);
  }
  return texts;
}

void add_mark(const Tokenizer& tokenizer, const char* name, std::vector<int32_t>& ids) {
  if (const auto id = *name == '\0' ? std::nullopt : tokenizer.id_of(name)) ids.push_back(*id);
}

void append(std::vector<int32_t>& ids, const std::vector<int32_t>& more) {
  ids.insert(ids.end(), more.begin(), more.end());
}

bool begins_with(const std::vector<int32_t>& ids, const std::vector<int32_t>& start) {
  return ids.size() >= start.size() && std::equal(start.begin(), start.end(), ids.begin());
}

// Returns the tokens of a text inside of a text, without the space that some tokenizers add.
std::vector<int32_t> inner(const Tokenizer& tokenizer, const std::string& text) {
  std::vector<int32_t> ids = tokenizer.encode(text, false);
  if (tokenizer.leading_spaces() == 0) return ids;
  const std::vector<int32_t> before = tokenizer.encode("\n", false);
  const std::vector<int32_t> both = tokenizer.encode("\n" + text, false);
  if (!begins_with(both, before)) return ids;
  return {both.begin() + static_cast<std::ptrdiff_t>(before.size()), both.end()};
}

}  // namespace

std::vector<std::vector<std::string>> fill_in_marks() {
  std::vector<std::vector<std::string>> marks;
  for (const FillIn& way : kWays) marks.push_back(marks_of(way));
  return marks;
}

const FillIn* fill_in_of(const Tokenizer& tokenizer) {
  for (const FillIn& way : kWays) {
    const std::vector<std::string> marks = marks_of(way);
    const bool known = std::all_of(marks.begin(), marks.end(), [&](const std::string& mark) {
      return tokenizer.id_of(mark).has_value();
    });
    if (known) return &way;
  }
  return nullptr;
}

std::vector<int32_t> fill_in_prompt(const Tokenizer& tokenizer, const std::vector<int32_t>& eos_ids,
                                    const FillIn& way, std::vector<int32_t> prefix,
                                    const std::string& suffix) {
  std::vector<int32_t> start;  // the tokens before every text, such as BOS
  for (const int32_t id : tokenizer.encode("", true)) {
    if (std::find(eos_ids.begin(), eos_ids.end(), id) == eos_ids.end()) start.push_back(id);
  }
  if (begins_with(prefix, start)) {
    prefix.erase(prefix.begin(), prefix.begin() + static_cast<std::ptrdiff_t>(start.size()));
  } else {
    start.clear();
  }
  std::vector<int32_t> first, second;
  add_mark(tokenizer, way.before_prefix, first);
  append(first, prefix);
  add_mark(tokenizer, way.before_suffix, second);
  append(second, inner(tokenizer, suffix));
  append(start, way.suffix_first ? second : first);
  append(start, way.suffix_first ? first : second);
  add_mark(tokenizer, way.last, start);
  return start;
}

void add_fill_in_stops(const Tokenizer& tokenizer, std::vector<int32_t>& known) {
  const auto add = [&](const std::string& name) {
    const auto id = tokenizer.id_of(name);
    if (id && std::find(known.begin(), known.end(), *id) == known.end()) known.push_back(*id);
  };
  for (const FillIn& way : kWays) {
    for (const std::string& mark : marks_of(way)) add(mark);
  }
  for (const char* name : kEnds) add(name);
}

}  // namespace wherry::app
