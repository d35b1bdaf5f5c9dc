#include "scheduling/request.h"

#include <algorithm>

namespace wherry {

namespace {

int64_t output_limit(const SamplingParams& params, int64_t prompt, int64_t context) {
  int64_t rest = context - prompt;
  return params.max_tokens == 0 ? rest : std::min<int64_t>(params.max_tokens, rest);
}

std::unique_ptr<RequestMask> mask_of(const wherry_params& params, int64_t vocab) {
  if (params.mask == nullptr) return nullptr;
  return std::make_unique<RequestMask>(*params.mask, vocab);
}

}  // namespace

Request::Request(uint64_t id, std::vector<int32_t> prompt, const wherry_params& given,
                 int64_t vocab, int64_t context)
    : id(id),
      mask(mask_of(given, vocab)),
      params(checked_params(given, vocab)),
      prompt_size(static_cast<int64_t>(prompt.size())),
      max_output(output_limit(params, prompt_size, context)),
      priority(given.priority),
      user(given.user),
      space{given.salt, given.adapter, given.embed != 0},
      embed(given.embed != 0),
      source(given.source, given.source + given.n_source),
      tokens(std::move(prompt)),
      sampler_state(params, tokens),
      lookup(std::vector<int32_t>(given.prediction, given.prediction + given.n_prediction)),
      drafts(given.max_drafts) {}

bool Request::wants_row(int64_t position) const {
  return position + 1 == static_cast<int64_t>(tokens.size()) || wants_logprob_of(position + 1);
}

int64_t Request::results_of(int64_t rows) const {
  int64_t results = 0;
  for (int64_t i = 0; i < rows; ++i) results += wants_row(computed + i);
  return results;
}

const ImageSpan* Request::image_from(int64_t position) const {
  auto match =
      std::upper_bound(images.begin(), images.end(), position,
                       [](int64_t at, const ImageSpan& image) { return at < image.end(); });
  return match == images.end() ? nullptr : &*match;
}

const ImageSpan* Request::next_image() const {
  const ImageSpan* image = image_from(computed);
  return image != nullptr && image->first <= computed ? image : nullptr;
}

std::array<int32_t, 3> Request::rope_position(int64_t position) const {
  auto at = [](int64_t time, int64_t height, int64_t width) {
    return std::array<int32_t, 3>{static_cast<int32_t>(time), static_cast<int32_t>(height),
                                  static_cast<int32_t>(width)};
  };
  const ImageSpan* image = image_from(position);
  if (image != nullptr && image->first <= position && image->grid_columns > 0) {
    const int64_t begin = image->first + image->rope_delta, row = position - image->first;
    return at(begin, begin + row / image->grid_columns, begin + row % image->grid_columns);
  }
  const int64_t text = position + (image != nullptr ? image->rope_delta : rope_delta());
  return at(text, text, text);
}

int64_t Request::rope_delta() const { return images.empty() ? 0 : images.back().delta_after(); }

int64_t Request::last_visible(int64_t position) const {
  const ImageSpan* image = image_from(position);
  return image != nullptr && image->first <= position ? image->end() - 1 : position;
}

int64_t Request::text_size() const { return images.empty() ? INT64_MAX : images[0].first; }

void Request::name_images(ImageNames& names) {
  if (images.empty()) return;
  keys_ = tokens;
  for (ImageSpan& image : images) {
    image.tile_name = names.name({image.digest, 0, image.features, 0, 0}, image.tile);
    image.name = names.name(
        {image.digest, image.first_feature, image.rows, image.grid_rows, image.grid_columns});
    std::fill_n(keys_.begin() + image.first, image.rows, image.name);
  }
}

wherry_finish Request::append(const Sample& sample) { return append(sample.token, &sample); }

wherry_finish Request::append(int32_t token) { return append(token, nullptr); }

wherry_finish Request::append(int32_t token, const Sample* sample) {
  tokens.push_back(token);
  if (!keys_.empty()) keys_.push_back(token);
  sampler_state.accept(params, tokens, sample);
  if (params.stop_ids.count(token) != 0) return WHERRY_STOP;
  return output_size() >= max_output ? WHERRY_LENGTH : WHERRY_RUNNING;
}

}  // namespace wherry
