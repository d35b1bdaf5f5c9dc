#include "app/grammar/grammars.h"

#include <algorithm>
#include <future>
#include <optional>

#include "app/grammar/refusals.h"
#include "app/grammar/vocabulary.h"
#include "app/request/request_error.h"
#include "support/error.h"

namespace wherry::app {

namespace {

constexpr size_t kMostKept = 32;  // upper bound on cache entries: grammars and errors
// Upper bound on the cached grammars' bytes, without the latest one's.
constexpr size_t kMostBytes = size_t{32} << 20;

std::string key_of(const Constraint& constraint) {
  std::string result = constraint.ebnf;
  for (const GrammarPart& part : constraint.parts) {
    result +=
        '\0' + part.rule + '\0' + static_cast<char>('0' + static_cast<int>(part.kind)) + part.text;
  }
  return result;
}

}  // namespace

std::unique_ptr<GrammarCompiler> compiler_of(const Tokenizer& tokenizer, int64_t vocab_size) {
  return make_grammar_compiler(grammar_vocabulary(tokenizer, vocab_size));
}

void Grammars::compile(int64_t id, const Constraint& constraint, Done done) {
  require_token_bytes(tokenizer_);
  std::string key = key_of(constraint);
  Waiter waiter{id, constraint.param, std::move(done)};
  std::optional<Kept> known;
  {
    const std::lock_guard lock(mutex_);
    if (const Kept* kept = kept_or_null(key)) {
      known = *kept;
    } else {
      if (!thread_) thread_ = std::make_unique<Thread>([this] { work(); });
      job_of(std::move(key), constraint).waiters.push_back(std::move(waiter));
    }
  }
  if (known) return tell(waiter, *known);
  changed_.notify_one();
}

CompiledGrammarPtr Grammars::compiled(const Constraint& constraint) {
  const auto result = std::make_shared<std::promise<CompiledGrammarPtr>>();
  compile(0, constraint, [result](CompiledGrammarPtr grammar, const std::exception_ptr& error) {
    error ? result->set_exception(error) : result->set_value(std::move(grammar));
  });
  return result->get_future().get();
}

bool Grammars::abandon(int64_t id) {
  const std::lock_guard lock(mutex_);
  for (auto job = jobs_.begin(); job != jobs_.end(); ++job) {
    std::vector<Waiter>& waiters = (*job)->waiters;
    const auto waits = std::find_if(waiters.begin(), waiters.end(),
                                    [&](const Waiter& waiter) { return waiter.id == id; });
    if (waits == waiters.end()) continue;
    waiters.erase(waits);
    if (!waiters.empty()) return true;
    (*job)->cancelled = true;
    if (job != jobs_.begin()) jobs_.erase(job);
    return true;
  }
  return false;
}

void Grammars::forget() {
  const std::lock_guard lock(mutex_);
  kept_.clear();
  if (jobs_.empty()) compiler_.reset();
}

void Grammars::close() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
    for (const auto& job : jobs_) job->cancelled = true;
  }
  changed_.notify_one();
  thread_.reset();
}

const Grammars::Kept* Grammars::kept_or_null(const std::string& key) {
  const auto known =
      std::find_if(kept_.begin(), kept_.end(), [&](const Kept& kept) { return kept.key == key; });
  if (known == kept_.end()) return nullptr;
  kept_.splice(kept_.begin(), kept_, known);
  return &kept_.front();
}

Grammars::Job& Grammars::job_of(std::string key, const Constraint& constraint) {
  const auto equal = std::find_if(jobs_.begin(), jobs_.end(), [&](const auto& job) {
    return job->key == key && !job->cancelled;
  });
  if (equal != jobs_.end()) return **equal;
  auto result = std::make_shared<Job>();
  result->key = std::move(key);
  result->constraint = constraint;
  jobs_.push_back(std::move(result));
  return *jobs_.back();
}

void Grammars::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return closing_ || !jobs_.empty(); });
    if (closing_) return;
    const std::shared_ptr<Job> job = jobs_.front();
    lock.unlock();
    const Kept result = build(*job);
    lock.lock();
    jobs_.pop_front();
    if (closing_) return;
    const bool ended_early = job->cancelled && !result.grammar;
    if (!ended_early && !result.without) keep(result);
    lock.unlock();
    for (const Waiter& waiter : job->waiters) tell(waiter, result);
    lock.lock();
  }
}

Grammars::Kept Grammars::build(const Job& job) {
  try {
    if (!compiler_) compiler_ = make_(tokenizer_, vocab_size_);
    if (!compiler_) return {job.key, nullptr, "", true};
    return {job.key, compiler_->compile(job.constraint, job.cancelled), ""};
  } catch (const std::exception& error) {
    return {job.key, nullptr, error.what()};
  }
}

void Grammars::keep(Kept result) {
  kept_.push_front(std::move(result));
  size_t bytes = 0, count = 0;
  for (auto kept = kept_.begin(); kept != kept_.end(); ++count) {
    bytes += kept->key.size() + (kept->grammar ? kept->grammar->bytes() : 0);
    const bool stays = count == 0 || (bytes <= kMostBytes && count < kMostKept);
    kept = stays ? std::next(kept) : kept_.erase(kept);
  }
}

void Grammars::tell(const Waiter& waiter, const Kept& result) {
  if (result.grammar) return waiter.done(result.grammar, nullptr);
  const std::string& param = waiter.param;
  const RequestError error =
      result.without ? without_grammars(param) : cannot_enforce(param, result.reason);
  waiter.done(nullptr, std::make_exception_ptr(error));
}

}  // namespace wherry::app
