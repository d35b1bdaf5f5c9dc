// The images of a step: which one the tower computes next, and which rows have features.
#include <algorithm>
#include <set>

#include "scheduling/scheduler.h"

namespace wherry {

// Returns the image that must be computed before the request's next row; null if there is none.
const ImageSpan* Scheduler::image_to_see(const Request& request) const {
  const ImageSpan* image = request.next_image();
  return image == nullptr || images_.has(image->tile_name) ? nullptr : image;
}

// Returns the entry of a step that computes an image, that of the first request that needs one. It
// takes no room from images that other requests' next rows belong to, unless only younger requests
// need these: so the first request always advances. Returns no request if there is no room.
PlannedRows Scheduler::seeing(const RequestQueues& queues) const {
  const auto& active = queues.active;
  auto match = std::find_if(active.begin(), active.end(), [this](const Request* request) {
    return entry_of(*request) == Entry::kSee;
  });
  if (match == active.end()) return {nullptr, 0};
  PlannedRows entry(*match, 0);
  entry.image = image_to_see(**match);
  auto names = [](auto begin, auto end) {
    std::set<int32_t> names;
    for (auto it = begin; it != end; ++it) {
      if (const ImageSpan* image = (*it)->next_image()) names.insert(image->tile_name);
    }
    return names;
  };
  const int64_t rows = entry.image->features;
  entry.image_first = images_.find_room(rows, names(active.begin(), active.end()));
  if (entry.image_first < 0) {
    entry.image_first = images_.find_room(rows, names(active.begin(), match));
  }
  if (entry.image_first < 0) entry.request = nullptr;
  return entry;
}

// Returns how many of the request's next `rows` rows come before the next image to compute.
int64_t Scheduler::rows_with_images(const Request& request, int64_t rows) const {
  const int64_t end = request.computed + rows;
  const ImageSpan* image = request.image_from(request.computed);
  while (image != nullptr && image->first < end && images_.has(image->tile_name)) {
    image = request.image_from(image->end());
  }
  return image != nullptr && image->first < end
             ? std::max<int64_t>(0, image->first - request.computed)
             : rows;
}

// Cuts a chunk of `rows` rows, so that it does not end inside an image. The image to which the
// first row belongs is never cut: its rows go beyond what the time allows, if the step has no other
// prompt, or wait for a step that has room.
int64_t Scheduler::rows_of_complete_images(const Request& request, int64_t rows,
                                           const Left& left) const {
  const int64_t begin = request.computed, end = begin + rows;
  const ImageSpan* image = request.image_from(end);
  if (image == nullptr || image->first >= end) image = nullptr;
  if (image != nullptr && image->first > begin) return image->first - begin;
  if (rows == 0) image = request.next_image();
  if (image == nullptr) return rows;
  const int64_t needed = image->end() - begin;
  const bool first = left.work.rows == left.running.rows;
  const bool fits = needed <= left.rows && request.results_of(needed) <= left.results;
  return first && fits && images_.has(image->tile_name) ? needed : 0;
}

// Whether the first prompt has come to an image that has no room in a step next to the rows of
// running requests. The step then leaves these out, but not two steps in a row.
bool Scheduler::leaves_out_running(const RequestQueues& queues, const Left& left) const {
  int64_t running = 0;
  for (const Request* request : queues.active) {
    if (request->state == RequestState::kRunning) running += request->pending();
  }
  for (const Request* request : queues.active) {
    const bool prompt = request->state == RequestState::kPrefilling && request->on_disk == 0;
    if (!prompt || !belongs(*request)) continue;
    const ImageSpan* image = request->next_image();
    if (image == nullptr) return false;
    const int64_t needed = image->end() - request->computed;
    return needed > left.rows - running ||
           request->results_of(needed) > left.results - left.running.rows;
  }
  return false;
}

// Returns the rows of image features of the request's next `rows` rows; nothing if all are text.
std::vector<int32_t> Scheduler::use_images(const Request& request, int64_t rows) {
  std::vector<int32_t> result;
  const int64_t begin = request.computed, end = begin + rows;
  const ImageSpan* image = request.image_from(begin);
  for (; image != nullptr && image->first < end; image = request.image_from(image->end())) {
    result.resize(static_cast<size_t>(rows), -1);
    const int64_t first = images_.use(image->tile_name) + image->first_feature;
    for (int64_t i = std::max(begin, image->first); i < std::min(end, image->end()); ++i) {
      result[static_cast<size_t>(i - begin)] = static_cast<int32_t>(first + i - image->first);
    }
  }
  return result;
}

}  // namespace wherry
