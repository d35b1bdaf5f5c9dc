// The features of this machine's CPUs.
#ifndef WHERRY_APP_CHAT_CPU_FEATURES_H_
#define WHERRY_APP_CHAT_CPU_FEATURES_H_

#include <set>
#include <string>
#include <vector>

namespace wherry::app {

// Returns the features that all CPUs of this machine have, in Linux's names ("asimddp", "avx2");
// empty if they cannot be read. On Arm these are the features that compiled models may need. AMX is
// among them where the system lets this process use it, for which the first call asks.
const std::set<std::string>& cpu_features();

// Returns the features of a file in the form of /proc/cpuinfo of x86-64 that all its CPUs have.
std::set<std::string> features_of_all(const std::string& cpuinfo);

// Returns the features but those of AMX.
std::set<std::string> without_matrix_units(std::set<std::string> features);

// Returns the wanted features that this machine lacks, or that cannot be read.
std::vector<std::string> missing_features(const std::vector<std::string>& required);

}  // namespace wherry::app

#endif  // WHERRY_APP_CHAT_CPU_FEATURES_H_
