#include "app/load/codes.h"

#include "app/load/cpu_features.h"
#include "app/load/libraries.h"
#include "app/value/json_text.h"
#include "support/error.h"

namespace wherry::app {

namespace {

std::string text_at(const Value& row, const char* name) {
  const Value* match = row.is_dict() ? row.dict().find(std::string_view(name)) : nullptr;
  return match != nullptr && match->is_string() ? match->text() : "";
}

std::string kind_of(const std::string& device) { return device.substr(0, device.find(':')); }

Code read_code(const Value& row) {
  const std::string tower = text_at(row, "tower");
  Code code{text_at(row, "device"),
            text_at(row, "name"),
            "system:" + text_at(row, "symbols"),
            tower.empty() ? "" : "system:" + tower,
            {}};
  const Value* features = row.is_dict() ? row.dict().find(std::string_view("features")) : nullptr;
  if (features != nullptr && features->is_sequence()) {
    for (const Value& feature : features->items()) code.features.push_back(feature.text());
  }
  return code;
}

// Returns why a driver's devices cannot be used; "" if the wanted one can.
std::string obstacle_of_devices(const std::string& device, bool automatic) {
  const std::string kind = kind_of(device);
  const std::string json = linked_devices(kind);
  if (json.empty()) return "";  // a plugin outside of this library
  const Value match = json::from_json(json);
  const Value* devices = match.is_dict() ? match.dict().find("devices") : nullptr;
  if (devices == nullptr || !devices->is_sequence() || devices->items().empty()) {
    return "no " + kind + " device works here" + text_at(match, "problems");
  }
  const Value& first = devices->items()[0];
  const Value* software = first.is_dict() ? first.dict().find("software") : nullptr;
  if (automatic && software != nullptr && json::truth(*software)) {
    return "its device " + text_at(first, "name") +
           " is a program on the CPU, slower than the code for the CPU. Option \"device\": \"" +
           kind + "\" takes it all the same";
  }
  return "";
}

}  // namespace

std::vector<Code> linked_codes(const Manifest& manifest) {
  const std::string json = linked_table();
  if (json.empty() || manifest.linked.empty()) return {};
  const Value table = json::from_json(json);
  const Value* rows = table.is_dict() ? table.dict().find(Value(manifest.linked)) : nullptr;
  if (rows == nullptr || !rows->is_sequence()) return {};
  std::vector<Code> codes;
  for (const Value& row : rows->items()) codes.push_back(read_code(row));
  // The last one is for the oldest CPUs: it is what remains if a CPU's features cannot be read.
  if (cpu_features().empty() && !codes.empty()) codes.back().features.clear();
  return codes;
}

std::vector<Code> codes_for(const std::string& device, const std::vector<Code>& all) {
  if (device.empty() || device == "auto") return all;
  std::vector<Code> kept;
  std::string known;
  for (const Code& code : all) {
    if (code.device == kind_of(device)) {
      kept.push_back(code);
      kept.back().device = device;
    }
    if (known.find(code.device) == known.npos) known += (known.empty() ? "" : ", ") + code.device;
  }
  if (kept.empty()) {
    throw Error(WHERRY_INVALID_ARGUMENT,
                "option \"device\" is \"" + device + "\"; this program has the model's code for " +
                    known +
                    ". Take one of these, \"auto\", or package the model anew: wherry "
                    "package MODEL --target PLATFORM:" +
                    kind_of(device));
  }
  return kept;
}

std::string obstacle(const Code& code, bool automatic, const std::string& cache_folder) {
  const std::vector<std::string> missing = missing_features(code.features);
  if (!missing.empty()) {
    std::string names;
    for (const std::string& name : missing) names += (names.empty() ? "" : ", ") + name;
    return "this machine's CPUs lack " + names;
  }
  const std::string kind = kind_of(code.device);
  if (kind == "cpu") return "";
  try {
    open_driver(kind, "", cache_folder);
    return obstacle_of_devices(code.device, automatic);
  } catch (const Error& error) {
    return error.what();
  }
}

}  // namespace wherry::app
