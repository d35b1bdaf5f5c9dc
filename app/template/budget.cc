#include "app/template/budget.h"

#include <time.h>

#include <cstdlib>

#include "app/template/objects.h"

namespace wherry::jinja {

namespace {

constexpr int64_t kSteps = 2'000'000;
constexpr double kSeconds = 5;
// Upper bound on the characters of a value, plus 4 per input character.
constexpr size_t kLargest = size_t{4} << 20;
// Upper bound on the bytes of all values, plus 64 per input character.
constexpr int64_t kTotal = int64_t{256} << 20;
constexpr int64_t kLook = 256;     // number of steps between checks of the clock
constexpr int kDeepestCall = 120;  // upper bound on nested macro calls
constexpr int kDeepestLevel = 2000;
constexpr int64_t kWidth = 10'000;

double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

}  // namespace

Budget::Budget(size_t given, std::function<bool()> gone)
    : most_(kLargest + 4 * given),
      bytes_left_(kTotal + 64 * static_cast<int64_t>(given)),
      steps_left_(kSteps),
      end_(thread_seconds() + kSeconds),
      gone_(std::move(gone)) {
  look();
}

void Budget::look() {
  if (gone_ && gone_()) throw Abandoned();
  if (thread_seconds() > end_) fail("it takes more than 5 s");
}

void Budget::step(size_t size) {
  const int64_t before = steps_left_;
  steps_left_ -= 1 + static_cast<int64_t>(size >> 10);
  if (steps_left_ < 0) fail("it takes more than " + std::to_string(kSteps) + " steps");
  if (before / kLook != steps_left_ / kLook) look();
}

void Budget::check(size_t size) const {
  if (size > most_) {
    fail("it makes a value of " + std::to_string(size) + " characters; at most " +
         std::to_string(most_) + " are made");
  }
}

void Budget::pay(size_t size) {
  bytes_left_ -= static_cast<int64_t>(size);
  if (bytes_left_ < 0) fail("it makes too much text");
  step(size);
}

void Budget::charge_text(size_t chars) {
  check(chars);
  pay(chars);
}

Value Budget::charged(Value value) {
  check(size_of(value));
  pay(value.is_string() ? value.chars() : 0);
  if (value.is_sequence()) pay(8 * value.items().size());
  if (value.is_dict()) pay(8 * value.dict().items.size());
  return value;
}

Values Budget::listed(const Value& values) {
  Values result;
  size_t total = 0;
  Next next = iterate(values);
  for (Value value; next(value);) {
    total += 8 + size_of(value);
    step();
    check(total);
    result.push_back(value);
  }
  return result;
}

void Budget::descend() {
  if (levels_ >= kDeepestLevel) fail("too deep");
  ++levels_;
}

void Budget::enter() {
  if (++depth_ > kDeepestCall) {
    --depth_;
    fail("too deep");
  }
}

void check_width(const Value* value) {
  if (value == nullptr) return;
  const bool wide =
      value->is(Kind::kInt) && (value->integer() > kWidth || value->integer() < -kWidth);
  if (wide || (value->is_string() && value->chars() > static_cast<size_t>(kWidth))) {
    fail("it asks for a text of great width");
  }
}

}  // namespace wherry::jinja
