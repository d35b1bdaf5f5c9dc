#include "scheduling/scheduler.h"

#include <memory>

#include "testing/testing.h"

namespace wherry {
namespace {

// Requests with prompts of the given lengths, all waiting.
struct Fixture {
  Fixture(int32_t pages, std::vector<int> prompts, int max_tokens) : pool(pages) {
    wherry_params params;
    wherry_params_init(&params);
    params.max_tokens = max_tokens;
    for (int length : prompts) {
      std::vector<int32_t> prompt;
      for (int i = 0; i < length; ++i) prompt.push_back(100 * (length % 10) + i);
      requests.push_back(std::make_unique<Request>(requests.size(), prompt,
                                                   checked_params(params, 10000), 1000, pool, 4));
      queues.waiting.push_back(requests.back().get());
    }
  }
  // What the engine does when a step is over.
  void accept(const Plan& plan) {
    for (const PlannedRows& entry : plan.entries) {
      entry.request->computed += entry.rows;
      if (!entry.samples) continue;
      entry.request->state = RequestState::kRunning;
      entry.request->append(7);
    }
  }

  PagePool pool;
  std::vector<std::unique_ptr<Request>> requests;
  RequestQueues queues;
};

using Ints = std::vector<int32_t>;

TEST(the_arguments_of_a_mixed_batch) {
  Fixture f(100, {3, 7}, 10);
  FirstComeScheduler scheduler({4, 6});
  Plan first = scheduler.plan(f.queues, f.pool);
  CHECK((first.batch.tokens == Ints{300, 301, 302, 700, 701, 702}));
  CHECK((first.batch.positions == Ints{0, 1, 2, 0, 1, 2}));
  CHECK((first.batch.sequences == Ints{0, 0, 0, 1, 1, 1}));
  CHECK((first.batch.query_indptr == Ints{0, 3, 6}));
  CHECK((first.batch.page_indptr == Ints{0, 1, 2}));
  CHECK((first.batch.page_ids == Ints{0, 1}));
  CHECK((first.batch.logit_rows == Ints{2}));  // the second prompt is not done
  f.accept(first);
  Plan second = scheduler.plan(f.queues, f.pool);
  CHECK((second.batch.tokens == Ints{7, 703, 704, 705, 706}));
  CHECK((second.batch.positions == Ints{3, 3, 4, 5, 6}));
  CHECK((second.batch.query_indptr == Ints{0, 1, 5}));
  CHECK((second.batch.page_indptr == Ints{0, 1, 3}));
  CHECK((second.batch.page_ids == Ints{0, 1, 2}));
  CHECK((second.batch.logit_rows == Ints{0, 4}));
}

TEST(a_chunk_inside_a_prompt_still_asks_for_one_row) {
  Fixture f(100, {9}, 1);
  FirstComeScheduler scheduler({4, 4});
  Plan plan = scheduler.plan(f.queues, f.pool);
  CHECK(!plan.entries[0].samples);
  CHECK((plan.batch.logit_rows == Ints{3}));
}

TEST(nothing_to_do_is_an_empty_plan) {
  Fixture f(100, {}, 1);
  CHECK(FirstComeScheduler({4, 4}).plan(f.queues, f.pool).empty());
}

TEST(max_batch_counts_prefilling_and_running) {
  Fixture f(100, {1, 1, 1}, 5);
  FirstComeScheduler scheduler({2, 8});
  f.accept(scheduler.plan(f.queues, f.pool));
  CHECK_EQ(f.queues.active.size(), 2u);
  CHECK_EQ(f.queues.waiting.size(), 1u);
}

TEST(pages_that_the_admitted_may_need_are_not_given_away) {
  // 8 pages. The first takes 1 now and 5 in the end; the second would take 4.
  Fixture f(8, {4, 12}, 0);
  f.requests.clear();
  f.queues = {};
  wherry_params params;
  wherry_params_init(&params);
  params.max_tokens = 17;  // 4 + 16 rows: 5 pages
  f.requests.push_back(
      std::make_unique<Request>(0, Ints(4, 1), checked_params(params, 10), 1000, f.pool, 4));
  params.max_tokens = 5;  // 12 + 4 rows: 4 pages
  f.requests.push_back(
      std::make_unique<Request>(1, Ints(12, 1), checked_params(params, 10), 1000, f.pool, 4));
  for (auto& request : f.requests) f.queues.waiting.push_back(request.get());
  FirstComeScheduler scheduler({4, 64});
  f.accept(scheduler.plan(f.queues, f.pool));
  CHECK_EQ(f.pool.available(), 7);  // pages are taken as they are needed
  CHECK_EQ(f.queues.waiting.size(), 1u);
  for (int i = 0; i < 16; ++i) {  // and the promise is kept to the last of them
    Plan plan = scheduler.plan(f.queues, f.pool);
    CHECK_EQ(plan.entries.size(), 1u);
    f.accept(plan);
  }
  CHECK_EQ(f.pool.available(), 3);
  f.queues.active.clear();
  f.requests[0].reset();
  CHECK_EQ(scheduler.plan(f.queues, f.pool).entries.size(), 1u);
}

TEST(nobody_overtakes) {
  Fixture f(6, {20, 4, 4}, 1);
  f.pool.take();  // 5 left: just enough for the first
  FirstComeScheduler scheduler({4, 64});
  CHECK_EQ(scheduler.plan(f.queues, f.pool).entries.size(), 1u);
  Fixture g(6, {20, 4, 4}, 1);
  g.pool.take();
  g.pool.take();  // 4 left: too few, and the small ones behind it wait too
  CHECK(scheduler.plan(g.queues, g.pool).empty());
}

}  // namespace
}  // namespace wherry
