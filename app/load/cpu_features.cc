#include "app/load/cpu_features.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <sstream>

#if defined(__linux__) && defined(__aarch64__)
#include <sys/auxv.h>
#endif

#include "support/matrix_units.h"

namespace wherry::app {

namespace {

#if defined(__linux__) && defined(__aarch64__)
// Bits of AT_HWCAP and AT_HWCAP2 (Linux, arch/arm64/include/uapi/asm/hwcap.h). The kernel sets
// those that all cores have, which differ on phones with cores of several sizes.
std::set<std::string> read_features() {
  const unsigned long first = getauxval(AT_HWCAP), second = getauxval(AT_HWCAP2);
  std::set<std::string> matches;
  if ((first & 1ul << 1) != 0) matches.insert("asimd");
  if ((first & 1ul << 10) != 0) matches.insert("asimdhp");
  if ((first & 1ul << 20) != 0) matches.insert("asimddp");
  if ((second & 1ul << 13) != 0) matches.insert("i8mm");
  return matches;
}
#else
std::set<std::string> read_features() {
  std::ifstream file("/proc/cpuinfo");
  const std::set<std::string> matches =
      features_of_all(std::string(std::istreambuf_iterator<char>(file), {}));
  return matches.count("amx_tile") != 0 && !allow_matrix_units() ? without_matrix_units(matches)
                                                                 : matches;
}
#endif

}  // namespace

std::set<std::string> features_of_all(const std::string& cpuinfo) {
  std::set<std::string> common;
  bool first = true;
  std::istringstream lines(cpuinfo);
  for (std::string line; std::getline(lines, line);) {
    const size_t colon = line.find(':');
    if (line.rfind("flags", 0) != 0 || colon == line.npos) continue;
    std::istringstream words(line.substr(colon + 1));
    const std::set<std::string> own{std::istream_iterator<std::string>(words), {}};
    std::set<std::string> both;
    std::set_intersection(common.begin(), common.end(), own.begin(), own.end(),
                          std::inserter(both, both.begin()));
    common = first ? own : both;
    first = false;
  }
  return common;
}

std::set<std::string> without_matrix_units(std::set<std::string> features) {
  for (const char* name : {"amx_bf16", "amx_tile"}) features.erase(name);
  return features;
}

const std::set<std::string>& cpu_features() {
  static const std::set<std::string> match = read_features();
  return match;
}

std::vector<std::string> missing_features(const std::vector<std::string>& required) {
  const std::set<std::string>& has = cpu_features();
  std::vector<std::string> missing;
  for (const std::string& feature : required) {
    if (has.count(feature) == 0) missing.push_back(feature);
  }
  return missing;
}

}  // namespace wherry::app
