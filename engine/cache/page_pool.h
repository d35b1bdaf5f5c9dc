// The pages of one group: reference counts and free pages. The engine's locks protect it.
#ifndef WHERRY_ENGINE_CACHE_PAGE_POOL_H_
#define WHERRY_ENGINE_CACHE_PAGE_POOL_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace wherry {

class PagePool {
 public:
  explicit PagePool(int32_t pages);

  int32_t total() const { return static_cast<int32_t>(references_.size()); }
  int32_t available() const { return static_cast<int32_t>(free_.size()); }
  const std::vector<int32_t>& free_pages() const { return free_; }

  // Allocates a free page with one reference; a free page must exist.
  int32_t take();
  int32_t references(int32_t page) const { return references_[static_cast<size_t>(page)]; }

  // Adds a reference to a page in use.
  void share(int32_t page);
  // Drops a reference; the last one frees the page.
  void release(int32_t page);

  // Add and drop the prefix tree's reference to a page, which idle() counts.
  void share_with_tree(int32_t page);
  void release_from_tree(int32_t page);
  // Returns the number of pages whose only reference is the prefix tree's.
  int32_t idle() const { return idle_; }

 private:
  void count(int32_t page, int by);  // adds `by` to idle_ if the page is idle

  std::vector<int32_t> references_;  // [pages]
  std::vector<char> in_tree_;        // [pages] whether the prefix tree has a reference
  int32_t idle_ = 0;
  std::vector<int32_t> free_;  // last in, first out: the page freed last is most likely in L1 or L2
};

inline int64_t pages_for(int64_t tokens, int64_t page_size) {
  return (tokens + page_size - 1) / page_size;
}

}  // namespace wherry

#endif  // WHERRY_ENGINE_CACHE_PAGE_POOL_H_
