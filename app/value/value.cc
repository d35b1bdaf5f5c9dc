#include "app/value/value.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <stdexcept>

#include "app/value/code_points.h"

namespace wherry::json {

namespace {

constexpr size_t kScalar = 8;   // size in characters that a number counts in the budget
constexpr size_t kIndexed = 8;  // dictionaries with at least this many entries have an index
constexpr size_t kNowhere = static_cast<size_t>(-1);

// A caller that has not checked the kind is a bug of ours, which must not end the process.
void require(bool fits) {
  if (!fits) throw std::logic_error("a value of another kind was read");
}

bool equal_items(const Values& a, const Values& b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), equal);
}

bool equal_dicts(const Dict& a, const Dict& b) {
  if (a.items.size() != b.items.size()) return false;
  return std::all_of(a.items.begin(), a.items.end(), [&](const auto& item) {
    const Value* other = b.find(item.first);
    return other != nullptr && equal(item.second, *other);
  });
}

// Whether the value contains mutable state (a namespace).
bool is_open(const Value& value) {
  if (value.is(Kind::kView)) return is_open(value.as<View>().of);
  if (value.is_sequence() || value.is_dict()) return value.as<Container>().open;
  return value.is(Kind::kNamespace);
}

int sign(double difference) { return difference < 0 ? -1 : difference > 0; }

size_t mixed(size_t a, size_t b) { return (a ^ (b + 0x9E3779B97F4A7C15ull + (a << 6))) * 31; }

}  // namespace

void fail(const std::string& message) { throw Failure(message); }

Value::Value(std::string text) : kind_(Kind::kString), int_(0) {
  auto result = std::make_shared<Str>();
  result->chars = unicode::count_code_points(text);
  result->text = std::move(text);
  object_ = std::move(result);
}

Value Value::markup(std::string text) {
  auto result = std::make_shared<Str>();
  result->chars = unicode::count_code_points(text);
  result->text = std::move(text);
  result->markup = true;
  return Value(Kind::kString, std::move(result));
}

bool Value::is_markup() const { return is_string() && as<Str>().markup; }

Value like(const Value& origin, std::string text) {
  return origin.is_markup() ? Value::markup(std::move(text)) : Value(std::move(text));
}

std::string escaped(const Value& value) {
  if (value.is_markup()) return value.text();
  std::string result;
  for (char c : to_string(value)) {
    if (c == '&') {
      result += "&amp;";
    } else if (c == '<') {
      result += "&lt;";
    } else if (c == '>') {
      result += "&gt;";
    } else if (c == '"') {
      result += "&#34;";
    } else if (c == '\'') {
      result += "&#39;";
    } else {
      result += c;
    }
  }
  return result;
}

const std::string& Value::text() const {
  require(is_string());
  return as<Str>().text;
}

size_t Value::chars() const {
  require(is_string());
  return as<Str>().chars;
}

const Values& Value::items() const {
  require(object_ != nullptr);
  return as<List>().items;
}

const Dict& Value::dict() const {
  require(object_ != nullptr);
  return as<Dict>();
}

void Container::holds(const Value& value) {
  open = open || is_open(value);
  if (!open) size += 2 + size_of(value);
  if (value.is_sequence() || value.is_dict()) {
    depth = std::max(depth, value.as<Container>().depth + 1);
    if (depth > kDeepestValue) fail("too deep");
  }
}

size_t Dict::place(const Value& key, size_t hash) const {
  if (items.size() <= kIndexed) {
    for (size_t i = 0; i < items.size(); ++i) {
      if (equal(items[i].first, key)) return i;
    }
    return kNowhere;
  }
  for (auto [at, end] = index.equal_range(hash); at != end; ++at) {
    if (equal(items[at->second].first, key)) return at->second;
  }
  return kNowhere;
}

const Value* Dict::find(const Value& key) const {
  const size_t at = place(key, hash_of(key));
  return at == kNowhere ? nullptr : &items[at].second;
}

const Value* Dict::find(std::string_view key) const {
  if (items.size() > kIndexed) return find(Value(key));
  for (const auto& [name, value] : items) {
    if (name.is_string() && name.text() == key) return &value;
  }
  return nullptr;
}

void Dict::set(const Value& key, Value value) {
  const size_t hash = hash_of(key);
  holds(value);
  if (const size_t at = place(key, hash); at != kNowhere) {
    items[at].second = std::move(value);
    return;
  }
  holds(key);
  items.emplace_back(key, std::move(value));
  if (items.size() == kIndexed + 1) {
    for (size_t i = 0; i < items.size(); ++i) index.emplace(hash_of(items[i].first), i);
  } else if (items.size() > kIndexed) {
    index.emplace(hash, items.size() - 1);
  }
}

int64_t Range::length() const {
  if (step > 0 ? start >= stop : start <= stop) return 0;
  const int64_t span = step > 0 ? stop - start : start - stop;
  const int64_t stride = step > 0 ? step : -step;
  return (span - 1) / stride + 1;
}

Value View::item(size_t i) const {
  const auto& [key, value] = of.dict().items[i];
  return part == 'k' ? key : part == 'v' ? value : make_tuple({key, value});
}

const Value* Namespace::find(std::string_view name) const {
  for (const auto& [key, value] : attributes) {
    if (key == name) return &value;
  }
  return nullptr;
}

void Namespace::set(std::string_view name, const Value& value) const {
  for (auto& [key, present] : attributes) {
    if (key == name) {
      present = value;
      return;
    }
  }
  attributes.emplace_back(std::string(name), value);
}

namespace {

std::shared_ptr<List> list_of(Values items) {
  auto result = std::make_shared<List>();
  for (const Value& item : items) result->holds(item);
  result->items = std::move(items);
  return result;
}

}  // namespace

Value make_list(Values items) { return Value(Kind::kList, list_of(std::move(items))); }
Value make_tuple(Values items) { return Value(Kind::kTuple, list_of(std::move(items))); }

Value make_dict(std::vector<std::pair<Value, Value>> items) {
  auto result = std::make_shared<Dict>();
  for (auto& [key, value] : items) result->set(key, std::move(value));
  return Value(Kind::kDict, std::move(result));
}

Value undefined_because(const std::string& message) {
  auto result = std::make_shared<Missing>();
  result->message = message;
  return Value(Kind::kUndefined, std::move(result));
}

void use(const Value& value) {
  if (value.is(Kind::kUndefined)) fail(value.as<Missing>().message);
}

Value undefined(const std::string& name) { return undefined_because(name + " is undefined"); }

const char* type_name(const Value& value) {
  switch (value.kind()) {
    case Kind::kUndefined:
      return "Undefined";
    case Kind::kNone:
      return "NoneType";
    case Kind::kBool:
      return "bool";
    case Kind::kInt:
      return "int";
    case Kind::kFloat:
      return "float";
    case Kind::kString:
      return "str";
    case Kind::kList:
      return "list";
    case Kind::kTuple:
      return "tuple";
    case Kind::kDict:
      return "dict";
    case Kind::kRange:
      return "range";
    case Kind::kView:
      return value.as<View>().part == 'k'   ? "dict_keys"
             : value.as<View>().part == 'v' ? "dict_values"
                                            : "dict_items";
    case Kind::kNamespace:
      return "_Namespace";
    case Kind::kIterator:
    case Kind::kFunction:
    case Kind::kLoop:
      return value.object()->type_name();
  }
  return "object";
}

bool truth(const Value& value) {
  switch (value.kind()) {
    case Kind::kUndefined:
    case Kind::kNone:
      return false;
    case Kind::kBool:
    case Kind::kInt:
      return value.integer() != 0;
    case Kind::kFloat:
      return value.number() != 0;
    case Kind::kString:
      return !value.text().empty();
    case Kind::kList:
    case Kind::kTuple:
      return !value.items().empty();
    case Kind::kDict:
      return !value.dict().items.empty();
    case Kind::kRange:
      return value.as<Range>().length() > 0;
    case Kind::kView:
      return !value.as<View>().of.dict().items.empty();
    default:
      return true;
  }
}

bool equal(const Value& a, const Value& b) {
  if (a.is_number() && b.is_number()) {
    if (a.is_integer() && b.is_integer()) return a.integer() == b.integer();
    return a.number() == b.number();
  }
  if (a.kind() != b.kind()) return false;
  switch (a.kind()) {
    case Kind::kUndefined:
    case Kind::kNone:
      return true;
    case Kind::kString:
      return a.text() == b.text();
    case Kind::kList:
    case Kind::kTuple:
      return a.object() == b.object() || equal_items(a.items(), b.items());
    case Kind::kDict:
      return a.object() == b.object() || equal_dicts(a.dict(), b.dict());
    case Kind::kRange: {
      const auto &x = a.as<Range>(), &y = b.as<Range>();
      const int64_t length = x.length();
      if (length != y.length() || length == 0) return length == y.length();
      return x.start == y.start && (length == 1 || x.step == y.step);
    }
    default:
      return a.object() == b.object();
  }
}

int compare(const Value& a, const Value& b, const char* how) {
  if (a.is_number() && b.is_number()) {
    if (a.is_integer() && b.is_integer()) {
      return a.integer() < b.integer() ? -1 : a.integer() > b.integer();
    }
    return sign(a.number() - b.number());
  }
  // The byte order of UTF-8 is the order of code points.
  if (a.is_string() && b.is_string()) return a.text().compare(b.text());
  if (a.is_sequence() && a.kind() == b.kind()) {
    const Values &x = a.items(), &y = b.items();
    for (size_t i = 0; i < x.size() && i < y.size(); ++i) {
      if (!equal(x[i], y[i])) return compare(x[i], y[i], how);
    }
    return x.size() < y.size() ? -1 : x.size() > y.size();
  }
  for (const Value* side : {&a, &b}) {
    if (side->is(Kind::kUndefined)) use(*side);
  }
  fail(std::string("these values are not ordered by ") + how);
}

size_t hash_of(const Value& value) {
  switch (value.kind()) {
    case Kind::kBool:
    case Kind::kInt:
      return std::hash<double>()(static_cast<double>(value.integer()));
    case Kind::kFloat:
      return std::hash<double>()(value.number());
    case Kind::kString:
      return std::hash<std::string>()(value.text());
    case Kind::kTuple: {
      size_t result = 1;
      for (const Value& item : value.items()) result = mixed(result, hash_of(item));
      return result;
    }
    case Kind::kUndefined:
    case Kind::kNone:
      return static_cast<size_t>(value.kind());
    case Kind::kRange:
      return static_cast<size_t>(value.as<Range>().length());
    case Kind::kList:
    case Kind::kDict:
    case Kind::kView:
      fail("a key is a text, a number or a tuple");
    default:
      return std::hash<const void*>()(value.object().get());
  }
}

namespace {

constexpr int kDeepestNamespace = 50;
// Upper bound on counted characters, because shared values are traversed repeatedly.
constexpr size_t kMostInNamespaces = size_t{1} << 26;

// Computes the current size of a namespace, or of a container with namespaces; `inside` counts the
// enclosing namespaces.
size_t size_of_open(const Value& value, int inside) {
  if (value.is(Kind::kView)) return size_of_open(value.as<View>().of, inside);
  size_t size = value.is(Kind::kNamespace) ? kScalar : 2;
  auto add = [&](const Value& part, size_t more) {
    size += more + (is_open(part) ? size_of_open(part, inside) : size_of(part));
    if (size > kMostInNamespaces) {
      fail("it makes a value of " + std::to_string(size) + " characters; at most " +
           std::to_string(kMostInNamespaces) + " are made of namespaces");
    }
  };
  if (value.is(Kind::kNamespace)) {
    if (inside++ == kDeepestNamespace) fail("it puts namespaces into each other without end");
    for (const auto& [name, part] : value.as<Namespace>().attributes) add(part, 0);
  } else if (value.is_dict()) {
    for (const auto& [key, part] : value.dict().items) add(key, 2), add(part, 2);
  } else {
    for (const Value& part : value.items()) add(part, 2);
  }
  return size;
}

}  // namespace

size_t size_of(const Value& value) {
  if (is_open(value)) return size_of_open(value, 0);
  switch (value.kind()) {
    case Kind::kString:
      return value.chars();
    case Kind::kList:
    case Kind::kTuple:
    case Kind::kDict:
      return value.as<Container>().size;
    case Kind::kRange:
      return kScalar * static_cast<size_t>(value.as<Range>().length());
    case Kind::kView:
      return size_of(value.as<View>().of);
    default:
      return kScalar;
  }
}

}  // namespace wherry::json
