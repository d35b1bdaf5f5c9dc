#include "app/image/tile_settings.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "app/value/json_text.h"

namespace wherry::app {
namespace {

using json::Kind;
using json::Value;

// transformers bounds images by 4096 (MAX_IMAGE_SIZE in image_processing_smolvlm.py).
constexpr int kLongestEdge = 4096;
constexpr int kTilesPerSide = 32;  // a prompt of 1024 tiles; published checkpoints have 4 or 5

// Fields of image processors that do not change the pixels of one RGB image.
constexpr std::string_view kIgnored[] = {
    "auto_map",
    "data_format",
    "device",
    "disable_grouping",
    "do_convert_rgb",
    "do_pad",
    "feature_extractor_type",
    "input_data_format",
    "processor_class",
    "return_row_col_info",
    "return_tensors",
    "video_sampling",
};

// Reads fields and collects what does not fit.
class Reader {
 public:
  explicit Reader(const Value& settings) : settings_(settings) {}

  // Returns the value at a path such as {"processor", "size"}; null, as in Python, is an absent
  // one.
  const Value* find(std::initializer_list<const char*> path) const {
    const Value* value = &settings_;
    for (const char* name : path) {
      value = value->is_dict() ? value->dict().find(name) : nullptr;
      if (value == nullptr || value->is_none()) return nullptr;
    }
    return value;
  }

  void refuse(std::initializer_list<const char*> path, const std::string& accepted) {
    std::string name;
    for (const char* part : path) name += (name.empty() ? "" : ".") + std::string(part);
    const Value* value = find(path);
    problems_.push_back(name + ": " + (value == nullptr ? "missing" : json::to_json(*value)) +
                        "; accepted: " + accepted);
  }

  int integer(std::initializer_list<const char*> path, int minimum, int maximum) {
    const Value* value = find(path);
    if (value != nullptr && value->is(Kind::kInt) && value->integer() >= minimum &&
        value->integer() <= maximum) {
      return static_cast<int>(value->integer());
    }
    refuse(path, "an integer from " + std::to_string(minimum) + " to " + std::to_string(maximum));
    return minimum;
  }

  bool boolean(std::initializer_list<const char*> path) {
    const Value* value = find(path);
    if (value != nullptr && value->is(Kind::kBool)) return value->integer() != 0;
    refuse(path, "true or false");
    return false;
  }

  std::array<double, 3> channels(std::initializer_list<const char*> path) {
    const Value* value = find(path);
    std::array<double, 3> result{1, 1, 1};
    if (value != nullptr && value->is_sequence() && value->items().size() == 3 &&
        std::all_of(value->items().begin(), value->items().end(),
                    [](const Value& item) { return item.is_number(); })) {
      for (size_t i = 0; i < 3; ++i) result[i] = value->items()[i].number();
    } else {
      refuse(path, "three numbers");
    }
    return result;
  }

  // Reads {"longest_edge": n}, the one form of a size that these processors have in checkpoints.
  int edge(const char* name, int maximum) {
    const int result = integer({"processor", name, "longest_edge"}, 1, maximum);
    if (const Value* size = find({"processor", name}); size != nullptr && size->is_dict()) {
      for (const auto& [key, value] : size->dict().items) {
        if (key.text() != "longest_edge" && !value.is_none()) {
          refuse({"processor", name}, "longest_edge alone");
        }
      }
    }
    return result;
  }

  void finish() const {
    if (problems_.empty()) return;
    std::string text = "wherry-vision.json has image settings that cannot be used";
    for (const std::string& problem : problems_) text += "\n  " + problem;
    throw std::invalid_argument(text);
  }

 private:
  const Value& settings_;
  std::vector<std::string> problems_;
};

std::optional<Filter> filter_of(const Value* resample) {
  if (resample == nullptr || !resample->is(Kind::kInt)) return std::nullopt;
  switch (resample->integer()) {  // the numbers of PIL.Image.Resampling
    case 1:
      return Filter::kLanczos;
    case 2:
      return Filter::kBilinear;
    case 3:
      return Filter::kBicubic;
    case 4:
      return Filter::kBox;
    default:
      return std::nullopt;
  }
}

// Computes the values of levels as transformers' NumPy does: rescaled in double, rounded to float,
// then normalized in float.
std::array<float, 768> read_levels(Reader& reader) {
  const bool rescales = reader.boolean({"processor", "do_rescale"});
  const bool normalizes = reader.boolean({"processor", "do_normalize"});
  double factor = 1.0;
  if (rescales) {
    const Value* value = reader.find({"processor", "rescale_factor"});
    if (value != nullptr && value->is_number()) {
      factor = value->number();
    } else {
      reader.refuse({"processor", "rescale_factor"}, "a number");
    }
  }
  std::array<double, 3> mean{0, 0, 0}, deviation{1, 1, 1};
  if (normalizes) {
    mean = reader.channels({"processor", "image_mean"});
    deviation = reader.channels({"processor", "image_std"});
  }
  std::array<float, 768> levels;
  for (size_t i = 0; i < levels.size(); ++i) {
    const float rescaled = static_cast<float>(static_cast<double>(i % 256) * factor);
    const float centered = rescaled - static_cast<float>(mean[i / 256]);
    levels[i] = centered / static_cast<float>(deviation[i / 256]);
  }
  if (!std::all_of(levels.begin(), levels.end(),
                   [](float level) { return std::isfinite(level); })) {
    reader.refuse({"processor", "image_std"}, "numbers that keep levels finite");
  }
  return levels;
}

void check_processor(Reader& reader) {
  constexpr std::string_view kRead[] = {
      "do_image_splitting", "do_normalize",   "do_rescale",
      "do_resize",          "image_mean",     "image_processor_type",
      "image_std",          "max_image_size", "rescale_factor",
      "resample",           "size",
  };
  constexpr std::string_view kTypes[] = {
      "Idefics3ImageProcessor", "Idefics3ImageProcessorFast", "Idefics3ImageProcessorPil",
      "SmolVLMImageProcessor",  "SmolVLMImageProcessorFast",  "SmolVLMImageProcessorPil",
  };
  const auto contains = [](const auto& names, const std::string& name) {
    return std::find(std::begin(names), std::end(names), name) != std::end(names);
  };
  if (const Value* processor = reader.find({"processor"});
      processor != nullptr && processor->is_dict()) {
    for (const auto& [key, value] : processor->dict().items) {
      if (!value.is_none() && !contains(kRead, key.text()) && !contains(kIgnored, key.text())) {
        reader.refuse({"processor", key.text().c_str()}, "no field of this name");
      }
    }
  }
  // Without a resize, a photograph would become as many tiles as it has pixels for.
  const Value* resizes = reader.find({"processor", "do_resize"});
  if (resizes == nullptr || !resizes->is(Kind::kBool) || resizes->integer() == 0) {
    reader.refuse({"processor", "do_resize"}, "true");
  }
  const Value* type = reader.find({"processor", "image_processor_type"});
  if (type != nullptr && (!type->is_string() || !contains(kTypes, type->text()))) {
    reader.refuse({"processor", "image_processor_type"},
                  "Idefics3ImageProcessor or SmolVLMImageProcessor, also with Fast or Pil");
  }
}

// Reads the tower's grid of patches, and checks that a tile fills it.
void read_grid(Reader& reader, TileSettings& settings) {
  const int image = reader.integer({"vision_config", "image_size"}, 1, kLongestEdge);
  settings.patch = reader.integer({"vision_config", "patch_size"}, 1, image);
  // As a convolution does without padding, pixels beyond the last complete patch are left out.
  settings.side = settings.tile / settings.patch;
  if (settings.side != image / settings.patch) {
    reader.refuse({"processor", "max_image_size", "longest_edge"},
                  "as many patches of " + std::to_string(settings.patch) +
                      " pixels as vision_config.image_size " + std::to_string(image) + " has");
  }
  settings.scale = reader.integer({"scale_factor"}, 1, std::max(settings.side, 1));
  if (settings.side % settings.scale != 0) {
    reader.refuse({"scale_factor"}, "a divisor of " + std::to_string(settings.side) + " patches");
  }
  const int blocks = settings.side / settings.scale;
  const Value* length = reader.find({"image_seq_len"});
  if (length == nullptr || !length->is(Kind::kInt) || length->integer() != blocks * blocks) {
    reader.refuse({"image_seq_len"},
                  std::to_string(blocks * blocks) + ", of image_size, patch_size and scale_factor");
  }
}

}  // namespace

TileSettings read_tile_settings(const Value& value) {
  Reader reader(value);
  check_processor(reader);
  TileSettings settings;
  settings.tile = reader.edge("max_image_size", kLongestEdge);
  settings.longest_edge =
      reader.edge("size", std::min(kLongestEdge, kTilesPerSide * settings.tile));
  settings.split = reader.boolean({"processor", "do_image_splitting"});
  const std::optional<Filter> filter = filter_of(reader.find({"processor", "resample"}));
  if (!filter) {
    reader.refuse({"processor", "resample"}, "1 (Lanczos), 2 (bilinear), 3 (bicubic), 4 (box)");
  }
  settings.filter = filter.value_or(Filter::kLanczos);
  settings.levels = read_levels(reader);
  read_grid(reader, settings);
  const Value* token = reader.find({"image_token"});
  if (token == nullptr || !token->is_string() || token->text().empty()) {
    reader.refuse({"image_token"}, "a text");
  } else {
    settings.placeholder = token->text();
  }
  reader.finish();
  return settings;
}

}  // namespace wherry::app
