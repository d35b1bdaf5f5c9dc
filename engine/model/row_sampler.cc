#include "model/row_sampler.h"

#include <optional>
#include <utility>

namespace wherry {

Sample RowSampler::sample(const SamplingInput& input, Session& session, const Rows& rows, int64_t i,
                          const uint32_t* mask) {
  if (!rows.candidates.empty() && mask == nullptr) {
    std::optional<Sample> sample =
        candidates_.sample(input, rows.candidates[static_cast<size_t>(i)]);
    if (sample) {
      ++counts_.candidates;
      return std::move(*sample);
    }
  }
  ++counts_.full_rows;
  return full_row_.sample(input, session.row(i), rows.columns, mask);
}

bool RowSampler::needs_row(const SamplingInput& input, const Rows& rows, int64_t i, bool masked) {
  if (rows.candidates.empty() || masked) return true;
  return !candidates_.sample(input, rows.candidates[static_cast<size_t>(i)]).has_value();
}

}  // namespace wherry
