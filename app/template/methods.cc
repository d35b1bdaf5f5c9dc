// Implements the methods of texts, numbers, lists and dictionaries, and those by which a namespace
// changes its lists.
#include <algorithm>
#include <cmath>
#include <set>

#include "app/template/operators.h"
#include "app/template/text_methods.h"
#include "app/value/code_points.h"
#include "app/value/unicode/characters.h"

namespace wherry::jinja {

namespace {

Value unsafe(const std::string& name) { return undefined_because(name + " is not for templates"); }

Value bound(const Value& owner, const std::string& name,
            Value (*run)(Budget&, const Value&, const Arguments&)) {
  return make_function(
      name,
      [owner, run](Budget& budget, const Arguments& given) { return run(budget, owner, given); },
      "builtin_function_or_method");
}

Value get(Budget&, const Value& owner, const Arguments& given) {
  const Bound arguments(given, {"key", "default="});
  const Value* match = owner.dict().find(*arguments[0]);
  return match != nullptr ? *match : arguments.or_else(1, Value());
}

Value view(const Value& owner, char part) {
  auto result = std::make_shared<View>();
  result->part = part;
  result->of = owner;
  return Value(Kind::kView, std::move(result));
}

Value fromkeys(Budget& budget, const Value&, const Arguments& given) {
  const Bound arguments(given, {"iterable", "value="});
  std::vector<std::pair<Value, Value>> items;
  const Value value = arguments.or_else(1, Value());
  size_t size = 0;
  for (const Value& key : budget.listed(*arguments[0])) {
    size += size_of(key) + size_of(value);
    budget.check(size);
    items.emplace_back(key, value);
  }
  return make_dict(std::move(items));
}

std::optional<Value> of_dict(const Value& owner, const std::string& name) {
  static const std::set<std::string> kChanging = {"clear", "pop", "popitem", "setdefault",
                                                  "update"};
  if (name == "get") return bound(owner, name, get);
  if (name == "items") {
    return bound(owner, name, [](Budget&, const Value& d, const Arguments& given) {
      return Bound(given, {}), view(d, 'i');
    });
  }
  if (name == "keys") {
    return bound(owner, name, [](Budget&, const Value& d, const Arguments& given) {
      return Bound(given, {}), view(d, 'k');
    });
  }
  if (name == "values") {
    return bound(owner, name, [](Budget&, const Value& d, const Arguments& given) {
      return Bound(given, {}), view(d, 'v');
    });
  }
  if (name == "copy") {
    return bound(owner, name, [](Budget&, const Value& d, const Arguments&) { return d; });
  }
  if (name == "fromkeys") return bound(owner, name, fromkeys);
  if (kChanging.count(name) > 0) return unsafe(name);
  return std::nullopt;
}

Value index_of(Budget&, const Value& owner, const Arguments& given) {
  const Bound arguments(given, {"value"});
  const Values& items = owner.items();
  const auto match = std::find_if(items.begin(), items.end(),
                                  [&](const Value& v) { return equal(v, *arguments[0]); });
  if (match == items.end()) fail("the value is not there");
  return Value(static_cast<int64_t>(match - items.begin()));
}

Values everything(const Value& owner) {
  Values values;
  Next next = iterate(owner);
  for (Value one; next(one);) values.push_back(one);
  return values;
}

Value count_of(Budget&, const Value& owner, const Arguments& given) {
  const Bound arguments(given, {"value"});
  const Values& items = owner.items();
  return Value(static_cast<int64_t>(std::count_if(
      items.begin(), items.end(), [&](const Value& v) { return equal(v, *arguments[0]); })));
}

std::optional<Value> of_list(const Value& owner, const std::string& name) {
  static const std::set<std::string> kChanging = {"append", "clear",  "extend",  "insert",
                                                  "pop",    "remove", "reverse", "sort"};
  if (name == "index") return bound(owner, name, index_of);
  if (name == "count") return bound(owner, name, count_of);
  if (!owner.is(Kind::kList)) return std::nullopt;
  if (name == "copy") {
    return bound(owner, name, [](Budget&, const Value& l, const Arguments&) { return l; });
  }
  if (kChanging.count(name) > 0) return unsafe(name);
  return std::nullopt;
}

std::optional<Value> of_number(const Value& owner, const std::string& name) {
  if (name == "real" || (name == "numerator" && owner.is_integer())) return owner;
  if (owner.is(Kind::kFloat) && name == "is_integer") {
    return bound(owner, name, [](Budget&, const Value& v, const Arguments&) {
      return Value(v.number() == std::floor(v.number()));
    });
  }
  if (owner.is_integer() && name == "bit_length") {
    return bound(owner, name, [](Budget&, const Value& v, const Arguments&) {
      int64_t bits = 0;
      for (uint64_t rest = static_cast<uint64_t>(std::llabs(v.integer())); rest; rest >>= 1) ++bits;
      return Value(bits);
    });
  }
  return std::nullopt;
}

Value cycled(Budget&, const Value& owner, const Arguments& given) {
  if (given.positional.empty()) fail("cycle takes at least one value");
  const auto at = static_cast<size_t>(owner.as<Loop>().index0) % given.positional.size();
  return given.positional[at];
}

Value changed(Budget&, const Value& owner, const Arguments& given) {
  const auto& loop = owner.as<Loop>();
  const Value now = make_tuple(given.positional);
  if (loop.changed && equal(*loop.changed, now)) return Value(false);
  loop.changed = now;
  return Value(true);
}

std::optional<Value> of_loop(const Value& owner, const std::string& name) {
  const auto& loop = owner.as<Loop>();
  if (name == "index") return Value(loop.index0 + 1);
  if (name == "index0") return Value(loop.index0);
  if (name == "first") return Value(loop.index0 == 0);
  if (name == "last") return Value(!loop.peek());
  if (name == "length") return Value(loop.count());
  if (name == "revindex") return Value(loop.count() - loop.index0);
  if (name == "revindex0") return Value(loop.count() - loop.index0 - 1);
  if (name == "depth") return Value(loop.depth0 + 1);
  if (name == "depth0") return Value(loop.depth0);
  if (name == "cycle") return bound(owner, name, cycled);
  if (name == "changed") return bound(owner, name, changed);
  if (name == "previtem") {
    return loop.before ? *loop.before : undefined_because("there is no previous item");
  }
  if (name == "nextitem") {
    return loop.peek() ? *loop.after : undefined_because("there is no next item");
  }
  return std::nullopt;
}

// Marks the texts in a markup method's result as markup.
Value as_markup(const Value& result) {
  if (result.is_string()) return Value::markup(result.text());
  if (!result.is_sequence()) return result;
  Values items;
  for (const Value& item : result.items()) items.push_back(as_markup(item));
  return result.is(Kind::kList) ? make_list(std::move(items)) : make_tuple(std::move(items));
}

// Takes an item out of a list, as Python's list.pop does.
Value popped(Values& items, const Arguments& given) {
  const Bound arguments(given, {"index="});
  const Value index = arguments.or_else(0, Value(-1));
  if (!index.is_integer()) fail("pop takes an integer");
  const auto size = static_cast<int64_t>(items.size());
  const int64_t at = index.integer() < 0 ? index.integer() + size : index.integer();
  if (at < 0 || at >= size) fail("pop from a list without such an item");
  Value item = items[static_cast<size_t>(at)];
  items.erase(items.begin() + at);
  return item;
}

}  // namespace

bool changes_lists(const std::string& name) { return name == "append" || name == "pop"; }

Value changing_method(const Value& owner, const std::string& list, const std::string& name) {
  return make_function(
      name,
      [=](Budget& budget, const Arguments& given) {
        const auto& space = owner.as<Namespace>();
        Values items = space.find(list)->items();
        Value result;
        if (name == "pop") {
          result = popped(items, given);
        } else {
          const Bound arguments(given, {"object"});
          items.push_back(*arguments[0]);
        }
        space.set(list, budget.charged(make_list(std::move(items))));
        return result;
      },
      "builtin_function_or_method");
}

std::optional<Value> method_of(const Value& owner, const std::string& name) {
  switch (owner.kind()) {
    case Kind::kString: {
      const TextMethod method = find_text_method(name);
      if (method == nullptr) return std::nullopt;
      if (!owner.is_markup()) return bound(owner, name, method);
      return make_function(
          name,
          [owner, method](Budget& budget, const Arguments& given) {
            return as_markup(method(budget, owner, given));
          },
          "builtin_function_or_method");
    }
    case Kind::kDict:
      return of_dict(owner, name);
    case Kind::kList:
    case Kind::kTuple:
      return of_list(owner, name);
    case Kind::kBool:
    case Kind::kInt:
    case Kind::kFloat:
      return of_number(owner, name);
    case Kind::kRange:
      if (name == "index" || name == "count") {
        return bound(make_list(everything(owner)), name, name == "index" ? index_of : count_of);
      }
      if (name == "start") return Value(owner.as<Range>().start);
      if (name == "stop") return Value(owner.as<Range>().stop);
      if (name == "step") return Value(owner.as<Range>().step);
      return std::nullopt;
    case Kind::kLoop:
      return of_loop(owner, name);
    case Kind::kNamespace: {
      const Value* match = owner.as<Namespace>().find(name);
      return match != nullptr ? std::optional<Value>(*match) : std::nullopt;
    }
    case Kind::kFunction:
      for (const auto& [key, value] : owner.as<Function>().attributes) {
        if (key == name) return value;
      }
      return std::nullopt;
    default:
      return std::nullopt;
  }
}

}  // namespace wherry::jinja
