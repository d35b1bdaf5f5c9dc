// The compiled libraries of one model, and the order in which a load tries them.
//
// A package may have a library for each of several devices and levels of CPUs. They are linked into
// the program, with a table in JSON that `wherry package` writes (src/wherry/packager/linked.py):
//
//   {"<symbol prefix in the manifest>": [{"device": "opencl", "name": "opencl:128",
//     "symbols": "<prefix of this library>", "tower": "<prefix of its tower's>", or "" without one,
//     "features": [...]}, ...]}, the preferred ones first
#ifndef WHERRY_APP_CHAT_CODES_H_
#define WHERRY_APP_CHAT_CODES_H_

#include <string>
#include <vector>

#include "app/load/folder.h"

namespace wherry::app {

// One compiled library of a model.
struct Code {
  std::string device;                 // kind and index, as in option "device": "cpu", "opencl:0"
  std::string name;                   // name of the target: "cpu:armv8-a+dotprod"; "" if not known
  std::string library;                // argument of wherry_model_load
  std::string tower;                  // its option "vision"; "" if the model takes no images
  std::vector<std::string> features;  // features that CPUs need, in Linux's names
};

// A library that a load passed over, and why.
struct PassedOver {
  std::string name, reason;
};

// Returns the libraries of a model that is linked into the program, the preferred ones first; empty
// if the program has no table of them.
std::vector<Code> linked_codes(const Manifest& manifest);

// Keeps the libraries that suit option "device": "" and "auto" all of them, else those for this
// device. Throws Error if there is none.
std::vector<Code> codes_for(const std::string& device, const std::vector<Code>& all);

// Returns why a library cannot run here, found without loading it; "" if nothing is known.
// automatic: whether the user named no device, so that software that imitates a GPU is refused.
// cache_folder: as in `open_driver`; empty: no cache.
std::string obstacle(const Code& code, bool automatic, const std::string& cache_folder);

}  // namespace wherry::app

#endif  // WHERRY_APP_CHAT_CODES_H_
