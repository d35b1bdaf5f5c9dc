#include "cache/page_pool.h"

#include "support/error.h"

namespace wherry {

PagePool::PagePool(int32_t pages)
    : references_(static_cast<size_t>(pages), 0), in_tree_(static_cast<size_t>(pages), 0) {
  free_.reserve(static_cast<size_t>(pages));  // reserved now, because release() must not allocate
  for (int32_t page = pages; page-- > 0;) free_.push_back(page);
}

void PagePool::count(int32_t page, int by) {
  auto i = static_cast<size_t>(page);
  if (in_tree_[i] && references_[i] == 1) idle_ += by;
}

int32_t PagePool::take() {
  if (free_.empty()) throw Error(WHERRY_INTERNAL, "the cache has no free page left to take");
  int32_t page = free_.back();
  free_.pop_back();
  references_[static_cast<size_t>(page)] = 1;
  return page;
}

void PagePool::share(int32_t page) {
  int32_t& references = references_.at(static_cast<size_t>(page));
  if (references == 0) {
    throw Error(WHERRY_INTERNAL, concat("page ", page, " is shared but not in use"));
  }
  count(page, -1);
  ++references;
}

void PagePool::release(int32_t page) {
  int32_t& references = references_.at(static_cast<size_t>(page));
  if (references == 0) throw Error(WHERRY_INTERNAL, concat("page ", page, " is released twice"));
  if (--references == 0) free_.push_back(page);
  count(page, 1);
}

void PagePool::share_with_tree(int32_t page) {
  share(page);
  in_tree_[static_cast<size_t>(page)] = 1;
}

void PagePool::release_from_tree(int32_t page) {
  count(page, -1);
  in_tree_[static_cast<size_t>(page)] = 0;
  release(page);
}

}  // namespace wherry
