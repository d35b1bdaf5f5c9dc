// Simulates models with known costs: from the first step on, no step with running requests may take
// longer than the budget allows.
#include "scheduling/step_budget.h"

#include <algorithm>
#include <functional>

#include "sampling/rng.h"
#include "testing/testing.h"

namespace wherry {
namespace {

constexpr double kSlowdown = 2;

// Simulated seconds of a step: a fixed part, a part per row, per attended token and per cached
// token.
struct Cost {
  double step, row, pair, token = 0;

  double of(const StepWork& work) const {
    return step + row * static_cast<double>(work.rows) + pair * static_cast<double>(work.attended) +
           token * static_cast<double>(work.context);
  }
};

// Simulates requests that decode, and prompts that arrive one after the other.
class Machine {
 public:
  explicit Machine(std::function<double(const StepWork&)> seconds, double max_seconds = 0)
      : seconds_(std::move(seconds)), budget_(kSlowdown, max_seconds) {}

  void start_streams(int64_t count, int64_t prompt) {
    StepWork work;
    for (int64_t i = 0; i < count; ++i) work.add(0, prompt);
    run(work);
    streams_ = count;
    position_ = prompt;
  }

  void decode(int steps) {
    for (int i = 0; i < steps; ++i, ++position_) run(running());
  }

  // Runs steps until the prompt's tokens from `begin` on are computed; returns the rows of each
  // step.
  std::vector<int64_t> prompt(int64_t begin, int64_t end, int64_t chunk) {
    std::vector<int64_t> steps;
    for (; begin < end; ++position_) {
      StepWork alone = running(), with = alone;
      int64_t rows =
          budget_.prompt_rows(alone, alone, prompts_, begin, std::min(chunk, end - begin));
      CHECK(rows >= 1);
      with.add(begin, rows);
      longest_ = std::max(longest_, seconds_(with));
      double slowdown = alone.rows > 0 ? seconds_(with) / seconds_(alone) : 0;
      if (rows > 1) worst_ = std::max(worst_, slowdown);
      run(with);
      begin += rows;
      steps.push_back(rows);
    }
    return steps;
  }

  // Number of prompts that wait at the same time.
  void set_prompts(int64_t count) { prompts_ = count; }

  double worst() const { return worst_; }
  double longest() const { return longest_; }  // seconds of the longest step with prefill rows
  const StepBudget& budget() const { return budget_; }
  StepWork running() const {
    StepWork work;
    for (int64_t i = 0; i < streams_; ++i) work.add(position_, 1);
    return work;
  }

 private:
  void run(const StepWork& work) { budget_.record(work, seconds_(work)); }

  std::function<double(const StepWork&)> seconds_;
  StepBudget budget_;
  int64_t streams_ = 0, position_ = 0, prompts_ = 1;
  double longest_ = 0;
  double worst_ = 0;  // longest slowdown of a step with more than one prefill row
};

// Simulated models: some mostly read weights, some mostly compute rows; attention is free or
// dominates.
const Cost kCosts[] = {{10e-3, 1e-4, 0},
                       {10e-3, 1e-4, 1e-7},
                       {1e-3, 1e-3, 1e-7},
                       {0, 2e-3, 1e-8},
                       {5e-3, 5e-4, 1e-6},
                       {1e-4, 1e-5, 5e-8},
                       {70e-3, 9e-3, 5e-7},
                       {2e-3, 1e-6, 1e-9},
                       {5e-3, 1e-5, 1e-6},
                       // The last two rows: a small model whose KV cache is read from memory, and a
                       // large model.
                       {3e-3, 2e-4, 5e-7, 1e-6},
                       {20e-3, 2e-3, 1e-7, 1e-6}};

TEST(no_step_is_longer_than_allowed_from_the_first_on) {
  for (const Cost& cost : kCosts) {
    for (int64_t streams : {1, 2, 4, 32}) {
      Machine machine([&](const StepWork& work) { return cost.of(work); });
      machine.start_streams(streams, 64);
      machine.decode(50);
      machine.prompt(0, 4096, 512);
      machine.decode(20);
      machine.prompt(0, 4096, 512);     // runs the same prompt again
      machine.prompt(4000, 4500, 512);  // runs a prompt of which 4,000 tokens are cached
      CHECK(machine.worst() <= kSlowdown);
    }
  }
}

TEST(nor_where_prompts_were_never_computed_alone) {
  for (const Cost& cost : kCosts) {
    Machine machine([&](const StepWork& work) { return cost.of(work); });
    machine.start_streams(4, 1);  // decoding requests whose prompts are fully cached
    machine.decode(50);
    machine.prompt(0, 1000, 512);
    machine.prompt(3500, 4096, 512);
    CHECK(machine.worst() <= kSlowdown);
  }
}

TEST(the_time_that_is_allowed_is_used) {
  for (const Cost& cost : kCosts) {
    Machine machine([&](const StepWork& work) { return cost.of(work); });
    machine.start_streams(4, 64);
    machine.decode(50);
    machine.prompt(0, 2048, 100000);
    StepWork alone = machine.running(), with = alone;
    int64_t rows = machine.budget().prompt_rows(alone, alone, 1, 2048, 100000);
    with.add(2048, rows + 1);  // one row more than fits
    CHECK(rows == 1 || cost.of(with) > 0.9 * kSlowdown * cost.of(alone));
  }
}

TEST(where_steps_vary_less_is_spent) {
  const Cost cost = kCosts[1];
  auto mean = [&](double noise) {
    uint64_t step = 0;
    Machine machine([&](const StepWork& work) {
      return cost.of(work) * (1 + noise * (uniform(1, ++step) - 0.5));
    });
    machine.start_streams(8, 64);
    machine.decode(50);
    machine.prompt(0, 2048, 512);  // lets the budget learn step times
    const int64_t begin = 2048;
    double spent = 0;
    std::vector<int64_t> steps = machine.prompt(begin, 4096, 512);
    int64_t at = begin;
    for (int64_t rows : steps) {
      StepWork alone = machine.running(), with = alone;
      with.add(at, rows);
      spent += cost.of(with) / cost.of(alone) / static_cast<double>(steps.size());
      at += rows;
    }
    return spent;
  };
  CHECK(mean(0.02) > 0.9 * kSlowdown);
  CHECK(mean(0.6) < 0.9 * kSlowdown);
  CHECK(mean(0.6) > 0.7 * kSlowdown);
}

TEST(prompts_have_the_share_of_requests_that_run) {
  const Cost cost = kCosts[0];
  auto steps = [&](int64_t streams, int64_t prompts) {
    Machine machine([&](const StepWork& work) { return cost.of(work); });
    machine.start_streams(streams, 64);
    machine.decode(50);
    machine.set_prompts(prompts);
    auto steps_taken = static_cast<double>(machine.prompt(0, 40960, 100000).size());
    double share = std::max(1.0, static_cast<double>(prompts) / static_cast<double>(streams));
    CHECK(machine.worst() <= 1 + share);
    return steps_taken;
  };
  CHECK_EQ(steps(4, 4), steps(4, 1));
  CHECK(steps(4, 28) < steps(4, 4) / 5);
}

TEST(tiles_of_rows_are_filled) {
  // In this model three rows of a tile of 8 cost as much as all 8.
  auto tiled = [](const StepWork& work) {
    return 4e-3 + 4e-3 * static_cast<double>((work.rows + 7) / 8);
  };
  Machine machine(tiled);
  machine.start_streams(4, 64);
  machine.decode(50);
  std::vector<int64_t> steps = machine.prompt(0, 4096, 512);
  double mean = 4096.0 / static_cast<double>(steps.size());
  CHECK(mean > 10);  // at most 12: 4 + 12 rows are two tiles, 12 ms of the allowed 8 * 1.6
  CHECK(machine.worst() <= kSlowdown);
}

TEST(disturbances_do_not_last) {
  uint64_t step = 0;
  const Cost cost = kCosts[1];
  auto noisy = [&](const StepWork& work) {
    double noise = 1 + 0.1 * (uniform(1, ++step) - 0.5);
    if (step == 1) noise = 50;  // the first step reads weights from disk, so it is slow
    if (uniform(2, step) < 0.01) noise = 8;
    return noise * cost.of(work);
  };
  Machine machine(noisy);
  machine.start_streams(4, 64);
  machine.decode(200);
  for (int i = 0; i < 5; ++i) machine.prompt(0, 4096, 512);
  // The step may take 6 to 8 ms more than without prefill rows, and a row takes 0.1 to 0.5 ms.
  std::vector<int64_t> steps = machine.prompt(0, 4096, 512);
  CHECK(steps.size() < 350);
  std::sort(steps.begin(), steps.end());
  CHECK(steps.back() < 110);
  CHECK(steps[steps.size() / 2] >= 8);
}

TEST(before_anything_is_known_a_prompt_gets_one_row) {
  StepBudget budget(kSlowdown);
  StepWork running;
  running.add(10, 1);
  CHECK_EQ(budget.prompt_rows(running, running, 1, 0, 512), 1);
  CHECK_EQ(budget.prompt_rows({}, {}, 1, 0, 512), 512);
  StepWork work = running;
  work.add(0, 1);
  // Another prompt already has prefill rows in the step.
  CHECK_EQ(budget.prompt_rows(running, work, 2, 0, 512), 0);
}

TEST(a_bound_on_seconds_holds_without_streams_and_beside_them) {
  const double bound = 0.5;
  for (const Cost& cost : kCosts) {
    if (cost.of(StepWork{64, 64, 64 * 65 / 2}) > bound)
      continue;  // before the first step the budget knows no times
    for (int64_t streams : {0, 4}) {
      Machine machine([&](const StepWork& work) { return cost.of(work); }, bound);
      if (streams > 0) machine.start_streams(streams, 16), machine.decode(50);
      machine.prompt(0, 4096, 512);
      machine.prompt(0, 4096, 512);
      CHECK(machine.longest() <= bound);
    }
  }
}

TEST(the_seconds_that_are_allowed_are_used) {
  const Cost cost = {70e-3, 9e-3, 5e-7};
  Machine machine([&](const StepWork& work) { return cost.of(work); }, 0.8);
  std::vector<int64_t> steps = machine.prompt(0, 4096, 512);
  CHECK_EQ(steps[0], 64);
  CHECK(steps.size() < 60);  // about 80 rows fit in one step
  CHECK(machine.longest() <= 0.8);
  // If one row alone exceeds the limit, a step has a few rows, or one row next to running requests.
  Machine slow([](const StepWork& work) { return static_cast<double>(work.rows); }, 0.5);
  CHECK_EQ(slow.prompt(0, 160, 512).back(), 8);
  slow.start_streams(1, 1);
  slow.decode(5);
  CHECK_EQ(slow.prompt(0, 16, 512).back(), 1);
}

TEST(where_the_least_rows_break_the_bound_more_come_that_take_no_longer) {
  // Every step reads the weights for 300 ms; then a row takes 0.1 ms, or the step computes tiles of
  // 64 rows.
  auto rows = [](const StepWork& work) { return 0.3 + 1e-4 * static_cast<double>(work.rows); };
  auto tiles = [](const StepWork& work) {
    return 0.3 * static_cast<double>((work.rows + 63) / 64);
  };
  for (const std::function<double(const StepWork&)>& seconds :
       {std::function<double(const StepWork&)>(rows), {tiles}}) {
    Machine machine(seconds, 0.1);
    std::vector<int64_t> first = machine.prompt(0, 4096, 512);
    CHECK(machine.longest() <= 0.62);  // a step has at most two tiles until more is known
    std::vector<int64_t> steps = machine.prompt(0, 4096, 512);
    CHECK(steps.size() <= 100);  // one-row steps would take 512
    CHECK(machine.prompt(0, 4096, 512)[0] >= 40);
  }
}

TEST(what_a_draft_token_costs) {
  StepBudget budget(kSlowdown);
  StepWork running;
  running.add(99, 1);
  CHECK_EQ(budget.draft_cost(running).row, 0.1);  // the default cost
  budget.record(running, 10e-3);
  CHECK_EQ(budget.draft_cost(running).row, 0.1);
  StepWork with;
  with.add(99, 5);
  budget.record(with, 12e-3);
  budget.record_draft(1e-3);
  CHECK(budget.draft_cost(running).row > 0.03 && budget.draft_cost(running).row < 0.06);
  CHECK(budget.draft_cost(running).draft > 0.099 && budget.draft_cost(running).draft < 0.101);
}

TEST(images_leave_running_requests_their_share) {
  StepWork work;
  work.add(10, 1);
  StepBudget budget(kSlowdown);
  CHECK(budget.may_see(1, 1));
  budget.record_image(2);
  CHECK(budget.may_see(0, 1));  // no request runs
  CHECK(!budget.may_see(1, 1));
  for (int i = 0; i < 15; ++i) budget.record(work, 0.125);
  CHECK(!budget.may_see(1, 1));
  CHECK(budget.may_see(1, 2));  // more prompts wait than requests run
  budget.record(work, 0.125);
  CHECK(budget.may_see(1, 1));
  budget.record_image(1);
  CHECK(!budget.may_see(1, 1));
}

TEST(images_are_computed_without_any_slowdown) {
  StepWork work;
  work.add(10, 1);
  StepBudget budget(1);
  budget.record_image(1);
  for (int i = 0; i < 21; ++i) budget.record(work, 1);
  CHECK(budget.may_see(4, 1));
}

TEST(the_time_of_others_in_tokens) {
  StepBudget budget(2);
  CHECK_EQ(budget.tokens_in(1), 0);  // not known
  StepWork one;
  one.add(0, 1);
  for (int i = 0; i < 3; ++i) budget.record(one, 0.010);
  CHECK_EQ(budget.tokens_in(0.105), 10);
}

}  // namespace
}  // namespace wherry
