#include "model/metadata.h"

#include "testing/testing.h"

namespace wherry {
namespace {

std::string good(const std::string& from = "", const std::string& to = "") {
  std::string text = concat(R"({"schema": 2, "interface": ")", kInterface, R"(", "name": "llama",
    "vocab_size": 512, "context": 256, "page_size": 16, "later": {"more": 1},
    "inputs": ["tokens", "pages.0", "logit_rows"], "entries": ["forward"],
    "groups": [{"kind": "self", "window": 0}],
    "state": [{"kind": "paged_kv", "layers": 5, "shape": [2, 4, 16, 8], "dtype": "float32"}],
    "params": [
      {"name": "norm", "shape": [64], "dtype": "bfloat16", "from": ["model.norm"]},
      {"name": "w", "shape": [4, 8], "dtype": "int32", "pack": "pack_0", "from": ["q", "s"],
       "index": 1}]})");
  size_t at = text.find(from);
  CHECK(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

TEST(reads_a_library) {
  Metadata metadata = parse_metadata(good());
  CHECK_EQ(metadata.name, "llama");
  CHECK_EQ(metadata.vocab_size, 512);
  CHECK_EQ(metadata.state[0].layers, 5);
  CHECK_EQ(metadata.candidates, 0);
  CHECK((metadata.state[0].shape == std::vector<int64_t>{2, 4, 16, 8}));
  CHECK_EQ(describe(metadata.params[0].dtype, metadata.params[0].shape), "bfloat16 [64]");
  CHECK_EQ(tensor_bytes(metadata.params[0].dtype, metadata.params[0].shape), 128);
  CHECK_EQ(metadata.params[1].pack, "pack_0");
  CHECK_EQ(metadata.params[1].index, 1);
  CHECK(metadata.has(Entry::kForward));
  CHECK(!metadata.has(Entry::kEmbed));
  CHECK(!metadata.recurrent());
  CHECK_EQ(metadata.json, good());
}

TEST(layers_of_a_group_may_have_pages_of_several_shapes) {
  Metadata metadata = parse_metadata(good(R"("dtype": "float32"}])",
                                          R"("dtype": "float32"},
      {"kind": "paged_kv", "group": 0, "layers": 2, "shape": [2, 1, 16, 32], "dtype": "int8"}])"));
  CHECK_EQ(metadata.state.size(), 2u);
  CHECK_EQ(metadata.state[1].group, 0u);
  CHECK_EQ(metadata.state[1].layers, 2);
  CHECK((metadata.state[0].shape == std::vector<int64_t>{2, 4, 16, 8}));
  CHECK((metadata.state[1].shape == std::vector<int64_t>{2, 1, 16, 32}));
}

TEST(names_what_is_wrong) {
  const char* cases[][3] = {
      {"\"schema\": 2", "\"schema\": 1", "schema 1; this core reads schema 2"},
      {kInterface, "ffff", "interface \"ffff\""},
      {"\"name\": \"llama\",", "", "lacks \"name\""},
      {"512", "0", "\"vocab_size\" is 0"},
      {"512", "\"vocab_size\"", "\"vocab_size\" must be an integer"},
      {"\"paged_kv\"", "\"other\"", "kind \"other\""},
      {"\"layers\": 5", "\"layers\": 5, \"group\": 1", "state[0]: group 1 of 1"},
      {"\"self\"", "\"other\"", "groups[0]: kind \"other\""},
      {"\"window\": 0", "\"window\": -1", "a window of -1 tokens"},
      {"\"pages.0\"", "\"rope_position\"", "input \"rope_position\" is not known"},
      {"\"pages.0\"", "\"pages.1\"", "input \"pages.1\" is not known"},
      {"\"forward\"", "\"decode\"", "entry \"decode\""},
      {"\"layers\": 5", "\"layers\": 0", "0 layers"},
      {"512", "512, \"candidates\": -1", "\"candidates\" is -1"},
      {"512", "512, \"candidates_error\": 1.0", "\"candidates_error\" is 1"},
      {"[64]", "[-1]", "the extent -1"},
      {"[64]", "[\"n\"]", "params[0]: \"shape\" must be a list of integers"},
      {"bfloat16", "bfloat17x", "norm: unknown dtype"},
      {"[\"model.norm\"]", "[]", "norm: \"from\" names 0 tensors"},
      {"[\"model.norm\"]", "[\"a\", \"b\"]", "norm: \"from\" names 2 tensors"},
      {"\"w\"", "\"norm\"", "parameter norm is listed twice"},
  };
  for (const auto& row : cases) {
    const std::string damaged = good(row[0], row[1]);
    CHECK_CONTAINS(ERROR_OF(WHERRY_INCOMPATIBLE, parse_metadata(damaged)), row[2]);
  }
  ERROR_OF(WHERRY_INCOMPATIBLE, parse_metadata("not JSON"));
}

TEST(reads_what_a_device_gives_of_rows) {
  Metadata metadata =
      parse_metadata(good("512", "512, \"candidates\": 128, \"candidates_error\": 2e-05"));
  CHECK_EQ(metadata.candidates, 128);
  CHECK_EQ(metadata.candidates_error, 2e-5);
}

// Metadata of a model that takes images of 576 elements.
std::string with_images(const std::string& from = "", const std::string& to = "") {
  std::string text = good(R"("inputs": ["tokens", "pages.0", "logit_rows"])", R"("inputs":
    ["tokens", "image_rows", "pages.0", "logit_rows", "image_features"], "image_features": 576)");
  size_t at = text.find(from);
  CHECK(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

TEST(reads_the_positions_and_the_view_of_rows) {
  const Metadata metadata = parse_metadata(
      with_images("\"pages.0\"", "\"rope_positions\", \"last_visible\", \"pages.0\""));
  CHECK(metadata.takes("rope_positions") && metadata.takes("last_visible"));
  CHECK(!parse_metadata(good()).takes("last_visible"));
}

TEST(reads_the_inputs_of_images) {
  CHECK_EQ(parse_metadata(good()).image_features, 0);
  Metadata metadata = parse_metadata(with_images());
  CHECK_EQ(metadata.image_features, 576);
  CHECK_EQ(metadata.inputs.back(), "image_features");
  const char* cases[][3] = {
      {"576", "0", "the inputs have \"image_rows\"; the key \"image_features\""},
      {"576", "-1", "\"image_features\" is -1"},
      {"\"image_rows\", ", "", "the inputs must have \"image_rows\""},
      {", \"image_features\"]", "]", "the inputs must have"},
      {"\"logit_rows\", \"image_features\"", "\"image_features\", \"logit_rows\"",
       "\"image_features\" as the last one"},
  };
  for (const auto& row : cases) {
    const std::string damaged = with_images(row[0], row[1]);
    CHECK_CONTAINS(ERROR_OF(WHERRY_INCOMPATIBLE, parse_metadata(damaged)), row[2]);
  }
}

std::string tower(const std::string& from = "", const std::string& to = "") {
  std::string text = concat(R"({"schema": 2, "interface": ")", kInterface, R"(", "name": "tower",
    "inputs": ["patches", "positions", "sequences", "query_indptr"], "entries": ["see"],
    "patch": 768, "patches_per_row": 16, "image_features": 576,
    "params": [{"name": "norm", "shape": [64], "dtype": "float32", "from": ["vision.norm"]}]})");
  size_t at = text.find(from);
  CHECK(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

TEST(reads_a_tower) {
  Metadata metadata = parse_tower_metadata(tower());
  CHECK(metadata.has(Entry::kSee));
  CHECK_EQ(metadata.patch, 768);
  CHECK_EQ(metadata.patches_per_row, 16);
  CHECK_EQ(metadata.image_features, 576);
  CHECK_EQ(metadata.params.size(), 1u);
  const char* cases[][3] = {
      {"[\"see\"]", "[\"see\", \"forward\"]", "must be [\"see\"]"},
      {"\"patches\", ", "", "in this order, patches and those that it takes of patches, positions"},
      {"\"patches\", \"positions\"", "\"positions\", \"patches\"", "in this order, patches"},
      {"\"positions\"", "\"places\"", "in this order, patches"},
      {"\"positions\"", "\"position_weights\"", "but no \"positions\" to which they belong"},
      {"16,", "16, \"position_taps\": 4,", "\"position_taps\" is 4: the inputs must have"},
      {"16,", "16, \"position_taps\": 0,", "\"position_taps\" is 0"},
      {"\"patch\": 768, ", "", "lacks \"patch\""},
      {"768", "767", "\"patch\" is 767, not a multiple of 3 channels"},
      {"16", "0", "\"patches_per_row\" is 0"},
      {"576", "0", "\"image_features\" is 0"},
      {kInterface, "ffff", "interface \"ffff\""},
  };
  for (const auto& row : cases) {
    const std::string damaged = tower(row[0], row[1]);
    CHECK_CONTAINS(ERROR_OF(WHERRY_INCOMPATIBLE, parse_tower_metadata(damaged)), row[2]);
  }
  CHECK_CONTAINS(ERROR_OF(WHERRY_INCOMPATIBLE, parse_metadata(good("\"forward\"", "\"see\""))),
                 "entry \"see\"");
}

TEST(reads_the_inputs_of_a_tower) {
  CHECK_EQ(parse_tower_metadata(tower()).position_taps, 1);
  const Metadata weighted =
      parse_tower_metadata(tower(R"("positions", "sequences")",
                                 R"("positions", "position_weights", "coordinates", "sequences")"));
  CHECK(weighted.takes("position_weights") && weighted.takes("coordinates"));
  const Metadata turned =
      parse_tower_metadata(tower("\"positions\", \"sequences\"", "\"coordinates\", \"sequences\""));
  CHECK(!turned.takes("positions"));
  const std::string taps = tower("\"patch\"", "\"position_taps\": 4, \"patch\"");
  const std::string positions = "\"positions\", ";
  std::string text = taps;
  text.insert(text.find(positions) + positions.size(), "\"position_weights\", ");
  CHECK_EQ(parse_tower_metadata(text).position_taps, 4);
}

TEST(gathers_all_of_it) {
  std::string text = ERROR_OF(WHERRY_INCOMPATIBLE, parse_metadata("{\"schema\": 1}"));
  for (const char* key : {"interface", "name", "vocab_size", "context", "page_size", "inputs",
                          "entries", "groups", "state", "params"}) {
    CHECK_CONTAINS(text, concat("lacks \"", key, "\""));
  }
}

}  // namespace
}  // namespace wherry
