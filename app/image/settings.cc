#include "app/image/settings.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "app/value/json_text.h"

namespace wherry::app {
namespace {

using json::Kind;
using json::Value;

// Fields of image processors that do not change the pixels of one RGB image.
constexpr std::string_view kIgnoredFields[] = {
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

constexpr std::string_view kPixelFields[] = {
    "do_normalize",         "do_rescale", "do_resize", "image_mean",
    "image_processor_type", "image_std",  "resample",  "rescale_factor",
};

template <typename Names>
bool contains(const Names& names, std::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

std::string joined(SettingsReader::Path path) {
  std::string name;
  for (const char* part : path) name += (name.empty() ? "" : ".") + std::string(part);
  return name;
}

Filter read_filter(SettingsReader& reader) {
  const Value* resample = reader.find({"processor", "resample"});
  if (resample != nullptr && resample->is(Kind::kInt)) {
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
        break;
    }
  }
  reader.refuse({"processor", "resample"}, "1 (Lanczos), 2 (bilinear), 3 (bicubic), 4 (box)");
  return Filter::kLanczos;
}

// Computes the values of levels as transformers' NumPy does: rescaled in double, rounded to float,
// then normalized in float.
Levels read_levels(SettingsReader& reader) {
  const bool rescales = reader.boolean({"processor", "do_rescale"});
  const bool normalizes = reader.boolean({"processor", "do_normalize"});
  const double factor = rescales ? reader.number({"processor", "rescale_factor"}) : 1.0;
  std::array<double, 3> mean{0, 0, 0}, deviation{1, 1, 1};
  if (normalizes) {
    mean = reader.channels({"processor", "image_mean"});
    deviation = reader.channels({"processor", "image_std"});
  }
  Levels levels;
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

void check_class(SettingsReader& reader, std::initializer_list<std::string_view> classes) {
  const Value* type = reader.find({"processor", "image_processor_type"});
  if (type == nullptr) return;
  std::string accepted;
  for (const std::string_view name : classes) {
    for (const char* suffix : {"", "Fast", "Pil"}) {
      if (type->is_string() && type->text() == std::string(name) + suffix) return;
    }
    accepted += (accepted.empty() ? "" : " or ") + std::string(name);
  }
  reader.refuse({"processor", "image_processor_type"}, accepted + ", also with Fast or Pil");
}

}  // namespace

const Value* SettingsReader::find(Path path) const {
  const Value* value = &settings_;
  for (const char* name : path) {
    value = value->is_dict() ? value->dict().find(name) : nullptr;
    if (value == nullptr || value->is_none()) return nullptr;
  }
  return value;
}

void SettingsReader::refuse(Path path, const std::string& accepted) {
  const Value* value = find(path);
  problems_.push_back(joined(path) + ": " + (value == nullptr ? "missing" : json::to_json(*value)) +
                      "; accepted: " + accepted);
}

int SettingsReader::integer(Path path, int minimum, int maximum) {
  const Value* value = find(path);
  if (value != nullptr && value->is(Kind::kInt) && value->integer() >= minimum &&
      value->integer() <= maximum) {
    return static_cast<int>(value->integer());
  }
  refuse(path, "an integer from " + std::to_string(minimum) + " to " + std::to_string(maximum));
  return minimum;
}

void SettingsReader::expect(Path path, int value, const std::string& reason) {
  const Value* field = find(path);
  if (field != nullptr && field->is(Kind::kInt) && field->integer() == value) return;
  refuse(path, std::to_string(value) + reason);
}

bool SettingsReader::boolean(Path path) {
  const Value* value = find(path);
  if (value != nullptr && value->is(Kind::kBool)) return value->integer() != 0;
  refuse(path, "true or false");
  return false;
}

double SettingsReader::number(Path path) {
  const Value* value = find(path);
  if (value != nullptr && value->is_number()) return value->number();
  refuse(path, "a number");
  return 1.0;
}

std::array<double, 3> SettingsReader::channels(Path path) {
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

std::string SettingsReader::text(Path path) {
  const Value* value = find(path);
  if (value != nullptr && value->is_string() && !value->text().empty()) return value->text();
  refuse(path, "a text");
  return "";
}

void SettingsReader::expect_fields(Path path, std::initializer_list<std::string_view> names) {
  const Value* object = find(path);
  if (object == nullptr || !object->is_dict()) return;  // reading its fields refuses that
  for (const auto& [key, value] : object->dict().items) {
    if (value.is_none() || contains(names, key.text())) continue;
    std::string accepted;
    for (const std::string_view name : names) {
      accepted += (accepted.empty() ? "" : " and ") + std::string(name);
    }
    refuse(path, accepted + " alone");
    return;
  }
}

void SettingsReader::finish() const {
  if (problems_.empty()) return;
  std::string text = "wherry-vision.json has image settings that cannot be used";
  for (const std::string& problem : problems_) text += "\n  " + problem;
  throw std::invalid_argument(text);
}

PixelSettings read_pixels(SettingsReader& reader, std::initializer_list<std::string_view> classes,
                          std::initializer_list<std::string_view> own) {
  if (const Value* processor = reader.find({"processor"});
      processor != nullptr && processor->is_dict()) {
    for (const auto& [key, value] : processor->dict().items) {
      const std::string& name = key.text();
      if (!value.is_none() && !contains(kPixelFields, name) && !contains(own, name) &&
          !contains(kIgnoredFields, name)) {
        reader.refuse({"processor", name.c_str()}, "no field of this name");
      }
    }
  }
  // Without it, the number of rows grows with the file's own size: thousands for a photograph.
  const Value* resizes = reader.find({"processor", "do_resize"});
  if (resizes == nullptr || !resizes->is(Kind::kBool) || resizes->integer() == 0) {
    reader.refuse({"processor", "do_resize"}, "true");
  }
  check_class(reader, classes);
  return {read_filter(reader), read_levels(reader)};
}

}  // namespace wherry::app
