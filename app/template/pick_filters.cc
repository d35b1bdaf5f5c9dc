// Implements filters that select items: by a test, by an attribute, by presence.
#include "app/template/functions.h"
#include "app/template/operators.h"
#include "app/template/runtime.h"
#include "app/value/unicode/characters.h"

namespace wherry::jinja {

Getter::Getter(Runtime& runtime, const Value* attribute, const Value* otherwise, bool ignore_case)
    : runtime_(runtime), otherwise_(otherwise), ignore_case_(ignore_case) {
  if (otherwise_ != nullptr && otherwise_->is_none()) otherwise_ = nullptr;
  if (otherwise_ != nullptr) otherwise_value_ = *otherwise_;
  if (attribute == nullptr || attribute->is_none()) return;
  if (!attribute->is_string()) {
    path_.push_back(*attribute);
    return;
  }
  const std::string& text = attribute->text();
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find('.', at), text.size());
    const std::string part = text.substr(at, end - at);
    const bool number =
        !part.empty() && part.size() < 18 && part.find_first_not_of("0123456789") == part.npos;
    path_.push_back(number ? Value(static_cast<int64_t>(std::stoll(part))) : Value(part));
    at = end + 1;
  }
}

Value Getter::operator()(const Value& item) const {
  Value value = item;
  for (const Value& part : path_) {
    value = runtime_.item_of(value, part);
    if (otherwise_ != nullptr && value.is(Kind::kUndefined)) value = otherwise_value_;
  }
  return ignore_case_ && value.is_string() ? Value(lower(value.text())) : value;
}

namespace {

Arguments without_first(const Arguments& given, size_t count) {
  Arguments arguments = given;
  arguments.positional.erase(arguments.positional.begin(),
                             arguments.positional.begin() + static_cast<int64_t>(count));
  return arguments;
}

Next by_attribute_of(Runtime& runtime, const Value& value, const Arguments& given) {
  for (const auto& [name, one] : given.named) {
    if (name != "attribute" && name != "default") fail("there is an argument of another name");
  }
  const Getter getter(runtime, given.by_name("attribute"), given.by_name("default"));
  return [turns = iterate(value), getter](Value& result) {
    Value item;
    if (!turns(item)) return false;
    result = getter(item);
    return true;
  };
}

Value map(Runtime& runtime, const Value& value, const Arguments& given) {
  return make_generator([&runtime, value, given]() -> Next {
    if (!truth(value)) return [](Value&) { return false; };
    if (given.positional.empty() && given.by_name("attribute") != nullptr) {
      return by_attribute_of(runtime, value, given);
    }
    if (given.positional.empty()) fail("map requires a filter argument");
    return [&runtime, turns = iterate(value), name = to_string(given.positional[0]),
            rest = without_first(given, 1)](Value& result) {
      Value item;
      if (!turns(item)) return false;
      const Filter* filter = find_filter(name);
      if (filter == nullptr) fail("there is no filter " + name);
      result = runtime.filtered(*filter, item, rest);
      return true;
    };
  });
}

template <bool keeps, bool by_attribute>
Value choose(Runtime& runtime, const Value& value, const Arguments& given) {
  return make_generator([&runtime, value, given]() -> Next {
    if (!truth(value)) return [](Value&) { return false; };
    if (by_attribute && given.positional.empty()) fail("an attribute is missing");
    const Getter getter(runtime, by_attribute ? &given.positional[0] : nullptr);
    const size_t used = by_attribute ? 1 : 0;
    std::string name;
    Arguments rest;
    if (given.positional.size() > used) {
      name = to_string(given.positional[used]);
      rest = without_first(given, used + 1);
    }
    return [&runtime, turns = iterate(value), getter, name, rest](Value& item) {
      while (turns(item)) {
        const Value picked = getter(item);
        const Test* test = name.empty() ? nullptr : find_test(name);
        if (!name.empty() && test == nullptr) fail("there is no test " + name);
        const bool holds = test ? runtime.tested(*test, picked, rest) : truth(picked);
        if (holds == keeps) return true;
      }
      return false;
    };
  });
}

Value otherwise(Runtime&, const Value& value, const Arguments& given) {
  const Bound arguments(given, {"default_value=", "boolean="});
  const bool empty = arguments[1] && truth(*arguments[1]) && !truth(value);
  return value.is(Kind::kUndefined) || empty ? arguments.or_else(0, Value("")) : value;
}

Value attr(Runtime&, const Value& value, const Arguments& given) {
  const Bound arguments(given, {"name"});
  use(value);
  const std::string name = to_string(*arguments[0]);
  if (!method_of(value, name)) {  // an item with this name is not an attribute
    return attribute(value.is_dict() ? make_dict({}) : value, Value(name));
  }
  return attribute(value, Value(name));
}

}  // namespace

const Filter kPickFilters[] = {
    {"attr", attr},
    {"d", otherwise, true},
    {"default", otherwise, true},
    {"map", map},
    {"reject", choose<false, false>, false, true},
    {"rejectattr", choose<false, true>, false, true},
    {"select", choose<true, false>, false, true},
    {"selectattr", choose<true, true>, false, true},
    {nullptr, nullptr},
};

const Filter* find_filter(std::string_view name) {
  for (const Filter* table : {kTextFilters, kListFilters, kPickFilters}) {
    for (const Filter* row = table; row->name != nullptr; ++row) {
      if (name == row->name) return row;
    }
  }
  return nullptr;
}

}  // namespace wherry::jinja
