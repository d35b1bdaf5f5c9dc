#include "cache/chain_key.h"

#include <set>
#include <unordered_set>
#include <vector>

#include "testing/testing.h"

namespace wherry {
namespace {

ChainRoot plain() { return {"float16 [2, 4, 16, 8]", "model", 0, 0}; }

TEST(a_root_depends_on_all_of_its_fields) {
  std::vector<ChainRoot> roots(6, plain());
  roots[1].layout = "float32 [2, 4, 16, 8]";
  roots[2].model = "another model";
  roots[3].salt = 1;
  roots[4].adapter = 1;
  // Moving the boundary between layout and model must change the key.
  roots[5].layout += roots[5].model[0];
  roots[5].model.erase(0, 1);
  std::set<std::string> names;
  for (const ChainRoot& root : roots) names.insert(ChainKey::root(root).hex());
  CHECK_EQ(names.size(), roots.size());
  CHECK(ChainKey::root(plain()) == ChainKey::root(plain()));
}

TEST(a_page_depends_on_its_tokens_and_on_all_before_it) {
  ChainKey root = ChainKey::root(plain());
  const int32_t a[] = {1, 2, 3, 4}, b[] = {1, 2, 3, 5};
  ChainKey first = root.child(a, 4), other = root.child(b, 4);
  std::unordered_set<ChainKey, ChainKeyHash> keys{root,
                                                  first,
                                                  other,
                                                  root.child(a, 3),
                                                  root.child(nullptr, 0),
                                                  first.child(a, 4),
                                                  other.child(a, 4)};
  CHECK_EQ(keys.size(), 7u);
  CHECK(root.child(a, 4) == first);
  CHECK_EQ(root.depth, 0);
  CHECK_EQ(first.child(a, 4).depth, 2);
}

// Users have files with these names, so a change of the names needs a new version in chain_key.cc.
TEST(names_stay_the_same) {
  ChainKey root = ChainKey::root(plain());
  const int32_t tokens[] = {0, 1, 65536, 151643};
  CHECK_EQ(root.hex(), "a32f0f4bef8b6be7b812e859f9b1e10ea348f680602ac008104a6f9e6ad4a1df");
  CHECK_EQ(root.child(tokens, 4).hex(),
           "1bb49fc833b8bf010f42e1b8ca4965c8db80c6832aa8de4ed3563f6b48cacfce");
}

}  // namespace
}  // namespace wherry
