#include "cache/prefix_tree.h"

#include "testing/testing.h"

namespace wherry {
namespace {

using Ints = std::vector<int32_t>;

// Fixture: a tree over pages of 4 tokens with one group, and with a windowed one if `window` is not
// 0.
struct Fixture {
  explicit Fixture(int64_t window = 0, bool recurrent = false)
      : full(16),
        windowed(16),
        slots(4),
        tree(pools(window), window == 0 ? std::vector<int64_t>{0} : std::vector<int64_t>{0, window},
             recurrent ? &slots : nullptr, 4) {}

  std::vector<PagePool*> pools(int64_t window) {
    if (window == 0) return {&full};
    return {&full, &windowed};
  }

  // Adds `text` to the tree as a finished sequence does: its whole pages, and the rest as a half
  // page.
  PrefixNode* put(const Ints& text, uint64_t salt = 0) {
    PrefixNode* node = tree.root({salt, 0, false});
    for (size_t at = 0; at < text.size(); at += 4) {
      auto n = static_cast<int64_t>(std::min<size_t>(4, text.size() - at));
      PrefixNode* next = tree.child(*node, &text[at], n);
      if (next == nullptr) {
        Ints pages{full.take()};
        if (tree.groups() == 2) pages.push_back(windowed.take());
        next = tree.add(*node, &text[at], n, pages);
        full.release(pages[0]);
        if (tree.groups() == 2) windowed.release(pages[1]);
      }
      node = next;
    }
    tree.touch(*node);
    return node;
  }

  int64_t matched(const Ints& text, uint64_t salt = 0) {
    PrefixTree::Match match =
        tree.match({salt, 0, false}, text.data(), static_cast<int64_t>(text.size()));
    return match.tokens + match.half_tokens;
  }

  PagePool full, windowed, slots;
  PrefixTree tree;
};

TEST(a_prefix_matches_to_the_token) {
  Fixture f;
  f.put({1, 2, 3, 4, 5, 6, 7, 8, 9, 10});
  CHECK_EQ(f.matched({1, 2, 3, 4, 5, 6, 7, 8, 9, 10}), 10);
  CHECK_EQ(f.matched({1, 2, 3, 4, 5, 6, 7, 8, 9, 11}), 9);  // the match ends inside a half page
  CHECK_EQ(f.matched({1, 2, 3, 4, 5, 6, 0}), 6);            // the match ends inside a whole page
  CHECK_EQ(f.matched({1, 2, 3}), 3);
  CHECK_EQ(f.matched({2, 2, 3, 4}), 0);
  CHECK_EQ(f.matched({}), 0);
}

TEST(of_several_ways_on_the_longest_is_taken) {
  Fixture f;
  for (Ints text : {Ints{1, 2, 3, 4, 5, 5, 5, 5}, Ints{1, 2, 3, 4, 5, 6, 5, 5},
                    Ints{1, 2, 3, 4, 5, 6, 7, 8}, Ints{1, 2, 3, 4, 9}}) {
    f.put(text);
  }
  CHECK_EQ(f.matched({1, 2, 3, 4, 5, 6, 7, 9}), 7);
  CHECK_EQ(f.matched({1, 2, 3, 4, 5, 6, 5, 9}), 7);
  CHECK_EQ(f.matched({1, 2, 3, 4, 5, 5, 9, 9}), 6);
  CHECK_EQ(f.matched({1, 2, 3, 4, 9, 9, 9, 9}), 5);
}

TEST(salts_are_kept_apart) {
  Fixture f;
  f.put({1, 2, 3, 4}, 7);
  CHECK_EQ(f.matched({1, 2, 3, 4}, 7), 4);
  CHECK_EQ(f.matched({1, 2, 3, 4}, 8), 0);
}

TEST(a_root_goes_with_its_last_page) {
  Fixture f;
  for (uint64_t salt = 1; salt < 100; ++salt) CHECK_EQ(f.matched({1, 2, 3, 4}, salt), 0);
  CHECK_EQ(f.tree.roots(), 0u);  // a lookup creates no root
  f.put({1, 2, 3, 4, 5, 6}, 7);
  f.put({1, 2, 3, 4}, 8);
  CHECK_EQ(f.tree.roots(), 2u);
  PrefixNode* pinned = f.tree.root({9, 0, false});
  f.tree.pin(*pinned);
  while (f.tree.evict(0)) {
  }
  CHECK_EQ(f.tree.roots(), 1u);
  CHECK(f.tree.find_root({9, 0, false}) == pinned);
  f.tree.unpin(*pinned);
  CHECK_EQ(f.tree.roots(), 0u);
}

TEST(the_least_recently_used_leaf_goes_first) {
  Fixture f;
  f.put({1, 1, 1, 1, 2, 2, 2, 2});
  f.put({1, 1, 1, 1, 3, 3, 3, 3});
  f.put({1, 1, 1, 1, 2, 2, 2, 2});  // a second use makes this prefix the most recently used
  CHECK(f.tree.evict(0));
  CHECK_EQ(f.matched({1, 1, 1, 1, 3, 3, 3, 3}), 4);
  CHECK_EQ(f.matched({1, 1, 1, 1, 2, 2, 2, 2}), 8);
  CHECK(f.tree.evict(0));
  CHECK(f.tree.evict(0));
  CHECK(!f.tree.evict(0));
  CHECK_EQ(f.full.available(), 16);
}

TEST(what_a_sequence_holds_stays) {
  Fixture f;
  PrefixNode* node = f.put({1, 1, 1, 1});
  f.full.share(node->pages[0]);
  f.put({2, 2, 2, 2});
  CHECK_EQ(f.tree.idle(0), 1);
  CHECK(f.tree.evict(0));
  CHECK(!f.tree.evict(0));
  CHECK_EQ(f.matched({1, 1, 1, 1}), 4);
  f.full.release(node->pages[0]);
  CHECK(f.tree.evict(0));
}

TEST(a_full_page_takes_the_place_of_its_half) {
  Fixture f;
  f.put({1, 2});
  f.put({1, 2, 3, 4});
  CHECK_EQ(f.full.available(), 15);
  CHECK_EQ(f.matched({1, 2, 3, 4}), 4);
}

TEST(a_page_behind_the_window_may_go_alone) {
  Fixture f(4);  // a row attends to itself and 3 tokens before it
  PrefixNode* node = f.put({1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3});
  CHECK(f.tree.evict(1));  // frees the first page
  CHECK_EQ(node->parent->parent->pages[1], -1);
  CHECK_EQ(f.matched({1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3}), 12);
  CHECK_EQ(f.matched({1, 1, 1, 1, 2, 2, 2, 2, 9}), 8);
  // Rows after this prefix would attend to the evicted page.
  CHECK_EQ(f.matched({1, 1, 1, 1, 2, 9}), 0);
  CHECK_EQ(f.full.available(), 13);
}

TEST(a_recurrent_state_matches_where_it_was_kept) {
  Fixture f(0, true);
  PrefixNode* node = f.put({1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3});
  CHECK_EQ(f.matched({1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3}), 0);
  f.tree.give_snapshot(*node->parent, f.slots.take());
  CHECK_EQ(f.matched({1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3}), 8);
  CHECK_EQ(f.matched({1, 1, 1, 1, 2, 2, 2, 9}), 0);
  CHECK(f.tree.evict_snapshot());
  CHECK(!f.tree.evict_snapshot());
  CHECK_EQ(f.tree.roots(), 1u);  // the root stays, because its pages still exist
  CHECK_EQ(f.slots.available(), 4);
}

TEST(clearing_leaves_pages_in_use) {
  Fixture f;
  PrefixNode* pinned = f.put({1, 1, 1, 1});
  f.full.share(pinned->pages[0]);
  f.put({1, 1, 1, 1, 2, 2, 2, 2});
  f.put({3, 3, 3, 3, 4});
  f.tree.clear();
  CHECK_EQ(f.matched({1, 1, 1, 1, 2, 2, 2, 2}), 4);
  CHECK_EQ(f.matched({3}), 0);
  CHECK_EQ(f.full.available(), 15);
  f.full.release(pinned->pages[0]);
}

}  // namespace
}  // namespace wherry
