#include "testing/fake_session.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <deque>
#include <set>
#include <string>
#include <thread>
#include <utility>

#include "sampling/draw.h"
#include "sampling/rng.h"
#include "sampling/truncation.h"
#include "support/error.h"
#include "testing/fake_candidates.h"
#include "testing/fake_logits.h"
#include "testing/fake_rows.h"

namespace wherry {

namespace {

void require(bool condition, const char* what) {
  if (!condition) throw Error(WHERRY_INTERNAL, concat("a wrong batch: ", what));
}

// What the layers keep of a token, and what the block of multi-token prediction keeps of it.
struct Slot {
  int32_t token = -1;
  int32_t position = -1;
  int32_t block_token = -1;
  int32_t block_position = -1;
  uint64_t hidden = 0;  // the hidden state, which depends on all tokens so far
};

class FakeSession : public Session {
 public:
  FakeSession(const FakeModel& model, const SessionLimits& limits)
      : model_(model),
        limits_(limits),
        page_size_(model.metadata().page_size),
        states_(static_cast<size_t>(limits.slots)),
        features_(static_cast<size_t>(limits.image_rows)) {
    for (int64_t pages : limits.pages) {
      groups_.emplace_back(static_cast<size_t>(pages * page_size_));
    }
  }

  void launch(const Batch& batch, Entry entry) override {
    requested_.clear();
    require(flights_.size() < (chains() ? 2u : 1u), "a launch before the last step was collected");
    const bool draws = entry == Entry::kForward || entry == Entry::kDraft;
    require(batch.scales.empty() || (draws && max_candidates() > 0), "scales");
    require(batch.scales.empty() || batch.scales.size() == batch.logit_rows.size(), "scales");
    require(batch.chosen_from.empty() || batch.chosen_from.size() == batch.tokens.size(), "chosen");
    require(batch.chosen_from.empty() || !flights_.empty(), "chosen by which step?");
    if (model_.on_launch) model_.on_launch(batch);
    if (entry == Entry::kForward && model_.forward_time.count() > 0) {
      std::this_thread::sleep_for(model_.forward_time);
    }
    check_shapes(batch);
    auto before = flights_.empty() ? nullptr : flights_.back();
    auto flight = std::make_shared<Flight>(Flight{batch, entry, {}, {}, {}, false});
    run_later([this, flight, before] { run(*flight, before.get()); });
    flights_.push_back(flight);
  }

  void see(const ImageTile& tile, int64_t first) override {
    require(flights_.empty(), "a tile before the last step was collected");
    if (model_.on_see) model_.on_see(tile);
    const std::vector<int32_t> rows = fake_features(model_.options, tile);
    const int64_t end = first + static_cast<int64_t>(rows.size());
    require(first >= 0 && end <= limits_.image_rows, "rows of image features");
    run_later([this, rows, first] { std::copy(rows.begin(), rows.end(), &features_[first]); });
  }

  Rows collect() override {
    if (!flights_.empty()) {  // without a step in flight, collect() repeats the last step
      collected_ = flights_.front();
      flights_.pop_front();
    }
    require(collected_ != nullptr, "a collect without a launch");
    finish(*collected_);
    if (collected_->entry == Entry::kEncode) return {};
    Rows rows{
        static_cast<int64_t>(collected_->batch.logit_rows.size()), columns(collected_->entry), {}};
    for (size_t i = 0; i < collected_->candidates.size(); ++i) {
      const FakeCandidates& candidates = collected_->candidates[i];
      rows.candidates.push_back(candidates.view());
      if (chains()) rows.candidates.back().chosen = collected_->chosen[i];
      bytes_read_ += candidates.bytes();
    }
    if (collected_->candidates.empty() && max_candidates() > 0) {
      bytes_read_ += collected_->results.size() * sizeof(float);
    }
    return rows;
  }

  const float* row(int64_t i) override {
    require(i >= 0 && static_cast<size_t>(i) < collected_->batch.logit_rows.size(), "a row");
    const std::vector<float>& scales = collected_->batch.scales;
    require(can_fetch_rows() || scales.empty() || scales[static_cast<size_t>(i)] == 0 ||
                requested_.count(i) != 0,
            "a row that nobody asked for");
    if (!collected_->candidates.empty()) {
      bytes_read_ += static_cast<uint64_t>(columns(collected_->entry)) * sizeof(float);
    }
    return row_at(*collected_, static_cast<size_t>(i));
  }

  bool can_fetch_rows() const override { return !model_.options.asks; }
  bool request_row(int64_t i) override { return requested_.insert(i).second; }

  bool chains() const override { return model_.options.chains; }
  bool draws() const override { return model_.options.draws; }
  void discard() override { flights_.clear(); }
  bool asynchronous() const override { return model_.options.asynchronous; }
  int64_t max_candidates() const override { return model_.options.candidates; }
  uint64_t bytes_read() const override { return bytes_read_; }

  void copy_page(int group, int32_t from, int32_t to) override {
    run_later([=] { std::copy_n(page(group, from), page_size_, page(group, to)); });
  }
  void copy_slot(int32_t from, int32_t to) override {
    run_later([=] { states_[static_cast<size_t>(to)] = states_[static_cast<size_t>(from)]; });
  }
  void clear_slot(int32_t slot) override {
    run_later([=] { states_[static_cast<size_t>(slot)] = {}; });
  }

  size_t page_bytes(int) const override { return static_cast<size_t>(page_size_) * sizeof(Slot); }
  void read_page(int group, int32_t index, char* bytes) override {
    while (!later_.empty()) run_next();
    std::memcpy(bytes, page(group, index), page_bytes(group));
  }
  void write_page(int group, int32_t index, const char* bytes) override {
    std::string copy(bytes, page_bytes(group));
    run_later([=] { std::memcpy(page(group, index), copy.data(), copy.size()); });
  }

 private:
  struct State {  // state of a recurrent layer
    uint64_t value = 0;
    int64_t tokens = 0;
  };

  // A step, from its launch until the collection of the next one.
  struct Flight {
    Batch batch;
    Entry entry;
    std::vector<float> results;
    std::vector<FakeCandidates> candidates;
    std::vector<int32_t> chosen;  // [result rows] tokens that the fake device drew
    bool done;
  };

  // Queues work: the fake device executes calls in order and as late as allowed.
  void run_later(std::function<void()> work) {
    if (!asynchronous()) return work();
    later_.push_back(std::move(work));
  }
  void run_next() {
    auto work = std::move(later_.front());
    later_.pop_front();
    work();
  }
  void finish(const Flight& flight) {
    while (!flight.done && !later_.empty()) run_next();
  }

  void run(Flight& flight, const Flight* before) {
    flight.done = true;  // set first, in case the work throws
    Batch& batch = flight.batch;
    entry_ = flight.entry;
    for (size_t i = 0; i < batch.chosen_from.size(); ++i) {
      if (batch.chosen_from[i] < 0) continue;
      batch.tokens[i] = before->chosen.at(static_cast<size_t>(batch.chosen_from[i]));
    }
    for (size_t i = 0; i < batch.image_rows.size(); ++i) {
      if (batch.image_rows[i] < 0) continue;
      const int32_t feature = features_.at(static_cast<size_t>(batch.image_rows[i]));
      require(feature != 0, "a row of image features that no tile has");
      batch.tokens[i] = feature;
    }
    keep_places(batch);
    results_.clear();
    std::vector<std::set<int32_t>> owned(groups_.size());
    for (size_t s = 0; s + 1 < batch.query_indptr.size(); ++s) write_rows(batch, s, owned);
    if (flight.entry == Entry::kEncode) return;
    for (int32_t row : batch.logit_rows) {
      if (entry_ == Entry::kDraft) {
        add_draft(batch, static_cast<size_t>(row));
      } else {
        add_result(batch, static_cast<size_t>(row));
      }
    }
    for (size_t s = 0; s + 1 < batch.query_indptr.size(); ++s) move_state_on(batch, s);
    flight.results = std::move(results_);
    for (size_t i = 0; i < batch.scales.size(); ++i) {
      const float* row = row_at(flight, i);
      flight.candidates.emplace_back(row, columns(flight.entry), model_.options, batch.scales[i]);
      if (!chains()) continue;
      Choice choice = i < batch.choices.size() ? batch.choices[i] : Choice();
      flight.chosen.push_back(
          choose(row, flight.candidates.back().view(), batch.scales[i], choice));
    }
  }

  // Puts what the layers keep into the places of tokens.
  void keep_places(Batch& b) const {
    for (size_t i = 0; i < b.rope_positions.size() / 3; ++i) {
      b.tokens[i] = fake_placed(b.tokens[i], &b.rope_positions[3 * i], b.positions[i]);
    }
    for (size_t i = 0; i < b.last_visible.size(); ++i) {
      const int64_t n = b.last_visible[i] - b.positions[i] + 1;
      const auto end = static_cast<size_t>(b.sequences[i]) + 1;
      require(n >= 1, "a row that does not see itself");
      require(static_cast<int64_t>(i) + n <= b.query_indptr[end], "a row sees rows of later steps");
      b.tokens[i] = fake_attending(&b.tokens[i], n);
    }
  }

  // Returns the token that sampling will draw, or sometimes another one, as a wrong draft token
  // would be.
  int32_t choose(const float* row, const Candidates& candidates, float scale,
                 const Choice& choice) {
    auto seed = static_cast<uint64_t>(1e6 * std::fabs(static_cast<double>(row[0])));
    bool wrong = uniform(seed, 2) < model_.options.wrong_choices;
    if (scale == 0 || candidates.count == 0) return 0;
    if (wrong) return candidates.ids[candidates.count - 1];
    truncation_.start(row, model_.metadata().vocab_size, candidates.logits[0], scale, -1);
    if (choice.top_k > 0) truncation_.top_k(choice.top_k);
    if (choice.top_p < 1) truncation_.top_p(choice.top_p);
    if (choice.min_p > 0) truncation_.min_p(choice.min_p);
    return draw_.from(truncation_, static_cast<double>(choice.place)).token;
  }

  int64_t columns(Entry entry) const {
    return entry == Entry::kEmbed ? kFakeEmbedding : model_.metadata().vocab_size;
  }
  const float* row_at(const Flight& flight, size_t i) const {
    return flight.results.data() + i * static_cast<size_t>(columns(flight.entry));
  }

  Slot* page(int group, int32_t index) {
    return &groups_[static_cast<size_t>(group)][static_cast<size_t>(index * page_size_)];
  }

  void check_shapes(const Batch& b) const {
    auto n = static_cast<int64_t>(b.tokens.size());
    auto r = static_cast<int64_t>(b.query_indptr.size()) - 1;
    require(n >= 1 && n <= limits_.rows, "rows");
    require(r >= 1 && r <= limits_.sequences, "sequences");
    require(b.positions.size() == b.tokens.size(), "positions");
    require(b.sequences.size() == b.tokens.size(), "sequence ids");
    require(b.adapters.size() == b.tokens.size(), "adapters");
    require(b.image_rows.empty() || b.image_rows.size() == b.tokens.size(), "image rows");
    for (int32_t row : b.image_rows) require(row >= -1 && row < limits_.image_rows, "an image row");
    const FakeOptions& options = model_.options;
    require(b.rope_positions.size() == (options.rope_positions ? 3 * b.tokens.size() : 0),
            "places");
    require(b.last_visible.size() == (options.last_visible ? b.tokens.size() : 0), "views");
    require(static_cast<int64_t>(b.slots.size()) == r, "slots");
    require(static_cast<int64_t>(b.source_lengths.size()) == r, "source lengths");
    require(b.query_indptr.front() == 0 && b.query_indptr.back() == n, "query_indptr's ends");
    require(b.pages.size() == groups_.size(), "page tables");
    for (size_t g = 0; g < b.pages.size(); ++g) check_table(b, g);
    require(!b.logit_rows.empty(), "no logit rows");
    require(static_cast<int64_t>(b.logit_rows.size()) <= limits_.logit_rows, "logit rows");
    for (int32_t row : b.logit_rows) require(row >= 0 && row < n, "a logit row");
  }

  void check_table(const Batch& b, size_t g) const {
    const PageTable& table = b.pages[g];
    require(table.indptr.size() == b.query_indptr.size(), "page_indptr");
    require(table.indptr.front() == 0, "page_indptr's start");
    require(table.indptr.back() == static_cast<int32_t>(table.ids.size()), "page_indptr's end");
    require(static_cast<int64_t>(table.ids.size()) <= limits_.page_ids[g], "pages");
    for (int32_t id : table.ids) require(id >= -1 && id < limits_.pages[g], "a page id");
  }

  // Whether this step writes the group: encoder steps write cross groups, other steps all other
  // groups.
  bool writes(size_t g) const {
    return model_.metadata().groups[g].cross == (entry_ == Entry::kEncode);
  }

  void write_rows(const Batch& b, size_t s, std::vector<std::set<int32_t>>& owned) {
    require(b.query_indptr[s] < b.query_indptr[s + 1], "a sequence without rows");
    for (int32_t row = b.query_indptr[s]; row < b.query_indptr[s + 1]; ++row) {
      auto i = static_cast<size_t>(row);
      require(b.sequences[i] == static_cast<int32_t>(s), "a row's sequence");
      bool first = row == b.query_indptr[s];
      require(first || b.positions[i] == b.positions[i - 1] + 1, "positions");
      for (size_t g = 0; g < groups_.size(); ++g) {
        if (!writes(g)) continue;
        int32_t page = page_of(b, g, s, b.positions[i]);
        bool fresh = owned[g].insert(page).second;
        bool opened = first || b.positions[i] % page_size_ == 0;
        require(fresh || !opened, "two sequences write one page");
        write_row(b, g, s, i);
      }
    }
  }

  // Writes what the layers keep of a row, unless the block alone runs, and what the block keeps.
  void write_row(const Batch& b, size_t g, size_t s, size_t row) {
    const int32_t position = b.positions[row], token = b.tokens[row];
    Slot& written = slot(b, g, s, position);
    if (entry_ != Entry::kDraft) {
      written.token = token;
      written.position = position;
    }
    if (!model_.options.block) return;
    const uint64_t before = position == 0 ? 0 : slot(b, g, s, position - 1).hidden;
    written.block_token = token;
    written.block_position = position;
    written.hidden = next_state(before, token);
  }

  int32_t page_of(const Batch& b, size_t g, size_t s, int32_t position) const {
    const PageTable& table = b.pages[g];
    auto index = table.indptr[s] + position / static_cast<int32_t>(page_size_);
    require(index < table.indptr[s + 1], "a position beyond the sequence's pages");
    int32_t page = table.ids[static_cast<size_t>(index)];
    require(page >= 0, "a page behind the window is needed");
    return page;
  }

  Slot& slot(const Batch& b, size_t g, size_t s, int32_t position) {
    return page(static_cast<int>(g), page_of(b, g, s, position))[position % page_size_];
  }

  std::vector<int32_t> read(const Batch& b, size_t g, size_t s, int32_t from, int32_t end) {
    std::vector<int32_t> tokens;
    for (int32_t position = from; position < end; ++position) {
      const Slot& stored = slot(b, g, s, position);
      require(stored.position == position, "the cache lacks a position");
      tokens.push_back(stored.token);
    }
    return tokens;
  }

  // Adds the logits of a row of the block, which depend on what it keeps of all tokens so far.
  void add_draft(const Batch& b, size_t row) {
    auto s = static_cast<size_t>(b.sequences[row]);
    const int32_t position = b.positions[row];
    std::vector<int32_t> tokens;
    for (int32_t i = 0; i <= position; ++i) {
      const Slot& stored = slot(b, 0, s, i);
      require(stored.block_position == i, "the block's cache lacks a position");
      tokens.push_back(stored.block_token);
    }
    require(slot(b, 0, s, position).hidden == state_after(tokens), "another text's hidden state");
    uint64_t view = view_of(tokens, 0);
    if (model_.options.recurrent) view ^= splitmix64(state_after(tokens), 2);
    std::vector<float> result = logits_of(model_.options, view, position + 1, true);
    results_.insert(results_.end(), result.begin(), result.end());
  }

  // Adds the result of a row, which depends on the state of each kind of layer.
  void add_result(const Batch& b, size_t row) {
    auto s = static_cast<size_t>(b.sequences[row]);
    const int32_t size = b.positions[row] + 1;
    const FakeOptions& options = model_.options;
    std::vector<int32_t> tokens;
    uint64_t view = 0;
    for (size_t g = 0; g < groups_.size(); ++g) {
      const GroupSpec& group = model_.metadata().groups[g];
      if (group.cross) {
        view ^= splitmix64(view_of(read(b, g, s, 0, b.source_lengths[s]), 0), 3);
      } else if (group.window == 0) {
        tokens = read(b, g, s, 0, size);
        view ^= view_of(tokens, 0);
      } else {
        auto from = static_cast<int32_t>(std::max<int64_t>(0, size - group.window));
        std::vector<int32_t> seen = read(b, g, s, from, size);
        seen.insert(seen.begin(), static_cast<size_t>(from), 0);
        view ^= splitmix64(view_of(seen, group.window), 1);
      }
    }
    if (options.bidirectional) {
      for (int32_t i = b.query_indptr[s]; i < b.query_indptr[s + 1]; ++i) {
        tokens.push_back(b.tokens[static_cast<size_t>(i)]);
      }
    }
    if (options.recurrent) view ^= splitmix64(state_at(b, s, row), 2);
    std::vector<float> result =
        entry_ == Entry::kEmbed ? fake_embedding(tokens) : logits_of(options, view, size);
    if (model_.on_logits) model_.on_logits(result.data(), size);
    results_.insert(results_.end(), result.begin(), result.end());
  }

  uint64_t state_at(const Batch& b, size_t s, size_t row) {
    State state = states_.at(static_cast<size_t>(b.slots[s]));
    auto first = static_cast<size_t>(b.query_indptr[s]);
    require(state.tokens == b.positions[first], "a slot's state is of another position");
    for (size_t i = first; i <= row; ++i) state.value = next_state(state.value, b.tokens[i]);
    return state.value;
  }

  void move_state_on(const Batch& b, size_t s) {
    if (!model_.options.recurrent || entry_ == Entry::kDraft) return;
    auto last = static_cast<size_t>(b.query_indptr[s + 1]) - 1;
    uint64_t value = state_at(b, s, last);
    states_.at(static_cast<size_t>(b.slots[s])) = {value, b.positions[last] + 1};
  }

  const FakeModel& model_;
  SessionLimits limits_;
  int64_t page_size_;
  std::vector<std::vector<Slot>> groups_;
  std::vector<State> states_;
  std::vector<int32_t> features_;  // [image rows] 0: no tile has given this row
  Truncation truncation_;
  Draw draw_;
  std::deque<std::function<void()>> later_;
  std::deque<std::shared_ptr<Flight>> flights_;  // steps that were launched and not collected
  std::shared_ptr<Flight> collected_;            // the last collected step
  std::vector<float> results_;
  std::set<int64_t> requested_;  // indices of the requested rows
  uint64_t bytes_read_ = 0;
  Entry entry_ = Entry::kForward;  // entry of the running step
};

}  // namespace

std::unique_ptr<Session> open_fake_session(const FakeModel& model, const SessionLimits& limits) {
  return std::make_unique<FakeSession>(model, limits);
}

}  // namespace wherry
