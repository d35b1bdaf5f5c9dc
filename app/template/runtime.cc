#include "app/template/runtime.h"

#include <algorithm>

#include "app/template/operators.h"
#include "app/value/code_points.h"

namespace wherry::jinja {

void Frame::set(Name name, Value value) {
  for (auto& [known, kept] : variables) {
    if (known == name) {
      kept = std::move(value);
      return;
    }
  }
  variables.emplace_back(name, std::move(value));
}

const Value* Frame::find(Name name) const {
  for (const Frame* frame = this; frame != nullptr; frame = frame->parent.get()) {
    for (const auto& [known, kept] : frame->variables) {
      if (known == name) return &kept;
    }
  }
  return nullptr;
}

namespace {

FramePtr inner(const FramePtr& parent) {
  auto result = std::make_shared<Frame>();
  result->parent = parent;
  return result;
}

}  // namespace

Runtime::Runtime(const Program& program, const Dict& given, const Dict& globals, Budget& budget)
    : program_(program),
      given_(given),
      globals_(globals),
      budget_(budget),
      root_(std::make_shared<Frame>()) {}

Runtime::~Runtime() {
  for (const auto& kept : namespaces_) static_cast<const Namespace&>(*kept).attributes.clear();
  for (const FramePtr& frame : kept_) frame->variables.clear();
}

std::string Runtime::render() {
  Output out;
  run(program_.body, root_, out);
  budget_.charge_text(out.chars);
  return std::move(out.text);
}

void Runtime::write(Output& out, const std::string& text, size_t chars) {
  out.chars += chars;
  budget_.check(out.chars);
  out.text += text;
}

void Runtime::print(Output& out, const Value& value) {
  budget_.step(size_of(value));
  if (value.is_string()) {
    write(out, value.text(), value.chars());
  } else {
    const std::string text = to_string(value);
    write(out, text, count_code_points(text));
  }
}

Runtime::Flow Runtime::run(const Statements& body, const FramePtr& frame, Output& out) {
  for (const StatementPtr& node : body) {
    const Flow flow = run(*node, frame, out);
    if (flow != Flow::kNext) return flow;
  }
  return Flow::kNext;
}

Runtime::Flow Runtime::run(const Statement& node, const FramePtr& frame, Output& out) {
  const Budget::Level level(budget_);
  switch (node.kind) {
    case StatementKind::kText:
      write(out, node.text.text(), node.text.chars());
      break;
    case StatementKind::kPrint:
      for (const ExpressionPtr& part : node.parts) print(out, evaluate(*part, frame));
      break;
    case StatementKind::kFor:
      run_for(node, evaluate(*node.parts[1], frame), frame, 0, out);
      break;
    case StatementKind::kIf:
      for (size_t i = 0; i < node.parts.size(); ++i) {
        if (truth(evaluate(*node.parts[i], frame))) return run(node.branches[i], frame, out);
      }
      return run(node.otherwise, frame, out);
    case StatementKind::kSet:
      check_namespaces(*node.parts[0], frame);
      assign(*node.parts[0], evaluate(*node.parts[1], frame), frame);
      break;
    case StatementKind::kSetBlock:
      return run_set_block(node, frame);
    case StatementKind::kMacro:
      frame->set(node.name, macro(node, frame, *node.name));
      break;
    case StatementKind::kCallBlock: {
      const Value caller = macro(node, frame, "");
      print(out, run_call(*node.parts[0], frame, &caller));
      break;
    }
    case StatementKind::kFilterBlock:
      return run_filter_block(node, frame, out);
    case StatementKind::kWith:
      return run_with(node, frame, out);
    case StatementKind::kBlock:
      run_block(node, out);
      break;
    case StatementKind::kBreak:
      return Flow::kBreak;
    case StatementKind::kContinue:
      return Flow::kContinue;
    case StatementKind::kForeign:
      fail("there are no other templates");
  }
  return Flow::kNext;
}

Runtime::Flow Runtime::run_set_block(const Statement& node, const FramePtr& frame) {
  Output out;
  const FramePtr within = inner(frame);
  const Flow flow = run(node.body, within, out);
  if (flow != Flow::kNext) return flow;
  budget_.charge_text(out.chars);
  Value text(std::move(out.text));
  if (node.parts[1]) text = run_filter(*node.parts[1], text, within);
  assign(*node.parts[0], text, frame);
  return Flow::kNext;
}

Runtime::Flow Runtime::run_filter_block(const Statement& node, const FramePtr& frame, Output& out) {
  Output result;
  const FramePtr within = inner(frame);
  const Flow flow = run(node.body, within, result);
  if (flow != Flow::kNext) return flow;
  budget_.charge_text(result.chars);
  print(out, run_filter(*node.parts[0], Value(std::move(result.text)), within));
  return Flow::kNext;
}

Runtime::Flow Runtime::run_with(const Statement& node, const FramePtr& frame, Output& out) {
  const FramePtr within = inner(frame);
  for (size_t i = 0; i < node.parts.size(); i += 2) {
    assign(*node.parts[i], evaluate(*node.parts[i + 1], frame), within);
  }
  return run(node.body, within, out);
}

Next Runtime::source_of(const Statement& node, const Value& items, const FramePtr& outer) {
  Next turns = iterate(items);
  if (node.parts[2] == nullptr) {
    return [this, turns = std::move(turns)](Value& item) {
      if (!turns(item)) return false;
      budget_.step();
      return true;
    };
  }
  return [this, &node, outer, turns = std::move(turns)](Value& item) {
    while (turns(item)) {
      budget_.step();
      const FramePtr within = inner(outer);
      assign(*node.parts[0], item, within);
      if (truth(evaluate(*node.parts[2], within))) return true;
    }
    return false;
  };
}

void Runtime::run_for(const Statement& node, const Value& items, const FramePtr& outer,
                      int64_t depth0, Output& out) {
  auto loop = std::make_shared<Loop>();
  loop->source = source_of(node, items, outer);
  loop->depth0 = depth0;
  if (node.parts[2] == nullptr && has_length(items)) loop->length = length_of(items);
  if (node.recursive) {
    loop->recurse = [this, &node, outer](const Value& next, int64_t depth) {
      return Value(loop_text(node, next, outer, depth));
    };
  }
  static const std::string kLoop = "loop";
  const auto match = program_.names.find(kLoop);
  const Name name = match == program_.names.end() ? nullptr : &*match;
  const Value self(Kind::kLoop, loop);
  FramePtr frame = inner(outer);
  bool turned = false;
  for (Value item; loop->take(item);) {
    if (frame.use_count() > 1) {
      frame = inner(outer);
    } else {
      frame->variables.clear();
    }
    if (name != nullptr) frame->variables.emplace_back(name, self);
    assign(*node.parts[0], item, frame);
    const Flow flow = run(node.body, frame, out);
    if (flow == Flow::kBreak) break;
    turned = turned || flow == Flow::kNext;
  }
  if (!turned) run(node.otherwise, inner(outer), out);
}

std::string Runtime::loop_text(const Statement& node, const Value& items, const FramePtr& outer,
                               int64_t depth0) {
  budget_.enter();
  Output out;
  run_for(node, items, outer, depth0, out);
  budget_.leave();
  budget_.charge_text(out.chars);
  return std::move(out.text);
}

void Runtime::run_block(const Statement& node, Output& out) {
  budget_.enter();
  run(node.body, inner(root_), out);
  budget_.leave();
}

Value Runtime::macro(const Statement& node, const FramePtr& frame, const std::string& name) {
  auto result = std::make_shared<Function>();
  result->type = "Macro";
  result->name = name;
  result->call = [this, &node, frame, name](Budget&, const Arguments& given) {
    return call_macro(node, frame, name, given);
  };
  Values parameters;
  for (const Parameter& parameter : node.parameters) parameters.emplace_back(*parameter.name);
  result->attributes = {{"name", name},
                        {"arguments", make_tuple(std::move(parameters))},
                        {"catch_kwargs", node.takes_kwargs},
                        {"catch_varargs", node.takes_varargs},
                        {"caller", node.takes_caller}};
  kept_.push_back(frame);
  return Value(Kind::kFunction, std::move(result));
}

Value Runtime::call_macro(const Statement& node, const FramePtr& outer, const std::string& name,
                          const Arguments& given) {
  const FramePtr frame = inner(outer);
  const size_t count = node.parameters.size();
  std::vector<bool> used(given.named.size());
  const auto take = [&](std::string_view expected) -> const Value* {
    for (size_t i = 0; i < given.named.size(); ++i) {
      if (given.named[i].first != expected || used[i]) continue;
      used[i] = true;
      return &given.named[i].second;
    }
    return nullptr;
  };
  std::vector<const Value*> matches;
  bool own_caller = false;
  for (size_t i = 0; i < count; ++i) {
    own_caller = own_caller || *node.parameters[i].name == "caller";
    matches.push_back(i < given.positional.size() ? &given.positional[i]
                                                  : take(*node.parameters[i].name));
  }
  const auto name_of = [&](const char* text) { return &*program_.names.find(text); };
  if (node.takes_caller && !own_caller) {
    const Value* caller = take("caller");
    const bool none = caller == nullptr || caller->is_none();
    frame->set(name_of("caller"), none ? undefined("caller") : *caller);
  }
  std::vector<std::pair<Value, Value>> rest;
  for (size_t i = 0; i < given.named.size(); ++i) {
    if (!used[i]) rest.emplace_back(given.named[i].first, given.named[i].second);
  }
  if (node.takes_kwargs) {
    frame->set(name_of("kwargs"), make_dict(std::move(rest)));
  } else if (!rest.empty()) {
    fail("macro " + name + " does not take these arguments");
  }
  if (node.takes_varargs) {
    const size_t from = std::min(count, given.positional.size());
    frame->set(name_of("varargs"),
               make_tuple({given.positional.begin() + from, given.positional.end()}));
  } else if (given.positional.size() > count) {
    fail("macro " + name + " takes fewer arguments");
  }
  for (size_t i = 0; i < count; ++i) {
    const Parameter& parameter = node.parameters[i];
    frame->set(parameter.name, matches[i] != nullptr ? *matches[i]
                               : parameter.otherwise ? evaluate(*parameter.otherwise, frame)
                                                     : undefined(*parameter.name));
  }
  budget_.enter();
  Output out;
  run(node.body, frame, out);
  budget_.leave();
  budget_.charge_text(out.chars);
  return Value(std::move(out.text));
}

void Runtime::unpack(const Expression& target, const Value& value, const FramePtr& frame) {
  const size_t expected = target.parts.size();
  Values matches;
  Next next;
  try {
    next = iterate(value);
  } catch (const Failure&) {
    fail("the value has no items");
  }
  for (Value one; matches.size() <= expected && next(one);) matches.push_back(one);
  if (matches.size() > expected) fail("there are more values than names");
  if (matches.size() < expected) fail("there are fewer values than names");
  for (size_t i = 0; i < expected; ++i) assign(*target.parts[i], matches[i], frame);
}

void Runtime::check_namespaces(const Expression& target, const FramePtr& frame) {
  for (const ExpressionPtr& part : target.parts) check_namespaces(*part, frame);
  if (target.kind == ExpressionKind::kNamespaceRef &&
      !lookup(target.name, frame).is(Kind::kNamespace)) {
    fail("cannot assign attribute on non-namespace object");
  }
}

void Runtime::assign(const Expression& target, const Value& value, const FramePtr& frame) {
  if (target.kind == ExpressionKind::kTuple) return unpack(target, value, frame);
  if (target.kind == ExpressionKind::kName) return frame->set(target.name, value);
  check_namespaces(target, frame);
  lookup(target.name, frame).as<Namespace>().set(target.text, value);
}

}  // namespace wherry::jinja
