#include "app/template/objects.h"

#include <algorithm>

#include "app/value/code_points.h"

namespace wherry::jinja {

const Value* Arguments::by_name(std::string_view name) const {
  for (const auto& [key, value] : named) {
    if (key == name) return &value;
  }
  return nullptr;
}

Bound::Bound(const Arguments& given, std::initializer_list<const char*> parameters) {
  if (given.positional.size() > parameters.size()) fail("there are too many arguments");
  size_t used = 0, i = 0;
  for (std::string_view name : parameters) {
    const bool optional = name.back() == '=';
    if (optional) name.remove_suffix(1);
    const Value* named = given.by_name(name);
    const bool placed = i < given.positional.size();
    used += named != nullptr;
    if (placed && named != nullptr) fail("an argument comes twice: " + std::string(name));
    if (!placed && named == nullptr && !optional) {
      fail("an argument is missing: " + std::string(name));
    }
    values_.push_back(placed ? &given.positional[i] : named);
    ++i;
  }
  if (used < given.named.size()) fail("there is an argument of another name");
}

Value make_function(std::string name, std::function<Value(Budget&, const Arguments&)> call,
                    const char* type) {
  auto result = std::make_shared<Function>();
  result->type = type;
  result->name = std::move(name);
  result->call = std::move(call);
  return Value(Kind::kFunction, std::move(result));
}

Value make_iterator(Next next, const char* type) {
  auto result = std::make_shared<Iterator>();
  result->next = std::move(next);
  result->type = type;
  return Value(Kind::kIterator, std::move(result));
}

Value make_generator(std::function<Next()> begin) {
  return make_iterator([begin = std::move(begin), next = Next()](Value& item) mutable {
    if (!next) next = begin();
    return next(item);
  });
}

bool Loop::peek() const {
  if (after) return true;
  Value item;
  if (!source(item)) return false;
  after = std::move(item);
  return true;
}

bool Loop::take(Value& item) const {
  if (after) {
    item = std::move(*after);
    after.reset();
  } else if (!source(item)) {
    return false;
  }
  before = std::move(current);
  current = item;
  ++index0;
  return true;
}

int64_t Loop::count() const {
  if (length) return *length;
  auto rest = std::make_shared<Values>();
  for (Value item; source(item);) rest->push_back(std::move(item));
  length = static_cast<int64_t>(rest->size()) + index0 + 1 + (after ? 1 : 0);
  source = [rest, at = size_t{0}](Value& item) mutable {
    if (at == rest->size()) return false;
    item = (*rest)[at++];
    return true;
  };
  return *length;
}

std::string Function::repr() const {
  if (std::string_view(type) == "Macro")
    return "<Macro " + (name.empty() ? "anonymous" : repr_text(name)) + ">";
  return std::string("<") + type + " " + name + ">";
}

std::string Loop::repr() const {
  return "<LoopContext " + std::to_string(index0 + 1) + "/" + std::to_string(count()) + ">";
}

namespace {

Next entries(const Value& dict, char part) {
  View view;
  view.part = part;
  view.of = dict;
  return [view, at = size_t{0}](Value& item) mutable {
    if (at == view.of.dict().items.size()) return false;
    item = view.item(at++);
    return true;
  };
}

}  // namespace

Next iterate(const Value& value) {
  switch (value.kind()) {
    case Kind::kUndefined:
      return [](Value&) { return false; };
    case Kind::kList:
    case Kind::kTuple:
      return [value, at = size_t{0}](Value& item) mutable {
        if (at == value.items().size()) return false;
        item = value.items()[at++];
        return true;
      };
    case Kind::kString:
      return [value, at = size_t{0}](Value& item) mutable {
        const std::string& text = value.text();
        if (at == text.size()) return false;
        const size_t start = at;
        next_code_point(text, at);
        item = Value(std::string_view(text).substr(start, at - start));
        return true;
      };
    case Kind::kDict:
      return entries(value, 'k');
    case Kind::kView:
      return entries(value.as<View>().of, value.as<View>().part);
    case Kind::kRange:
      return [value, at = int64_t{0}](Value& item) mutable {
        const auto& range = value.as<Range>();
        if (at == range.length()) return false;
        item = Value(range.start + range.step * at++);
        return true;
      };
    case Kind::kIterator:
      return [value](Value& item) { return value.as<Iterator>().next(item); };
    case Kind::kLoop:
      return [value](Value& item) {
        const auto& loop = value.as<Loop>();
        if (!loop.take(item)) return false;
        item = make_tuple({item, value});
        return true;
      };
    default:
      fail("the value has no items");
  }
}

bool has_length(const Value& value) {
  switch (value.kind()) {
    case Kind::kUndefined:
    case Kind::kString:
    case Kind::kList:
    case Kind::kTuple:
    case Kind::kDict:
    case Kind::kView:
    case Kind::kRange:
    case Kind::kLoop:
      return true;
    default:
      return false;
  }
}

int64_t length_of(const Value& value) {
  switch (value.kind()) {
    case Kind::kUndefined:
      return 0;
    case Kind::kString:
      return static_cast<int64_t>(value.chars());
    case Kind::kList:
    case Kind::kTuple:
      return static_cast<int64_t>(value.items().size());
    case Kind::kDict:
      return static_cast<int64_t>(value.dict().items.size());
    case Kind::kView:
      return static_cast<int64_t>(value.as<View>().of.dict().items.size());
    case Kind::kRange:
      return value.as<Range>().length();
    case Kind::kLoop:
      return value.as<Loop>().count();
    default:
      fail("the value has no length");
  }
}

}  // namespace wherry::jinja
