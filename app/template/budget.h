// The limits of one template rendering: steps, bytes and time.
//
// A template comes from the model's
// author and is an untrusted program. Each loop iteration, call, filter, test, comparison and
// attribute access is a step; no value may have a text longer than `most`; the total size of all
// created values is limited.
#ifndef WHERRY_APP_TEMPLATE_BUDGET_H_
#define WHERRY_APP_TEMPLATE_BUDGET_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "app/value/value.h"

namespace wherry::jinja {

using namespace json;

class Budget {
 public:
  // given: number of characters of the request. gone: polled; returns true if the client has
  // aborted the request.
  Budget(size_t given, std::function<bool()> gone);

  void step(size_t size = 0);     // pays for one step that reads or creates `size` bytes
  void check(size_t size) const;  // throws if a new value of this size would be too large
  Value charged(Value value);     // pays for a new value and returns it
  void charge_text(size_t chars);
  // Returns the remaining items of an iterator, paying for each item.
  Values listed(const Value& values);

  // Enters a macro call; fails at the depth where Python fails.
  void enter();
  void leave() { --depth_; }
  // Counts one level of recursion over the template's tree; the limit protects the stack.
  struct Level {
    explicit Level(Budget& budget) : budget_(budget) { budget_.descend(); }
    ~Level() { --budget_.levels_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;

   private:
    Budget& budget_;
  };

 private:
  void pay(size_t size);
  void look();
  void descend();

  size_t most_;
  int64_t bytes_left_, steps_left_;
  double end_;  // CPU time in seconds at which the thread must end
  int depth_ = 0, levels_ = 0;
  std::function<bool()> gone_;
};

// The exception for a client that has aborted the request during its rendering.
class Abandoned {};

// Checks a number that determines a text's width or the number of its pieces.
void check_width(const Value* value);

}  // namespace wherry::jinja

#endif  // WHERRY_APP_TEMPLATE_BUDGET_H_
