// Defines the handles of wherry.h, so that tests can create a handle with a fake model.
#ifndef WHERRY_ENGINE_ABI_C_API_H_
#define WHERRY_ENGINE_ABI_C_API_H_

#include <memory>
#include <string>

#include "model/model.h"
#include "scheduling/engine.h"
#include "vm/vm_model.h"
#include "wherry.h"

struct wherry_model {
  std::shared_ptr<const wherry::Model> model;
};

struct wherry_loader {
  wherry::VmLoader loader;
  std::string tensors;  // text that wherry_loader_tensors returns
};

struct wherry_engine {
  wherry::Engine engine;
};

#endif  // WHERRY_ENGINE_ABI_C_API_H_
