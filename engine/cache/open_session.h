// Opens a session whose size fits a cache and the steps over it.
#ifndef WHERRY_ENGINE_CACHE_OPEN_SESSION_H_
#define WHERRY_ENGINE_CACHE_OPEN_SESSION_H_

#include <algorithm>
#include <memory>

#include "cache/kv_cache.h"
#include "model/model.h"

namespace wherry {

struct StepLimits {
  int64_t rows, sequences, logit_rows;
  int64_t context;         // maximum tokens of a sequence
  int64_t image_rows = 0;  // rows of image features
};

inline std::unique_ptr<Session> open_session(const Model& model, const KvCache& cache,
                                             const StepLimits& step) {
  SessionLimits limits;
  limits.pages = cache.pages();
  for (size_t group = 0; group < cache.groups(); ++group) {
    // The table also has entries behind a window, and a prefix counts once per sequence.
    limits.page_ids.push_back(step.sequences * pages_for(step.context, cache.page_size()));
  }
  limits.rows = step.rows;
  limits.sequences = step.sequences;
  limits.logit_rows = step.logit_rows;
  limits.slots = cache.slots();
  limits.image_rows = step.image_rows;
  return model.open(limits);
}

}  // namespace wherry

#endif  // WHERRY_ENGINE_CACHE_OPEN_SESSION_H_
