// What a chat template may cost: steps, bytes and time of one rendering.
//
// As runtime_py/text/template_budget.py has it: a template came with a model, and is a program.
// Each turn of a loop, call, filter, test, comparison and attribute is a step; no value comes into
// being whose text would be larger than `most`; all that is made together stays under a limit.
#ifndef WHERRY_ENGINE_APP_TEMPLATE_BUDGET_H_
#define WHERRY_ENGINE_APP_TEMPLATE_BUDGET_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "app/template/value.h"

namespace wherry::jinja {

class Budget {
 public:
  // given: characters of the request. gone: whether nobody waits any more; asked now and then.
  Budget(size_t given, std::function<bool()> gone);

  void step(size_t size = 0);     // pays for one that reads or makes `size` bytes
  void check(size_t size) const;  // refuses a value of this size, which is yet to be made
  Value made(Value value);        // pays for a value that has come into being
  void made_text(size_t chars);
  // All that an iterator has left, paid for one by one.
  Values listed(const Value& values);

  // A call of a macro deeper; fails where Python's would.
  void enter();
  void leave() { --depth_; }
  // A level of the template's tree deeper: bounds the stack.
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
  double end_;  // of the thread's own time, seconds
  int depth_ = 0, levels_ = 0;
  std::function<bool()> gone_;
};

// Nobody waits for the rendering any more.
class Abandoned {};

// A number that a text's width, or the number of its pieces, comes to.
void check_width(const Value* value);

}  // namespace wherry::jinja

#endif  // WHERRY_ENGINE_APP_TEMPLATE_BUDGET_H_
