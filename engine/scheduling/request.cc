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

int64_t Request::text_size() const { return images.empty() ? INT64_MAX : images[0].first; }

void Request::name_images(ImageNames& names) {
  if (images.empty()) return;
  keys_ = tokens;
  for (ImageSpan& image : images) {
    image.name = names.name(image.digest, image.rows, image.tile);
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
