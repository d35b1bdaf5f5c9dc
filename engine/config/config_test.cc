#include "config/config.h"

#include "testing/testing.h"

namespace wherry {
namespace {

Metadata library() {
  Metadata metadata;
  metadata.context = 512;
  metadata.page_size = 16;
  return metadata;
}

TEST(defaults) {
  for (const char* text : {static_cast<const char*>(nullptr), "", "{}"}) {
    EngineConfig config = parse_engine_config(text, library());
    CHECK_EQ(config.max_batch, 8);
    CHECK_EQ(config.context, 512);
    CHECK_EQ(config.kv_tokens, 8 * 512);
    CHECK_EQ(config.prefill_chunk, 256);
    CHECK_EQ(parse_model_options(text).threads, 0);
  }
}

TEST(memory_bounds_the_cache) {
  Metadata metadata = library();
  metadata.groups = {{0, false}, {64, false}};
  // 3 layers of 16 tokens * 4 * 2 float16 numbers; the layers with a window do not count.
  metadata.state = {{false, 0, 3, {16, 4, 2}, {kDLFloat, 16, 1}},
                    {false, 1, 5, {16, 4, 2}, {kDLFloat, 16, 1}}};
  const auto tokens = [&](const std::string& options) {
    return parse_engine_config(options.c_str(), metadata).kv_tokens;
  };
  CHECK_EQ(tokens(R"({"kv_memory": 7680})"), 10 * 16);
  CHECK_EQ(tokens(R"({"kv_memory": 8447})"), 10 * 16);
  CHECK_EQ(tokens(R"({"kv_memory": 1})"), 16);  // at least one page
  CHECK_EQ(tokens(R"({"kv_memory": 9000000000000})"), 8 * 512);
  CHECK_EQ(tokens(R"({"kv_memory": 7680, "kv_tokens": 32})"), 32);
  CHECK_EQ(parse_engine_config(R"({"kv_memory": 7680})", metadata).context, 160);
  CHECK_CONTAINS(ERROR_OF(WHERRY_INVALID_ARGUMENT, tokens(R"({"kv_memory": 0})")),
                 "\"kv_memory\" is 0; accepted are 1..");
  // A quarter of the pages' bytes is for snapshots of a recurrent state.
  metadata.state.push_back({true, 0, 2, {999}, {kDLFloat, 32, 1}});
  CHECK_EQ(tokens(R"({"kv_memory": 9600})"), 10 * 16);
  CHECK_EQ(tokens(R"({"kv_memory": 9599})"), 9 * 16);
}

TEST(given_values) {
  EngineConfig config = parse_engine_config(
      R"({"max_batch": 300, "context": 100, "kv_tokens": 1001, "prefill_chunk": 400})", library());
  CHECK_EQ(config.max_batch, 300);
  CHECK_EQ(config.context, 100);
  CHECK_EQ(config.kv_tokens, 1008);  // kv_tokens is rounded to whole pages
  CHECK_EQ(config.prefill_chunk, 400);
  CHECK_EQ(parse_engine_config(R"({"max_batch": 300})", library()).prefill_chunk, 300);
  CHECK_EQ(parse_engine_config(R"({"kv_tokens": 100})", library()).context, 100);
  ModelOptions options = parse_model_options(R"({"threads": 3, "pack_dir": "/p"})");
  CHECK_EQ(options.threads, 3);
  CHECK_EQ(options.pack_dir, "/p");
  CHECK(options.check_weights);
  CHECK(!parse_model_options(R"({"check_weights": 0})").check_weights);
  CHECK(options.cuda_graphs);
  CHECK(!parse_model_options(R"({"cuda_graphs": 0})").cuda_graphs);
}

TEST(rows_of_image_features) {
  Metadata metadata = library();
  CHECK_EQ(parse_engine_config("{}", metadata).image_rows, 0);
  CHECK_CONTAINS(
      ERROR_OF(WHERRY_INVALID_ARGUMENT, parse_engine_config(R"({"image_rows": 64})", metadata)),
      "\"image_rows\" is for models that take images");
  metadata.image_features = 576;
  CHECK_EQ(parse_engine_config(R"({"context": 100})", metadata).image_rows, 100);
  CHECK_EQ(parse_engine_config(R"({"image_rows": 64})", metadata).image_rows, 64);
  metadata.context = 131072;
  CHECK_EQ(parse_engine_config("{}", metadata).image_rows, 8192);
  CHECK_EQ(parse_engine_config(R"({"image_rows": 9000})", metadata).image_rows, 9000);
  CHECK_CONTAINS(
      ERROR_OF(WHERRY_INVALID_ARGUMENT, parse_engine_config(R"({"image_rows": 0})", metadata)),
      "\"image_rows\" is 0; accepted are 1..");
  CHECK_EQ(parse_model_options(R"({"vision": "/m/vision.so"})").vision, "/m/vision.so");
  CHECK_EQ(parse_model_options("{}").vision, "");
}

TEST(the_library_bounds_the_step) {
  Metadata small = library();
  small.max_batch = 4;
  small.prefill_chunk = 32;
  CHECK_EQ(parse_engine_config("{}", small).max_batch, 4);
  CHECK_EQ(parse_engine_config("{}", small).prefill_chunk, 32);
  std::string text =
      ERROR_OF(WHERRY_INVALID_ARGUMENT,
               parse_engine_config(R"({"max_batch": 5, "prefill_chunk": 33})", small));
  CHECK_CONTAINS(text, "\"max_batch\" is 5; accepted are 1..4");
  CHECK_CONTAINS(text, "\"prefill_chunk\" is 33; accepted are 1..32");
}

TEST(everything_wrong_is_named) {
  std::string text =
      ERROR_OF(WHERRY_INVALID_ARGUMENT,
               parse_engine_config(
                   R"({"max_batch": 0, "context": 513, "kv_tokens": "many", "kv": 1})", library()));
  CHECK_CONTAINS(text, "\"max_batch\" is 0; accepted are 1..4096");
  CHECK_CONTAINS(text, "\"context\" is 513; accepted are 2..512");
  CHECK_CONTAINS(text, "\"kv_tokens\" must be an integer");
  CHECK_CONTAINS(text, "unknown key \"kv\"; known are max_batch, context, kv_tokens");
  CHECK_CONTAINS(ERROR_OF(WHERRY_INVALID_ARGUMENT, parse_model_options(R"({"thread": true})")),
                 "unknown key \"thread\"; known are threads, pack_dir, check_weights, "
                 "cuda_graphs, vision");
  ERROR_OF(WHERRY_INVALID_ARGUMENT, parse_model_options(R"({"threads": true})"));
  ERROR_OF(WHERRY_INVALID_ARGUMENT, parse_model_options(R"({"threads": 1.5})"));
  ERROR_OF(WHERRY_INVALID_ARGUMENT, parse_model_options(R"({"threads": 1000})"));
}

TEST(a_step_must_hold_the_batch) {
  CHECK_CONTAINS(
      ERROR_OF(WHERRY_INVALID_ARGUMENT,
               parse_engine_config(R"({"max_batch": 8, "prefill_chunk": 7})", library())),
      "must hold max_batch (8)");
}

TEST(what_is_no_object_is_refused) {
  for (const char* text : {"{", "[]", "3", "{}{}", "nonsense"}) {
    ERROR_OF(WHERRY_INVALID_ARGUMENT, parse_model_options(text));
    ERROR_OF(WHERRY_INVALID_ARGUMENT, parse_engine_config(text, library()));
  }
}

}  // namespace
}  // namespace wherry
