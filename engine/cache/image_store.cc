#include "cache/image_store.h"

#include <algorithm>

namespace wherry {

int64_t ImageStore::find_room(int64_t rows, const std::set<int32_t>& kept) const {
  int64_t best = -1;
  uint64_t best_used = 0;
  // Tries the place at `first`. Its age is that of the tile there that was used last.
  auto consider = [&](int64_t first) {
    if (first + rows > rows_) return;
    uint64_t used = 0;
    auto it = places_.upper_bound(first);
    if (it != places_.begin()) --it;  // this tile may begin before the place and reach into it
    for (; it != places_.end() && it->first < first + rows; ++it) {
      const Tile& tile = tiles_.at(it->second);
      if (tile.first + tile.rows <= first) continue;
      if (kept.count(it->second) != 0) return;
      used = std::max(used, tile.used);
    }
    if (best >= 0 && used >= best_used) return;
    best = first;
    best_used = used;
  };
  consider(0);
  for (const auto& [first, name] : places_) {
    consider(first);
    consider(first + tiles_.at(name).rows);
  }
  return best;
}

void ImageStore::place(int32_t name, int64_t first, int64_t rows) {
  drop(name);
  std::vector<int32_t> evicted;
  for (const auto& [other, tile] : tiles_) {
    if (tile.first < first + rows && first < tile.first + tile.rows) evicted.push_back(other);
  }
  for (int32_t other : evicted) drop(other);
  tiles_[name] = {first, rows, false, ++clock_};
  places_[first] = name;
}

void ImageStore::complete(int32_t name) {
  auto match = tiles_.find(name);
  if (match != tiles_.end()) match->second.complete = true;
}

void ImageStore::drop(int32_t name) {
  auto match = tiles_.find(name);
  if (match == tiles_.end()) return;
  places_.erase(match->second.first);
  tiles_.erase(match);
}

void ImageStore::clear(const std::set<int32_t>& kept) {
  std::vector<int32_t> evicted;
  for (const auto& [name, tile] : tiles_) {
    if (kept.count(name) == 0) evicted.push_back(name);
  }
  for (int32_t name : evicted) drop(name);
}

int64_t ImageStore::use(int32_t name) {
  if (!has(name)) return -1;
  Tile& tile = tiles_.at(name);
  tile.used = ++clock_;
  return tile.first;
}

bool ImageStore::has(int32_t name) const {
  auto match = tiles_.find(name);
  return match != tiles_.end() && match->second.complete;
}

std::vector<std::pair<int64_t, int64_t>> ImageStore::free_rows() const {
  std::vector<std::pair<int64_t, int64_t>> free;
  int64_t end = 0;
  auto add = [&](int64_t next) {
    if (next > end) free.emplace_back(end, next - end);
  };
  for (const auto& [first, name] : places_) {
    add(first);
    end = first + tiles_.at(name).rows;
  }
  add(rows_);
  return free;
}

}  // namespace wherry
