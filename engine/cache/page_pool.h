// The cache's pages: who owns which, and how many are left. No locks: the engine's guard it.
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

  // A free page with one reference. There must be one.
  int32_t take();
  int32_t references(int32_t page) const { return references_[static_cast<size_t>(page)]; }

  // Another owner of a page in use.
  void share(int32_t page);
  // Gives up one reference; the last one frees the page.
  void release(int32_t page);

  // The same two for the prefix tree, so that its pages are counted.
  void keep(int32_t page);
  void drop(int32_t page);
  // Pages that the prefix tree alone holds.
  int32_t idle() const { return idle_; }

 private:
  void count(int32_t page, int by);  // that page's part in idle_

  std::vector<int32_t> references_;  // of each page
  std::vector<char> kept_;           // whether one of them is the tree's
  int32_t idle_ = 0;
  std::vector<int32_t>
      free_;  // last in, first out: the most recent page is most likely in the CPU's caches
};

inline int64_t pages_for(int64_t tokens, int64_t page_size) {
  return (tokens + page_size - 1) / page_size;
}

}  // namespace wherry

#endif  // WHERRY_ENGINE_CACHE_PAGE_POOL_H_
