// Metal's framework and Objective-C's run time in the least form: a list of one GPU that answers
// the messages of wherry/machine/metal_driver.py. FAMILY, a macro, is the newest that it is of.
#include <cstdint>
#include <cstring>
#include <set>
#include <string>

namespace {
const char kDevices[] = "devices", kGpu[] = "gpu", kName[] = "name";
}

extern "C" {

const void* MTLCopyAllDevices() { return kDevices; }

const char* sel_registerName(const char* name) {
  static std::set<std::string> names;
  return names.insert(name).first->c_str();
}

uint64_t objc_msgSend(const void* to, const char* selector, long argument) {
  auto is = [&](const void* receiver, const char* name) {
    return to == receiver && std::strcmp(selector, name) == 0;
  };
  if (is(kDevices, "count")) return 1;
  if (is(kDevices, "objectAtIndex:") && argument == 0) return reinterpret_cast<uint64_t>(kGpu);
  if (is(kGpu, "name")) return reinterpret_cast<uint64_t>(kName);
  if (is(kName, "UTF8String")) return reinterpret_cast<uint64_t>("Apple M1");
  if (is(kGpu, "recommendedMaxWorkingSetSize")) return 12ull << 30;
  if (is(kGpu, "currentAllocatedSize")) return 1ull << 30;
  if (is(kGpu, "maxBufferLength")) return 9ull << 30;
  if (is(kGpu, "hasUnifiedMemory")) return 1;
  if (is(kGpu, "supportsFamily:")) return argument <= FAMILY;
  __builtin_trap();
}
}
