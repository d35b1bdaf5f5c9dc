#include "scheduling/request.h"

#include <limits>

#include "testing/fake_images.h"
#include "testing/testing.h"

namespace wherry {
namespace {

wherry_params defaults() {
  wherry_params params;
  wherry_params_init(&params);
  return params;
}

TEST(defaults_are_accepted) {
  SamplingParams params = checked_params(defaults(), 100);
  CHECK_EQ(params.temperature, 1.0f);
  CHECK_EQ(params.top_p, 1.0f);
  CHECK(!params.penalises());
}

TEST(every_wrong_field_is_named) {
  wherry_params params = defaults();
  params.max_tokens = -1;
  params.temperature = std::numeric_limits<float>::quiet_NaN();
  params.top_p = 0;
  params.top_k = -1;
  params.min_p = 1;
  params.repetition_penalty = 0;
  params.presence_penalty = std::numeric_limits<float>::infinity();
  params.frequency_penalty = -std::numeric_limits<float>::infinity();
  params.top_logprobs = 21;
  params.n_stop_ids = 1;
  params.n_bias = 1;
  std::string text = ERROR_OF(WHERRY_INVALID_ARGUMENT, checked_params(params, 100));
  for (const char* name :
       {"max_tokens is -1", "temperature", "top_p is 0", "top_k is -1", "min_p is 1",
        "repetition_penalty is 0", "presence_penalty", "frequency_penalty", "top_logprobs is 21",
        "stop_ids is null", "bias_values is null"}) {
    CHECK_CONTAINS(text, name);
  }
}

TEST(a_bias_must_be_a_number_for_a_token) {
  wherry_params params = defaults();
  const int32_t ids[] = {100, 1};
  const float values[] = {0, std::numeric_limits<float>::quiet_NaN()};
  params.bias_ids = ids;
  params.bias_values = values;
  params.n_bias = 2;
  std::string text = ERROR_OF(WHERRY_INVALID_ARGUMENT, checked_params(params, 100));
  CHECK_CONTAINS(text, "token 100; the vocabulary has 100");
  CHECK_CONTAINS(text, "for the token 1;");
}

TEST(limits_and_pages) {
  wherry_params params = defaults();
  params.max_tokens = 5;
  Request request(1, {1, 2, 3, 4}, params, 10, 100);
  CHECK_EQ(request.max_output, 5);
  CHECK_EQ(request.most_cached(), 8);  // the last output token is never computed
  params.max_tokens = 0;
  Request open_end(2, {1, 2, 3, 4}, params, 10, 100);
  CHECK_EQ(open_end.max_output, 96);
}

TEST(a_stop_id_wins_over_the_length) {
  wherry_params params = defaults();
  const int32_t stop = 7;
  params.max_tokens = 2;
  params.stop_ids = &stop;
  params.n_stop_ids = 1;
  Request request(1, {7}, params, 10, 100);
  CHECK_EQ(request.append(3), WHERRY_RUNNING);
  CHECK_EQ(request.append(7), WHERRY_STOP);
  Request other(2, {7}, params, 10, 100);
  CHECK_EQ(other.append(3), WHERRY_RUNNING);
  CHECK_EQ(other.append(3), WHERRY_LENGTH);
}

TEST(names_of_images_stand_in_the_place_of_their_tokens) {
  std::vector<int32_t> prompt{1, 2};
  FakeImages images;
  images.append(prompt, 3, 1);
  prompt.push_back(3);
  images.append(prompt, 2, 2);
  images.append(prompt, 3, 1);
  wherry_params params;
  wherry_params_init(&params);
  images.set(params);
  Request request(1, prompt, params, 100, 100);
  CHECK(request.keys() == prompt);
  CHECK_EQ(request.text_size(), INT64_MAX);
  request.images = image_spans(params);
  ImageNames names;
  request.name_images(names);
  CHECK_EQ(request.text_size(), 2);
  const int32_t a = request.images[0].name, b = request.images[1].name;
  CHECK(a < 0 && b < 0 && a != b);
  CHECK((request.keys() == std::vector<int32_t>{1, 2, a, a, a, 3, b, b, a, a, a}));
  CHECK(request.images[0].tile == request.images[2].tile);
  request.append(9);
  CHECK_EQ(request.keys().back(), 9);
  CHECK(request.tokens[2] == kFakePlaceholder && request.tokens.size() == request.keys().size());
  const int64_t next[] = {-1, -1, 0, 0, 0, -1, 1, 1, 2, 2, 2, -1};  // the image of each row
  for (int64_t i = 0; i < 12; ++i) {
    request.computed = i;
    const ImageSpan* image = next[i] < 0 ? nullptr : &request.images[static_cast<size_t>(next[i])];
    CHECK(request.next_image() == image);
  }
  CHECK(request.image_from(0) == &request.images[0]);
  CHECK(request.image_from(5) == &request.images[1]);
  CHECK(request.image_from(11) == nullptr);
}

TEST(parts_of_a_tile_share_its_pixels) {
  std::vector<int32_t> prompt{1};
  FakeImages images;
  images.append_parts(prompt, 2, 3, 1, 9);
  images.append(prompt, 3, 1);
  wherry_params params;
  wherry_params_init(&params);
  images.set(params);
  Request request(1, prompt, params, 100, 100);
  request.images = image_spans(params);
  const std::vector<ImageSpan>& spans = request.images;
  CHECK(spans[0].tile == spans[1].tile);
  CHECK(spans[0].tile != spans[2].tile);
  CHECK(spans[0].features == 6 && spans[1].first_feature == 3);
  ImageNames names;
  request.name_images(names);
  CHECK(spans[0].tile == spans[1].tile);
  CHECK_EQ(spans[0].tile_name, spans[1].tile_name);
  CHECK(spans[0].name != spans[1].name);
  CHECK(spans[2].tile_name != spans[0].tile_name && spans[2].tile_name == spans[2].name);
}

}  // namespace
}  // namespace wherry
