#include "testing/fake_model.h"

#include <algorithm>
#include <set>

#include "sampling/rng.h"
#include "sampling/sampler.h"
#include "scheduling/request.h"
#include "support/error.h"

namespace wherry {

namespace {

void require(bool condition, const char* what) {
  if (!condition) throw Error(WHERRY_INTERNAL, concat("a wrong batch: ", what));
}

struct Slot {
  int32_t token = -1;
  int32_t position = -1;
};

class FakeSession : public Session {
 public:
  FakeSession(const FakeModel& model, const SessionLimits& limits)
      : model_(model),
        limits_(limits),
        page_size_(model.metadata().page_size),
        slots_(static_cast<size_t>(limits.pages * page_size_)) {}

  void launch(const Batch& batch) override {
    logits_.clear();
    if (model_.on_launch) model_.on_launch(batch);
    check_shapes(batch);
    std::set<int32_t> owned;
    for (size_t s = 0; s + 1 < batch.query_indptr.size(); ++s) write_rows(batch, s, owned);
    for (int32_t row : batch.logit_rows) add_logits(batch, static_cast<size_t>(row));
  }

  Logits collect() override {
    int64_t vocab = model_.metadata().vocab_size;
    return {logits_.data(), static_cast<int64_t>(logits_.size()) / vocab, vocab};
  }

 private:
  void check_shapes(const Batch& b) const {
    auto n = static_cast<int64_t>(b.tokens.size());
    auto r = static_cast<int64_t>(b.query_indptr.size()) - 1;
    require(n >= 1 && n <= limits_.rows, "rows");
    require(r >= 1 && r <= limits_.sequences, "sequences");
    require(b.positions.size() == b.tokens.size(), "positions");
    require(b.sequences.size() == b.tokens.size(), "sequence ids");
    require(b.page_indptr.size() == b.query_indptr.size(), "page_indptr");
    require(b.query_indptr.front() == 0 && b.query_indptr.back() == n, "query_indptr's ends");
    require(b.page_indptr.front() == 0, "page_indptr's start");
    require(b.page_indptr.back() == static_cast<int32_t>(b.page_ids.size()), "page_indptr's end");
    require(static_cast<int64_t>(b.page_ids.size()) <= limits_.page_ids, "pages");
    require(!b.logit_rows.empty(), "no logit rows");
    for (int32_t row : b.logit_rows) require(row >= 0 && row < n, "a logit row");
  }

  void write_rows(const Batch& b, size_t s, std::set<int32_t>& owned) {
    require(b.query_indptr[s] < b.query_indptr[s + 1], "a sequence without rows");
    for (int32_t i = b.page_indptr[s]; i < b.page_indptr[s + 1]; ++i) {
      int32_t page = b.page_ids[static_cast<size_t>(i)];
      require(page >= 0 && page < limits_.pages, "a page id");
      require(owned.insert(page).second, "two sequences write one page");
    }
    for (int32_t row = b.query_indptr[s]; row < b.query_indptr[s + 1]; ++row) {
      auto i = static_cast<size_t>(row);
      require(b.sequences[i] == static_cast<int32_t>(s), "a row's sequence");
      bool first = row == b.query_indptr[s];
      require(first || b.positions[i] == b.positions[i - 1] + 1, "positions");
      slot(b, s, b.positions[i]) = {b.tokens[i], b.positions[i]};
    }
  }

  Slot& slot(const Batch& b, size_t s, int32_t position) {
    auto index = b.page_indptr[s] + position / static_cast<int32_t>(page_size_);
    require(index < b.page_indptr[s + 1], "a position beyond the sequence's pages");
    int64_t page = b.page_ids[static_cast<size_t>(index)];
    return slots_[static_cast<size_t>(page * page_size_ + position % page_size_)];
  }

  void add_logits(const Batch& b, size_t row) {
    auto s = static_cast<size_t>(b.sequences[row]);
    std::vector<int32_t> tokens;
    for (int32_t position = 0; position <= b.positions[row]; ++position) {
      const Slot& found = slot(b, s, position);
      require(found.position == position, "the cache lacks a position");
      tokens.push_back(found.token);
    }
    std::vector<float> logits = fake_logits(tokens, model_.metadata().vocab_size);
    if (model_.on_logits) model_.on_logits(logits.data(), static_cast<int64_t>(tokens.size()));
    logits_.insert(logits_.end(), logits.begin(), logits.end());
  }

  const FakeModel& model_;
  SessionLimits limits_;
  int64_t page_size_;
  std::vector<Slot> slots_;
  std::vector<float> logits_;
};

}  // namespace

FakeModel::FakeModel(FakeOptions options) {
  metadata_.json = "{\"name\": \"fake\"}";
  metadata_.name = "fake";
  metadata_.vocab_size = options.vocab;
  metadata_.context = options.context;
  metadata_.page_size = options.page_size;
}

std::unique_ptr<Session> FakeModel::open(const SessionLimits& limits) const {
  return std::make_unique<FakeSession>(*this, limits);
}

std::vector<float> fake_logits(const std::vector<int32_t>& tokens, int64_t vocab) {
  uint64_t state = tokens.size();
  for (int32_t token : tokens) state = splitmix64(state, static_cast<uint64_t>(token));
  std::vector<float> logits;
  for (int64_t i = 0; i < vocab; ++i) {
    logits.push_back(static_cast<float>(6 * uniform(state, static_cast<uint64_t>(i)) - 3));
  }
  return logits;
}

std::vector<int32_t> fake_output(const FakeOptions& options, const std::vector<int32_t>& prompt,
                                 const wherry_params& params, int64_t context) {
  PagePool no_pages(0);
  Request request(0, prompt, checked_params(params, options.vocab), context, no_pages, 1);
  StandardSampler sampler;
  std::vector<int32_t> output;
  for (wherry_finish finish = WHERRY_RUNNING; finish == WHERRY_RUNNING;) {
    std::vector<float> logits = fake_logits(request.tokens, options.vocab);
    Sample sample = sampler.sample(request.sampling(), logits.data(), options.vocab, nullptr);
    output.push_back(sample.token);
    finish = request.append(sample);
  }
  return output;
}

}  // namespace wherry
