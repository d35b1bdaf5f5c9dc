// The handles of wherry.h, for tests that put a fake model behind them.
#ifndef WHERRY_ENGINE_ABI_C_API_H_
#define WHERRY_ENGINE_ABI_C_API_H_

#include <memory>
#include <string>

#include "model/model.h"
#include "model/vm_model.h"
#include "scheduling/engine.h"
#include "wherry.h"

struct wherry_model {
  std::shared_ptr<const wherry::Model> model;
};

struct wherry_loader {
  wherry::VmLoader loader;
  std::string tensors;  // see wherry_loader_tensors
};

struct wherry_engine {
  wherry::Engine engine;
};

#endif  // WHERRY_ENGINE_ABI_C_API_H_
