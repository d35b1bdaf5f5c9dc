#include "cache/page_pool.h"

#include "support/error.h"

namespace wherry {

PagePool::PagePool(int32_t pages) : references_(static_cast<size_t>(pages), 0) {
  free_.reserve(static_cast<size_t>(pages));  // release() must not allocate
  for (int32_t page = pages; page-- > 0;) free_.push_back(page);
}

int32_t PagePool::take() {
  if (free_.empty()) throw Error(WHERRY_INTERNAL, "the cache has no free page left to take");
  int32_t page = free_.back();
  free_.pop_back();
  references_[static_cast<size_t>(page)] = 1;
  return page;
}

void PagePool::share(int32_t page) {
  int32_t& count = references_.at(static_cast<size_t>(page));
  if (count == 0) throw Error(WHERRY_INTERNAL, concat("page ", page, " is shared but not in use"));
  ++count;
}

void PagePool::release(int32_t page) {
  int32_t& count = references_.at(static_cast<size_t>(page));
  if (count == 0) throw Error(WHERRY_INTERNAL, concat("page ", page, " is released twice"));
  if (--count == 0) free_.push_back(page);
}

void Sequence::reserve(int64_t tokens) {
  auto wanted = static_cast<size_t>(pages_for(tokens, page_size_));
  pages_.reserve(wanted);  // before take(), so that no page is lost if this throws
  while (pages_.size() < wanted) pages_.push_back(pool_.take());
}

void Sequence::clear() {
  for (int32_t page : pages_) pool_.release(page);
  pages_.clear();
}

}  // namespace wherry
