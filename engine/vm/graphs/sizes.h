// Pads the page tables of decode steps, so that their sizes repeat and CUDA graphs can be replayed.
#ifndef WHERRY_ENGINE_VM_GRAPHS_SIZES_H_
#define WHERRY_ENGINE_VM_GRAPHS_SIZES_H_

#include <cstdint>
#include <vector>

#include "model/model.h"
#include "vm/graphs/step_graphs.h"

namespace wherry {

// Whether the batch only decodes: each sequence has one row, and each row a result.
bool only_decodes(const Batch& batch);

// Rounds a number of pages up to a multiple of 16, or of 32, 64, ... for larger numbers: at most
// 1/4 more from 64 on.
int64_t rounded_pages(int64_t pages);

// Pads each group's page table to the rounded size, or to its capacity `most` if that is less. The
// last sequence gets the padding: page ids of -1 after its own pages, which no row reads.
Batch with_rounded_pages(const Batch& batch, const std::vector<int64_t>& most);

// Returns the key of a step's graph: the sizes of all arrays of the batch, and `drawn`, whether the
// device samples tokens rather than takes the most likely ones.
StepGraphs::Key key_of(const Batch& batch, bool drawn);

}  // namespace wherry

#endif  // WHERRY_ENGINE_VM_GRAPHS_SIZES_H_
