#include "model/metadata.h"

#include <tvm/ffi/container/tensor.h>

#include <algorithm>
#include <set>

#include "support/json_reader.h"

namespace wherry {

const char* const kInterface = "2903124a53b6550f";

namespace {

constexpr int64_t kSchema = 2;

std::vector<int64_t> parse_shape(JsonReader& reader, Problems& problems) {
  std::vector<int64_t> shape = reader.integers("shape");
  for (int64_t extent : shape) {
    if (extent < 1) problems.add(reader.where(), ": \"shape\" has the extent ", extent);
  }
  return shape;
}

GroupSpec parse_group(const ffi::json::Object& object, size_t i, Problems& problems) {
  JsonReader reader(object, concat("groups[", i, "]"), problems);
  GroupSpec spec;
  spec.window = reader.integer_or("window", 0);
  std::string kind = reader.string("kind");
  spec.cross = kind == "cross";
  if (kind != "self" && kind != "cross") {
    problems.add(reader.where(), ": kind \"", kind, "\"; this core knows \"self\" and \"cross\"");
  }
  if (spec.window < 0) problems.add(reader.where(), ": a window of ", spec.window, " tokens");
  return spec;
}

StateSpec parse_state(const ffi::json::Object& object, size_t i, size_t groups,
                      Problems& problems) {
  JsonReader reader(object, concat("state[", i, "]"), problems);
  StateSpec spec;
  std::string kind = reader.string("kind");
  spec.recurrent = kind == "recurrent";
  spec.layers = reader.integer("layers");
  spec.shape = parse_shape(reader, problems);
  spec.dtype = parse_dtype(reader.string("dtype"), reader.where(), problems);
  if (kind == "paged_kv") {
    int64_t group = reader.integer_or("group", 0);
    spec.group = static_cast<size_t>(group);
    if (group < 0 || spec.group >= groups) {
      problems.add(reader.where(), ": group ", group, " of ", groups);
    }
  } else if (!spec.recurrent) {
    problems.add(reader.where(), ": kind \"", kind,
                 "\"; this core knows \"paged_kv\" and \"recurrent\"");
  }
  if (spec.layers < 1) problems.add(reader.where(), ": ", spec.layers, " layers");
  return spec;
}

Entry parse_entry(const std::string& name, Problems& problems) {
  for (Entry entry : {Entry::kForward, Entry::kEmbed, Entry::kEncode, Entry::kDraft}) {
    if (name == name_of(entry)) return entry;
  }
  problems.add("entry \"", name, "\"; this core knows forward, embed, encode, draft");
  return Entry::kForward;
}

void check_inputs(const Metadata& metadata, Problems& problems) {
  std::set<std::string> known{"tokens",       "positions",      "sequences",      "adapters",
                              "query_indptr", "image_rows",     "rope_positions", "last_visible",
                              "slots",        "source_lengths", "logit_rows",     "image_features"};
  for (size_t i = 0; i < metadata.groups.size(); ++i) known.insert(concat("pages.", i));
  for (const std::string& input : metadata.inputs) {
    if (known.count(input) == 0) problems.add("input \"", input, "\" is not known");
  }
}

// Checks that the inputs take image features if and only if the metadata has their size.
void check_image_inputs(const Metadata& metadata, Problems& problems) {
  const std::vector<std::string>& inputs = metadata.inputs;
  const bool takes = metadata.image_features > 0;
  const bool rows = std::count(inputs.begin(), inputs.end(), "image_rows") == 1;
  const bool last = !inputs.empty() && inputs.back() == "image_features";
  const auto features = std::count(inputs.begin(), inputs.end(), "image_features");
  if (takes && !(rows && last && features == 1)) {
    problems.add("\"image_features\" is ", metadata.image_features,
                 ": the inputs must have \"image_rows\", and \"image_features\" as the last one");
  }
  if (!takes && (rows || features > 0)) {
    problems.add("the inputs have \"", rows ? "image_rows" : "image_features",
                 "\"; the key \"image_features\" must give the elements of a row");
  }
}

// Checks the inputs of a tower: some of those below, in their order.
void check_tower_inputs(const Metadata& tower, Problems& problems) {
  std::string known;
  std::vector<std::string> ordered;
  for (const char* input :
       {"patches", "positions", "position_weights", "coordinates", "sequences", "query_indptr"}) {
    known += concat(known.empty() ? "" : ", ", input);
    if (tower.takes(input)) ordered.push_back(input);
  }
  if (ordered != tower.inputs || !tower.takes("patches")) {
    problems.add(
        "the inputs of a tower must be, in this order, patches and those that it takes of ", known);
  }
  if (tower.takes("position_weights") && !tower.takes("positions")) {
    problems.add("the inputs have \"position_weights\", but no \"positions\" to which they belong");
  }
  if (tower.position_taps > 1 && !tower.takes("position_weights")) {
    problems.add("\"position_taps\" is ", tower.position_taps,
                 ": the inputs must have \"position_weights\"");
  }
}

void check_candidates(const Metadata& metadata, Problems& problems) {
  if (metadata.candidates < 0) problems.add("\"candidates\" is ", metadata.candidates);
  double error = metadata.candidates_error;
  if (!(error >= 0 && error < 1)) problems.add("\"candidates_error\" is ", error);
}

ParamSpec parse_param(const ffi::json::Object& object, size_t i, Problems& problems) {
  JsonReader reader(object, concat("params[", i, "]"), problems);
  ParamSpec spec;
  spec.name = reader.string("name");
  spec.shape = parse_shape(reader, problems);
  spec.dtype = parse_dtype(reader.string("dtype"), spec.name, problems);
  spec.from = reader.strings("from");
  spec.pack = reader.string_or("pack", "");
  spec.index = reader.integer_or("index", 0);
  if (spec.pack.empty() ? spec.from.size() != 1 : spec.from.empty()) {
    problems.add(spec.name, ": \"from\" names ", spec.from.size(), " tensors");
  }
  return spec;
}

void require_positive(const char* key, int64_t value, Problems& problems) {
  if (value < 1 || value > INT32_MAX) problems.add("\"", key, "\" is ", value);
}

}  // namespace

const char* name_of(Entry entry) {
  switch (entry) {
    case Entry::kForward:
      return "forward";
    case Entry::kEmbed:
      return "embed";
    case Entry::kEncode:
      return "encode";
    case Entry::kSee:
      return "see";
    case Entry::kDraft:
      return "draft";
  }
  return "";
}

DLDataType parse_dtype(const std::string& text, const std::string& where, Problems& problems) {
  try {
    if (!text.empty()) return ffi::StringToDLDataType(text);
  } catch (const ffi::Error&) {
  }
  problems.add(where, ": unknown dtype \"", text, "\"");
  return DLDataType{kDLFloat, 32, 1};
}

std::string describe(DLDataType dtype, const std::vector<int64_t>& shape) {
  std::string text = std::string(ffi::DLDataTypeToString(dtype)) + " [";
  for (size_t i = 0; i < shape.size(); ++i) text += concat(i ? ", " : "", shape[i]);
  return text + "]";
}

int64_t tensor_bytes(DLDataType dtype, const std::vector<int64_t>& shape) {
  size_t elements = 1;
  for (int64_t extent : shape) elements *= static_cast<size_t>(extent);
  return static_cast<int64_t>(ffi::GetDataSize(elements, dtype));
}

namespace {

// Reads what the metadata of every library has: versions, name, parameters.
void read_common(JsonReader& reader, Metadata& metadata, Problems& problems) {
  int64_t schema = reader.integer("schema");
  if (schema != kSchema) problems.add("schema ", schema, "; this core reads schema ", kSchema);
  std::string interface = reader.string("interface");
  if (interface != kInterface) {
    problems.add("interface \"", interface, "\"; this core speaks \"", kInterface, "\"");
  }
  metadata.name = reader.string("name");
  metadata.inputs = reader.strings("inputs");
  std::set<std::string> names;
  for (const ffi::json::Object& object : reader.objects("params")) {
    metadata.params.push_back(parse_param(object, metadata.params.size(), problems));
    const std::string& name = metadata.params.back().name;
    if (!names.insert(name).second) problems.add("parameter ", name, " is listed twice");
  }
}

void raise(const Problems& problems) {
  problems.raise(WHERRY_INCOMPATIBLE,
                 "the library cannot be used with this core (compile the model again)");
}

}  // namespace

Metadata parse_metadata(const std::string& json) {
  Problems problems;
  const std::string what = "the library's metadata";
  JsonReader reader(parse_json_object(json, what, WHERRY_INCOMPATIBLE), what, problems);
  Metadata metadata;
  metadata.json = json;
  read_common(reader, metadata, problems);
  metadata.vocab_size = reader.integer("vocab_size");
  metadata.context = reader.integer("context");
  metadata.page_size = reader.integer("page_size");
  if (reader.has("max_batch")) metadata.max_batch = reader.integer("max_batch");
  if (reader.has("prefill_chunk")) metadata.prefill_chunk = reader.integer("prefill_chunk");
  if (reader.has("logit_rows")) metadata.logit_rows = reader.integer("logit_rows");
  metadata.adapters = reader.integer_or("adapters", 0);
  metadata.candidates = reader.integer_or("candidates", 0);
  metadata.candidates_error = reader.number_or("candidates_error", 0);
  metadata.image_features = reader.integer_or("image_features", 0);
  check_candidates(metadata, problems);
  require_positive("vocab_size", metadata.vocab_size, problems);
  require_positive("context", metadata.context, problems);
  require_positive("page_size", metadata.page_size, problems);
  require_positive("max_batch", metadata.max_batch, problems);
  require_positive("prefill_chunk", metadata.prefill_chunk, problems);
  require_positive("logit_rows", metadata.logit_rows, problems);
  if (metadata.image_features != 0) {
    require_positive("image_features", metadata.image_features, problems);
  }
  for (const std::string& entry : reader.strings("entries")) {
    metadata.entries.push_back(parse_entry(entry, problems));
  }
  metadata.bidirectional = reader.integer_or("bidirectional", 0) != 0;
  for (const ffi::json::Object& object : reader.objects("groups")) {
    metadata.groups.push_back(parse_group(object, metadata.groups.size(), problems));
  }
  check_inputs(metadata, problems);
  check_image_inputs(metadata, problems);
  for (const ffi::json::Object& object : reader.objects("state")) {
    size_t groups = metadata.groups.size();
    metadata.state.push_back(parse_state(object, metadata.state.size(), groups, problems));
  }
  raise(problems);
  return metadata;
}

Metadata parse_tower_metadata(const std::string& json) {
  Problems problems;
  const std::string what = "the metadata of the tower's library";
  JsonReader reader(parse_json_object(json, what, WHERRY_INCOMPATIBLE), what, problems);
  Metadata metadata;
  metadata.json = json;
  read_common(reader, metadata, problems);
  metadata.entries = {Entry::kSee};
  if (reader.strings("entries") != std::vector<std::string>{"see"}) {
    problems.add("the entries of a tower must be [\"see\"]");
  }
  metadata.position_taps = reader.integer_or("position_taps", 1);
  check_tower_inputs(metadata, problems);
  metadata.image_features = reader.integer("image_features");
  metadata.patch = reader.integer("patch");
  metadata.patches_per_row = reader.integer("patches_per_row");
  require_positive("image_features", metadata.image_features, problems);
  require_positive("patch", metadata.patch, problems);
  require_positive("patches_per_row", metadata.patches_per_row, problems);
  require_positive("position_taps", metadata.position_taps, problems);
  if (metadata.patch % 3 != 0) {
    problems.add("\"patch\" is ", metadata.patch, ", not a multiple of 3 channels");
  }
  raise(problems);
  return metadata;
}

}  // namespace wherry
