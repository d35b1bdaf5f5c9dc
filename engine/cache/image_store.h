// The store of image features: which rows of the session's tensor have the features of which tile.
// It does accounting on the host only.
#ifndef WHERRY_ENGINE_CACHE_IMAGE_STORE_H_
#define WHERRY_ENGINE_CACHE_IMAGE_STORE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

namespace wherry {

// Features of a tile are consecutive rows. A tile without room takes the place of those that were
// used least recently. Tiles are called by their names (ImageNames), those of the
// complete tile.
class ImageStore {
 public:
  explicit ImageStore(int64_t rows) : rows_(rows) {}

  // Returns the first row where `rows` rows are free or have tiles that are not among `kept`; -1 if
  // there is no such place. Among places, the one is chosen whose tiles were used least recently.
  int64_t find_room(int64_t rows, const std::set<int32_t>& kept) const;
  // Gives the rows from `first` on to a tile whose features are about to be computed; evicts the
  // tiles there, and an earlier place of this one.
  void place(int32_t name, int64_t first, int64_t rows);
  // The features have been computed. Nothing happens if the tile has been evicted.
  void complete(int32_t name);
  void drop(int32_t name);  // evicts a tile if it is there
  // Evicts the tiles that are not among `kept`.
  void clear(const std::set<int32_t>& kept = {});

  // Returns the first row of a tile's features, and marks it as used; -1 if they are not there.
  int64_t use(int32_t name);
  bool has(int32_t name) const;  // whether the tile's features are there

  // Returns the free places: first rows and numbers of rows.
  std::vector<std::pair<int64_t, int64_t>> free_rows() const;
  int64_t rows() const { return rows_; }
  size_t tiles() const { return tiles_.size(); }

 private:
  struct Tile {
    int64_t first, rows;
    bool complete;
    uint64_t used;  // time of the last use, by the store's clock
  };

  int64_t rows_;
  std::map<int32_t, Tile> tiles_;      // by name
  std::map<int64_t, int32_t> places_;  // names by first row
  uint64_t clock_ = 0;
};

}  // namespace wherry

#endif  // WHERRY_ENGINE_CACHE_IMAGE_STORE_H_
