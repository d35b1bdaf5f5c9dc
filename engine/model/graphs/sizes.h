// Which steps come again with the same sizes, and how their page tables are made to.
#ifndef WHERRY_ENGINE_MODEL_GRAPHS_SIZES_H_
#define WHERRY_ENGINE_MODEL_GRAPHS_SIZES_H_

#include <cstdint>
#include <vector>

#include "model/graphs/step_graphs.h"
#include "model/model.h"

namespace wherry {

// Each sequence has a row, and each row results.
bool only_decodes(const Batch& batch);

// At least `pages`, at most a quarter more from 64 on: multiples of 16, of more pages of 32, 64 ...
int64_t rounded_pages(int64_t pages);

// The batch with so many page ids in each group's table, as far as `most` of the group allow: the
// last sequence owns pages -1 behind its own, which no row of it reaches.
Batch with_rounded_pages(const Batch& batch, const std::vector<int64_t>& most);

// The sizes of all arrays of a batch. `drawn`: whether its choices are more than the most likely
// token.
StepGraphs::Key key_of(const Batch& batch, bool drawn);

}  // namespace wherry

#endif  // WHERRY_ENGINE_MODEL_GRAPHS_SIZES_H_
