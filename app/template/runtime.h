// Executes a parsed template.
#ifndef WHERRY_APP_TEMPLATE_RUNTIME_H_
#define WHERRY_APP_TEMPLATE_RUNTIME_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "app/template/budget.h"
#include "app/template/functions.h"
#include "app/template/objects.h"
#include "app/template/syntax.h"

namespace wherry::jinja {

// The variables of one scope; look-up goes from the innermost scope outward.
struct Frame {
  std::shared_ptr<Frame> parent;
  std::vector<std::pair<Name, Value>> variables;

  void set(Name name, Value value);
  const Value* find(Name name) const;
};
using FramePtr = std::shared_ptr<Frame>;

// The output buffer of a template, macro or block.
struct Output {
  std::string text;
  size_t chars = 0;
};

class Runtime {
 public:
  // given: the caller's variables; globals: the built-in variables. All must outlive the runtime.
  Runtime(const Program& program, const Dict& given, const Dict& globals, Budget& budget);
  ~Runtime();  // breaks reference cycles of namespaces and macros
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  std::string render();

  Budget& budget() { return budget_; }
  Value call(const Value& function, const Arguments& given);
  Value filtered(const Filter& filter, const Value& value, Arguments given);
  bool tested(const Test& test, const Value& value, const Arguments& given);
  Value item_of(const Value& value, const Value& key);

 private:
  enum class Flow { kNext, kBreak, kContinue };

  // Execute statements; runtime.cc implements them.
  Flow run(const Statements& body, const FramePtr& frame, Output& out);
  Flow run(const Statement& node, const FramePtr& frame, Output& out);
  Flow run_set_block(const Statement& node, const FramePtr& frame);
  Flow run_filter_block(const Statement& node, const FramePtr& frame, Output& out);
  Flow run_with(const Statement& node, const FramePtr& frame, Output& out);
  void run_for(const Statement& node, const Value& items, const FramePtr& outer, int64_t depth0,
               Output& out);
  Next source_of(const Statement& node, const Value& items, const FramePtr& outer);
  std::string loop_text(const Statement& node, const Value& items, const FramePtr& outer,
                        int64_t depth0);
  void run_block(const Statement& node, Output& out);
  Value macro(const Statement& node, const FramePtr& frame, const std::string& name);
  Value call_macro(const Statement& node, const FramePtr& outer, const std::string& name,
                   const Arguments& given);
  void write(Output& out, const std::string& text, size_t chars);
  void print(Output& out, const Value& value);
  void assign(const Expression& target, const Value& value, const FramePtr& frame);
  void check_namespaces(const Expression& target, const FramePtr& frame);
  void unpack(const Expression& target, const Value& value, const FramePtr& frame);

  // Evaluate expressions; expressions.cc implements them.
  Value evaluate(const Expression& node, const FramePtr& frame);
  Value lookup(Name name, const FramePtr& frame);
  Value function_of(const Expression& called, const FramePtr& frame);
  Value run_call(const Expression& node, const FramePtr& frame, const Value* caller);
  Value run_filter(const Expression& node, const Value& value, const FramePtr& frame);
  Value run_concat(const Expression& node, const FramePtr& frame);
  Value run_compare(const Expression& node, const FramePtr& frame);
  Arguments arguments_of(const CallArguments& given, const FramePtr& frame);
  Value self_blocks();

  const Program& program_;
  const Dict& given_;
  const Dict& globals_;
  Budget& budget_;
  FramePtr root_;
  std::vector<FramePtr> kept_;  // frames to which macros refer
  std::vector<std::shared_ptr<const Object>> namespaces_;
};

}  // namespace wherry::jinja

#endif  // WHERRY_APP_TEMPLATE_RUNTIME_H_
