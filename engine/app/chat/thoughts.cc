#include "app/chat/thoughts.h"

#include <algorithm>
#include <utility>

#include "app/template/code_points.h"

namespace wherry::app {

namespace {

// The longest end of `text` that `mark` begins with, but is not all of it.
size_t begun_mark(std::string_view text, std::string_view mark) {
  for (size_t n = std::min(text.size(), mark.size() - 1); n > 0; --n) {
    if (text.substr(text.size() - n) == mark.substr(0, n)) return n;
  }
  return 0;
}

}  // namespace

bool Thoughts::opened(std::string_view prompt) const {
  prompt = prompt.substr(0, jinja::skip_right(prompt));
  return prompt.size() >= begin.size() && prompt.substr(prompt.size() - begin.size()) == begin;
}

std::optional<Thoughts> thoughts_of(std::string_view chat_template) {
  static const Thoughts kMarks[] = {
      {"<think>", "</think>"},
      {"[THINK]", "[/THINK]"},
      {"<|START_THINKING|>", "<|END_THINKING|>"},
      {"<seed:think>", "</seed:think>"},
      {"<|channel>thought", "<channel|>"},
  };
  for (const Thoughts& marks : kMarks) {
    if (chat_template.find(marks.end) != chat_template.npos) return marks;
  }
  return std::nullopt;
}

ThoughtReader::ThoughtReader(std::optional<Thoughts> thoughts, bool opened)
    : thoughts_(std::move(thoughts)), opened_(opened) {
  if (!thoughts_) return;
  begun_ = false;
  state_ = State::kBegins;
  if (opened_) enter(State::kThinks);
}

void ThoughtReader::enter(State state) {
  state_ = state;
  space_.clear();
  fresh_ = true;
}

// Gives out a text, without the white space that the format has.
void ThoughtReader::write(std::string_view given) {
  std::string text = space_ + std::string(given);
  if (fresh_) text.erase(0, jinja::skip_left(text));
  const size_t end = jinja::skip_right(text);
  space_ = text.substr(end);
  if (end == 0) return;
  fresh_ = false;
  const bool reasoning = state_ == State::kThinks;
  text.resize(end);
  if (!made_.empty() && made_.back().reasoning == reasoning) {
    made_.back().text += text;
  } else {
    made_.push_back({reasoning, std::move(text)});
  }
}

// Looks for the first mark, which a model whose prompt has it may still write; false: more text is
// needed.
bool ThoughtReader::begin(bool ended) {
  const std::string_view bare = std::string_view(held_).substr(jinja::skip_left(held_));
  const std::string_view mark = thoughts_->begin;
  if (bare.substr(0, mark.size()) == mark) {
    held_ = std::string(bare.substr(mark.size()));
    enter(State::kThinks);
  } else if (!ended && bare == mark.substr(0, bare.size())) {
    return false;
  } else if (!opened_) {
    state_ = State::kSpeaks;
  }
  begun_ = true;
  return true;
}

void ThoughtReader::read(bool ended) {
  if (!begun_ && !begin(ended)) return;
  if (state_ == State::kThinks) {
    const size_t end = held_.find(thoughts_->end);
    if (end == held_.npos) {
      const size_t kept = ended ? 0 : begun_mark(held_, thoughts_->end);
      write(std::string_view(held_).substr(0, held_.size() - kept));
      held_.erase(0, held_.size() - kept);
      return;
    }
    write(std::string_view(held_).substr(0, end));
    held_.erase(0, end + thoughts_->end.size());
    enter(State::kSpeaks);
  }
  write(held_);
  held_.clear();
}

std::vector<Part> ThoughtReader::push(std::string_view text) {
  if (!thoughts_)
    return text.empty() ? std::vector<Part>() : std::vector<Part>{{false, std::string(text)}};
  held_ += text;
  read(false);
  return std::exchange(made_, {});
}

std::vector<Part> ThoughtReader::finish() {
  if (!thoughts_) return {};
  read(true);
  if (state_ == State::kSpeaks && !fresh_ && !space_.empty()) made_.push_back({false, space_});
  space_.clear();
  return std::exchange(made_, {});
}

}  // namespace wherry::app
