#include "scheduling/request.h"

#include <limits>

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

}  // namespace
}  // namespace wherry
