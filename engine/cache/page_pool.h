// The cache's pages: who owns which, and how many are left. No locks: the engine's guard it.
#ifndef WHERRY_ENGINE_CACHE_PAGE_POOL_H_
#define WHERRY_ENGINE_CACHE_PAGE_POOL_H_

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
  // Another owner of a page in use.
  void share(int32_t page);
  // Gives up one reference; the last one frees the page.
  void release(int32_t page);

 private:
  std::vector<int32_t> references_;  // of each page
  std::vector<int32_t> free_;        // last one goes first: it is the likeliest in the CPU's caches
};

// The pages of one sequence in order; returned to the pool when it goes.
class Sequence {
 public:
  Sequence(PagePool& pool, int32_t page_size) : pool_(pool), page_size_(page_size) {}
  ~Sequence() { clear(); }
  Sequence(const Sequence&) = delete;
  Sequence& operator=(const Sequence&) = delete;

  // Takes pages until `tokens` fit. The caller has made sure that there are enough.
  void reserve(int64_t tokens);
  void clear();

  const std::vector<int32_t>& pages() const { return pages_; }

 private:
  PagePool& pool_;
  int32_t page_size_;
  std::vector<int32_t> pages_;
};

inline int64_t pages_for(int64_t tokens, int64_t page_size) {
  return (tokens + page_size - 1) / page_size;
}

}  // namespace wherry

#endif  // WHERRY_ENGINE_CACHE_PAGE_POOL_H_
