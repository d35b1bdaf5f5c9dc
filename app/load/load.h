// Loads a model on the first device of a package that works, with an engine for it.
#ifndef WHERRY_APP_CHAT_LOAD_H_
#define WHERRY_APP_CHAT_LOAD_H_

#include <string>
#include <vector>

#include "app/load/app.h"
#include "app/load/codes.h"
#include "app/load/folder.h"
#include "app/request/fields.h"

namespace wherry::app {

// A model on a device, with its engine, and what was passed over before it.
struct Loaded {
  ModelPtr model;
  EnginePtr engine;
  Code code;
  std::vector<PassedOver> passed;
};

// Returns whether wherry_engine_create has an option of this name.
bool is_engine_option(const std::string& name);

// Returns an option's text; "" if it is missing. Throws Error if it is no text.
std::string text_option(const Fields& options, const char* name);

// Loads the first library of the model that runs on this machine. Throws Error; if none runs, with
// each library's obstacle.
Loaded load_model(const std::string& folder, const Fields& options, const Manifest& manifest);

}  // namespace wherry::app

#endif  // WHERRY_APP_CHAT_LOAD_H_
