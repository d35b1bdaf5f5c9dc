// A processing step of a tokenizer: normalizer, pre-tokenizer or decoder.
#ifndef WHERRY_APP_TEXT_STEPS_STEP_H_
#define WHERRY_APP_TEXT_STEPS_STEP_H_

#include <memory>
#include <utility>
#include <vector>

namespace wherry::text {

template <typename Subject>
class Step {
 public:
  virtual ~Step() = default;
  virtual void apply(Subject&) const = 0;
};

// Returns a step that calls the function `apply`.
template <typename Subject, typename Apply>
std::unique_ptr<Step<Subject>> make_step(Apply apply) {
  class FunctionStep : public Step<Subject> {
   public:
    explicit FunctionStep(Apply apply) : apply_(std::move(apply)) {}
    void apply(Subject& subject) const override { apply_(subject); }

   private:
    Apply apply_;
  };
  return std::make_unique<FunctionStep>(std::move(apply));
}

// Returns a step that runs several steps in order.
template <typename Subject>
std::unique_ptr<Step<Subject>> make_sequence(
    std::vector<std::shared_ptr<const Step<Subject>>> all) {
  return make_step<Subject>([all = std::move(all)](Subject& subject) {
    for (const auto& each : all) each->apply(subject);
  });
}

}  // namespace wherry::text

#endif  // WHERRY_APP_TEXT_STEPS_STEP_H_
