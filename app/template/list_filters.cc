// Implements filters of lists: sorting, selection and aggregation.
#include <algorithm>

#include "app/template/functions.h"
#include "app/template/operators.h"
#include "app/template/runtime.h"
#include "app/value/unicode/characters.h"

namespace wherry::jinja {

namespace {

Value without_case(const Value& value) {
  return value.is_string() ? Value(lower(value.text())) : value;
}

bool is_set(const Value* value) { return value != nullptr && truth(*value); }

Values all_of(const Value& value) {
  use(value.is(Kind::kUndefined) ? Value() : value);
  Values values;
  Next next = iterate(value);
  for (Value item; next(item);) values.push_back(item);
  return values;
}

// Sorts items stably by keys that are computed once per item.
Values sorted(Budget& budget, const Values& items, const Values& keys, bool reverse) {
  std::vector<size_t> order(items.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  // A merge sort needs only pairwise comparisons, which may throw.
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    budget.step(std::min(size_of(keys[a]), size_of(keys[b])));
    return reverse ? compare(keys[b], keys[a], "<") < 0 : compare(keys[a], keys[b], "<") < 0;
  });
  Values values;
  for (size_t i : order) values.push_back(items[i]);
  return values;
}

Value sort(Runtime& runtime, const Value& value, const Arguments& given) {
  const Bound arguments(given, {"reverse=", "case_sensitive=", "attribute="});
  const bool fold = !is_set(arguments[1]);
  std::vector<Getter> getters;
  const Value* attribute = arguments[2];
  Values names;
  if (attribute != nullptr && attribute->is_string()) {
    const std::string& text = attribute->text();
    for (size_t at = 0; at <= text.size();) {
      const size_t end = std::min(text.find(',', at), text.size());
      names.emplace_back(text.substr(at, end - at));
      at = end + 1;
    }
  } else {
    names.push_back(attribute ? *attribute : Value());
  }
  for (const Value& name : names) getters.emplace_back(runtime, &name, nullptr, fold);
  const Values items = all_of(value);
  Values keys;
  for (const Value& item : items) {
    Values key;
    for (const Getter& getter : getters) key.push_back(getter(item));
    keys.push_back(make_list(std::move(key)));
  }
  return make_list(sorted(runtime.budget(), items, keys, is_set(arguments[0])));
}

Value dictsort(Runtime& runtime, const Value& value, const Arguments& given) {
  const Bound arguments(given, {"case_sensitive=", "by=", "reverse="});
  const std::string by = arguments[1] ? to_string(*arguments[1]) : "key";
  if (by != "key" && by != "value") fail("You can only sort by either \"key\" or \"value\"");
  use(value);
  if (!value.is_dict()) fail("a function takes a mapping");
  Values items, keys;
  for (const auto& [key, content] : value.dict().items) {
    items.push_back(make_tuple({key, content}));
    const Value& chosen = by == "key" ? key : content;
    keys.push_back(is_set(arguments[0]) ? chosen : without_case(chosen));
  }
  return make_list(sorted(runtime.budget(), items, keys, is_set(arguments[2])));
}

Value groupby(Runtime& runtime, const Value& value, const Arguments& given) {
  const Bound arguments(given, {"attribute", "default=", "case_sensitive="});
  const bool sensitive = is_set(arguments[2]);
  const Getter key_of(runtime, arguments[0], arguments[1], !sensitive);
  const Getter shown(runtime, arguments[0], arguments[1]);
  const Values items = all_of(value);
  Values keys;
  for (const Value& item : items) keys.push_back(key_of(item));
  const Values ordered = sorted(runtime.budget(), items, keys, false);
  Values values;
  for (size_t i = 0; i < ordered.size();) {
    const Value key = key_of(ordered[i]);
    Values group;
    const Value name = sensitive ? key : shown(ordered[i]);
    while (i < ordered.size() && equal(key_of(ordered[i]), key)) group.push_back(ordered[i++]);
    values.push_back(make_tuple({name, make_list(std::move(group))}));
  }
  return make_list(std::move(values));
}

Value unique(Runtime& runtime, const Value& value, const Arguments& given) {
  const Bound arguments(given, {"case_sensitive=", "attribute="});
  const Getter key_of(runtime, arguments[1], nullptr, !is_set(arguments[0]));
  return make_generator([value, key_of] {
    return [turns = iterate(value), seen = std::make_shared<Dict>(), key_of](Value& item) {
      while (turns(item)) {
        const Value key = key_of(item);
        if (seen->find(key) != nullptr) continue;
        seen->set(key, Value());
        return true;
      }
      return false;
    };
  });
}

template <bool largest>
Value extreme(Runtime& runtime, const Value& value, const Arguments& given) {
  const Bound arguments(given, {"case_sensitive=", "attribute="});
  const Getter key_of(runtime, arguments[1], nullptr, !is_set(arguments[0]));
  const Values items = all_of(value);
  if (items.empty()) return undefined_because("the list is empty");
  Value best = items[0], key = key_of(best);
  for (size_t i = 1; i < items.size(); ++i) {
    const Value other = key_of(items[i]);
    const int order = largest ? compare(other, key, ">") : -compare(other, key, "<");
    if (order <= 0) continue;
    best = items[i];
    key = other;
  }
  return best;
}

Value sum(Runtime& runtime, const Value& value, const Arguments& given) {
  const Bound arguments(given, {"attribute=", "start="});
  Value total = arguments.or_else(1, Value(0));
  if (!total.is_number()) fail("sum adds numbers");
  const Getter of(runtime, arguments[0]);
  Next next = iterate(value);
  for (Value item; next(item);) total = binary(runtime.budget(), "+", total, of(item));
  return total;
}

Value join(Runtime& runtime, const Value& value, const Arguments& given) {
  const Bound arguments(given, {"d=", "attribute="});
  const Value separator(arguments[0] ? to_string(*arguments[0]) : "");
  const Getter of(runtime, arguments[1]);
  Budget& budget = runtime.budget();
  Values pieces;
  size_t size = 0;
  Next next = iterate(value);
  for (Value item; next(item);) {
    pieces.push_back(of(item));
    budget.step();
    size += 8 + size_of(pieces.back());
    budget.check(size);
  }
  budget.check(size + separator.chars() * pieces.size());
  std::string result;
  for (size_t i = 0; i < pieces.size(); ++i) {
    if (i > 0) result += separator.text();
    result += to_string(pieces[i]);
  }
  return Value(std::move(result));
}

Value first(Runtime&, const Value& value, const Arguments&) {
  Value item;
  if (iterate(value)(item)) return item;
  return undefined_because("the list is empty");
}

Value last(Runtime&, const Value& value, const Arguments&) {
  if (value.is(Kind::kIterator) || value.is(Kind::kLoop) || value.is(Kind::kNamespace) ||
      (!has_length(value))) {
    fail("the value has no order");
  }
  const Values items = value.is_sequence() ? value.items() : all_of(value);
  if (!items.empty()) return items.back();
  return undefined_because("the list is empty");
}

Value length(Runtime&, const Value& value, const Arguments&) { return Value(length_of(value)); }

Value reverse(Runtime&, const Value& value, const Arguments&) {
  if (value.is_string()) return slice(value, Value(), Value(), Value(-1));
  Values items;
  try {
    items = all_of(value);
  } catch (const Failure&) {
    fail("argument must be iterable");
  }
  std::reverse(items.begin(), items.end());
  if (value.is(Kind::kIterator)) return make_list(std::move(items));
  Next next = iterate(make_list(std::move(items)));
  return make_iterator(std::move(next), "list_reverseiterator");
}

Value list(Runtime&, const Value& value, const Arguments&) { return make_list(all_of(value)); }

Value batch(Runtime&, const Value& value, const Arguments& given) {
  const Bound arguments(given, {"linecount", "fill_with="});
  const Value width = *arguments[0];
  const Value fill = arguments.or_else(1, Value());
  return make_generator([=] {
    auto ahead = std::make_shared<std::optional<Value>>();
    return [=, turns = iterate(value)](Value& result) {
      Values line;
      if (*ahead) line.push_back(**ahead);
      ahead->reset();
      for (Value item; turns(item);) {
        if (equal(Value::size(line.size()), width)) {
          *ahead = item;
          break;
        }
        line.push_back(item);
      }
      if (line.empty()) return false;
      if (!*ahead && !fill.is_none()) {
        const auto columns = static_cast<size_t>(std::max<int64_t>(to_integer(width), 0));
        while (line.size() < columns) line.push_back(fill);
      }
      result = make_list(std::move(line));
      return true;
    };
  });
}

Value slices(Runtime&, const Value& value, const Arguments& given) {
  const Bound arguments(given, {"slices", "fill_with="});
  const Value given_count = *arguments[0];
  const Value fill = arguments.or_else(1, Value());
  return make_generator([=]() -> Next {
    const Values items = all_of(value);
    const int64_t count = to_integer(given_count);
    if (count == 0) fail("division by zero");
    const size_t parts = count < 0 ? 0 : static_cast<size_t>(count);
    const size_t each = parts ? items.size() / parts : 0, more = parts ? items.size() % parts : 0;
    return [=, at = size_t{0}, i = size_t{0}](Value& result) mutable {
      if (i == parts) return false;
      const size_t size = each + (i < more);
      Values part(items.begin() + static_cast<int64_t>(at),
                  items.begin() + static_cast<int64_t>(at + size));
      if (!fill.is_none() && i >= more) part.push_back(fill);
      at += size;
      ++i;
      result = make_list(std::move(part));
      return true;
    };
  });
}

Value items(Runtime&, const Value& value, const Arguments&) {
  return make_generator([value]() -> Next {
    if (value.is(Kind::kUndefined)) return [](Value&) { return false; };
    if (!value.is_dict()) fail("a function takes a mapping");
    auto view = std::make_shared<View>();
    view->part = 'i';
    view->of = value;
    return iterate(Value(Kind::kView, std::move(view)));
  });
}

}  // namespace

const Filter kListFilters[] = {
    {"batch", batch, false, true, true},
    {"count", length, true},
    {"dictsort", dictsort},
    {"first", first, true},
    {"groupby", groupby, false, true},
    {"items", items},
    {"join", join, true},
    {"last", last, true},
    {"length", length, true},
    {"list", list, false, true},
    {"max", extreme<true>, false, true},
    {"min", extreme<false>, false, true},
    {"reverse", reverse},
    {"slice", slices, false, true, true},
    {"sort", sort, false, true},
    {"sum", sum},
    {"unique", unique, false, true},
    {nullptr, nullptr},
};

}  // namespace wherry::jinja
