// Evaluates the expressions of a template.
#include "app/template/operators.h"
#include "app/template/runtime.h"

namespace wherry::jinja {

Value Runtime::lookup(Name name, const FramePtr& frame) {
  if (const Value* match = frame->find(name)) return *match;
  if (const Value* match = given_.find(std::string_view(*name))) return *match;
  if (const Value* match = globals_.find(std::string_view(*name))) return *match;
  return *name == "self" ? self_blocks() : undefined(*name);
}

Value Runtime::self_blocks() {
  std::vector<std::pair<Value, Value>> pairs;
  for (const auto& [name, node] : program_.blocks) {
    pairs.emplace_back(*name, make_function(*name, [this, block = node](Budget&, const Arguments&) {
      Output out;
      run_block(*block, out);
      budget_.charge_text(out.chars);
      return Value(std::move(out.text));
    }));
  }
  return make_dict(std::move(pairs));
}

Arguments Runtime::arguments_of(const CallArguments& given, const FramePtr& frame) {
  Arguments arguments;
  for (const ExpressionPtr& part : given.positional) {
    arguments.positional.push_back(evaluate(*part, frame));
  }
  for (const auto& [name, part] : given.named)
    arguments.named.emplace_back(name, evaluate(*part, frame));
  if (given.list) {
    for (Value& value : budget_.listed(evaluate(*given.list, frame))) {
      arguments.positional.push_back(std::move(value));
    }
  }
  if (given.dict) {
    const Value more = evaluate(*given.dict, frame);
    use(more);
    if (!more.is_dict()) fail("** takes a mapping");
    for (const auto& [key, value] : more.dict().items) {
      if (!key.is_string()) fail("** takes a mapping of names");
      arguments.named.emplace_back(key.text(), value);
    }
  }
  return arguments;
}

Value Runtime::call(const Value& function, const Arguments& given) {
  budget_.step();
  if (function.is(Kind::kLoop)) {
    const auto& loop = function.as<Loop>();
    if (!loop.recurse) fail("the loop is not recursive");
    const Bound bound(given, {"iterable"});
    return budget_.charged(loop.recurse(*bound[0], loop.depth0 + 1));
  }
  use(function);
  if (!function.is(Kind::kFunction)) fail("the value is not called");
  Value value = budget_.charged(function.as<Function>().call(budget_, given));
  if (value.is(Kind::kNamespace)) namespaces_.push_back(value.object());
  return value;
}

// Returns the function that a call names. A list of a namespace has methods that change it, too.
Value Runtime::function_of(const Expression& called, const FramePtr& frame) {
  if (called.kind != ExpressionKind::kAttribute || !changes_lists(called.constant.text()) ||
      called.parts[0]->kind != ExpressionKind::kAttribute) {
    return evaluate(called, frame);
  }
  const Expression& list = *called.parts[0];
  const Value owner = evaluate(*list.parts[0], frame);
  budget_.step();
  const Value values = attribute(owner, list.constant);
  budget_.step();
  if (!owner.is(Kind::kNamespace) || !values.is(Kind::kList)) {
    return attribute(values, called.constant);
  }
  return changing_method(owner, list.constant.text(), called.constant.text());
}

Value Runtime::run_call(const Expression& node, const FramePtr& frame, const Value* caller) {
  const Value function = function_of(*node.parts[0], frame);
  Arguments given = arguments_of(*node.arguments, frame);
  if (caller != nullptr) given.named.emplace_back("caller", *caller);
  return call(function, given);
}

Value Runtime::filtered(const Filter& filter, const Value& value, Arguments given) {
  Value input = value;
  if (value.is(Kind::kIterator) && !filter.outside) input = make_list(budget_.listed(value));
  budget_.step(filter.outside ? 0 : size_of(input));
  if (filter.of_characters && input.is_string()) budget_.check(4 * input.chars());
  if (filter.wide) {
    for (const Value& one : given.positional) check_width(&one);
    for (const auto& [name, one] : given.named) check_width(&one);
  }
  return budget_.charged(filter.run(*this, input, given));
}

bool Runtime::tested(const Test& test, const Value& value, const Arguments& given) {
  budget_.step();
  budget_.step();
  return test.run(*this, value, given);
}

Value Runtime::item_of(const Value& value, const Value& key) {
  budget_.step();
  return item(value, key);
}

Value Runtime::run_filter(const Expression& node, const Value& value, const FramePtr& frame) {
  const Value input = node.parts[0] ? run_filter(*node.parts[0], value, frame) : value;
  if (node.filter == nullptr) fail("there is no filter " + node.text);
  return filtered(*node.filter, input, arguments_of(*node.arguments, frame));
}

Value Runtime::run_concat(const Expression& node, const FramePtr& frame) {
  Values values;
  size_t size = 0;
  for (const ExpressionPtr& part : node.parts) {
    values.push_back(evaluate(*part, frame));
    size += size_of(values.back());
  }
  budget_.check(size);
  std::string result;
  for (const Value& value : values) {
    if (value.is_string()) {
      result += value.text();
    } else {
      result += to_string(value);
    }
  }
  return budget_.charged(Value(std::move(result)));
}

Value Runtime::run_compare(const Expression& node, const FramePtr& frame) {
  Value left = evaluate(*node.parts[0], frame);
  for (size_t i = 0; i < node.signs.size(); ++i) {
    Value right = evaluate(*node.parts[i + 1], frame);
    if (!compared(budget_, node.signs[i], left, right)) return Value(false);
    left = std::move(right);
  }
  return Value(true);
}

Value Runtime::evaluate(const Expression& node, const FramePtr& frame) {
  const Budget::Level level(budget_);
  const auto part = [&](size_t i) { return evaluate(*node.parts[i], frame); };
  switch (node.kind) {
    case ExpressionKind::kConstant:
      return node.constant;
    case ExpressionKind::kName:
    case ExpressionKind::kNamespaceRef:
      return lookup(node.name, frame);
    case ExpressionKind::kTuple:
    case ExpressionKind::kList: {
      Values items;
      for (const ExpressionPtr& one : node.parts) items.push_back(evaluate(*one, frame));
      const bool tuple = node.kind == ExpressionKind::kTuple;
      return budget_.charged(tuple ? make_tuple(std::move(items)) : make_list(std::move(items)));
    }
    case ExpressionKind::kDict: {
      std::vector<std::pair<Value, Value>> items;
      for (size_t i = 0; i < node.parts.size(); i += 2) {
        Value key = part(i);
        items.emplace_back(std::move(key), part(i + 1));
      }
      return budget_.charged(make_dict(std::move(items)));
    }
    case ExpressionKind::kAttribute: {
      const Value owner = part(0);
      budget_.step();
      return attribute(owner, node.constant);
    }
    case ExpressionKind::kItem: {
      const Value owner = part(0);
      return item_of(owner, part(1));
    }
    case ExpressionKind::kSlice: {
      Value bounds[3];
      const Value owner = part(0);
      for (size_t i = 0; i < 3; ++i) {
        if (node.parts[i + 1]) bounds[i] = part(i + 1);
      }
      return budget_.charged(slice(owner, bounds[0], bounds[1], bounds[2]));
    }
    case ExpressionKind::kCall:
      return run_call(node, frame, nullptr);
    case ExpressionKind::kFilter: {
      if (node.filter == nullptr) fail("there is no filter " + node.text);
      const Value value = part(0);
      return filtered(*node.filter, value, arguments_of(*node.arguments, frame));
    }
    case ExpressionKind::kTest: {
      if (node.test == nullptr) fail("there is no test " + node.text);
      const Value value = part(0);
      return Value(tested(*node.test, value, arguments_of(*node.arguments, frame)));
    }
    case ExpressionKind::kNot:
      return Value(!truth(part(0)));
    case ExpressionKind::kAnd: {
      Value left = part(0);
      return truth(left) ? part(1) : left;
    }
    case ExpressionKind::kOr: {
      Value left = part(0);
      return truth(left) ? left : part(1);
    }
    case ExpressionKind::kNegative:
      return negative(part(0));
    case ExpressionKind::kPositive:
      return positive(part(0));
    case ExpressionKind::kBinary: {
      const Value left = part(0);
      return binary(budget_, node.text, left, part(1));
    }
    case ExpressionKind::kConcat:
      return run_concat(node, frame);
    case ExpressionKind::kCompare:
      return run_compare(node, frame);
    case ExpressionKind::kChoice:
      if (truth(part(0))) return part(1);
      if (node.parts[2]) return part(2);
      return undefined_because("an if has no else");
  }
  return Value();
}

}  // namespace wherry::jinja
