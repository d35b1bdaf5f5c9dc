// The step budget for converting one schema, which is the same on every machine.
#ifndef WHERRY_APP_GRAMMAR_SCHEMA_STEPS_H_
#define WHERRY_APP_GRAMMAR_SCHEMA_STEPS_H_

#include <cstddef>
#include <stdexcept>
#include <string>

namespace wherry::app {

// The error for a keyword that cannot be enforced, with its path and the reason.
class NotEnforced : public std::runtime_error {
 public:
  NotEnforced(std::string place, const std::string& why)
      : std::runtime_error(why), place_(std::move(place)) {}
  const std::string& place() const { return place_; }

 private:
  std::string place_;
};

class Steps {
 public:
  // Takes steps from the budget. Throws NotEnforced when the budget is used up.
  void take(size_t steps = 1) {
    if (steps > left_) throw NotEnforced("", "the schema is too large to be made a grammar");
    left_ -= steps;
  }

 private:
  size_t left_ = 4'000'000;  // steps that take some tenths of a second
};

}  // namespace wherry::app

#endif  // WHERRY_APP_GRAMMAR_SCHEMA_STEPS_H_
