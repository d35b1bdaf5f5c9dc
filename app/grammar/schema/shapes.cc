#include "app/grammar/schema/shapes.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace wherry::app {

namespace {

using json::Dict;
using json::Kind;
using json::Value;
using json::Values;

constexpr size_t kMostShapes = 300;   // upper bound on the shapes of one goal
constexpr size_t kMostChoices = 100;  // upper bound on the alternatives in one goal
constexpr int kMostReferences = 100;  // upper bound on chained references

}  // namespace

bool same(const Value& a, const Value& b) {
  if (a.is(Kind::kBool) != b.is(Kind::kBool)) return false;
  if (a.is(Kind::kList) && b.is(Kind::kList)) {
    return std::equal(a.items().begin(), a.items().end(), b.items().begin(), b.items().end(), same);
  }
  if (a.is_dict() && b.is_dict()) {
    const auto& items = a.dict().items;
    return items.size() == b.dict().items.size() &&
           std::all_of(items.begin(), items.end(), [&](const auto& item) {
             const Value* other = b.dict().find(item.first);
             return other != nullptr && same(item.second, *other);
           });
  }
  return json::equal(a, b);
}

unsigned type_of(const Value& value) {
  switch (value.kind()) {
    case Kind::kNone:
      return kNull;
    case Kind::kBool:
      return value.integer() != 0 ? kTrue : kFalse;
    case Kind::kInt:
      return kInteger;
    case Kind::kFloat:
      return value.number() == std::floor(value.number()) ? kInteger : kBroken;
    case Kind::kString:
      return kText;
    default:
      return value.is_dict() ? kObject : kList;
  }
}

Shapes::Shapes(const Value& root, Texts& texts, Steps& steps)
    : root_(root), texts_(texts), steps_(steps) {
  remember(root, "");
}

void Shapes::remember(const Value& value, const std::string& where) {
  steps_.take();
  if (value.is(Kind::kList)) {
    places_.emplace(value.object().get(), where);
    for (size_t i = 0; i < value.items().size(); ++i) {
      remember(value.items()[i], where + "[" + std::to_string(i) + "]");
    }
  }
  if (!value.is_dict()) return;
  places_.emplace(value.object().get(), where);
  for (const auto& [name, one] : value.dict().items) {
    if (name.text() == "$anchor" && one.is_string()) anchors_.emplace(one.text(), &value);
    remember(one, where.empty() ? name.text() : where + "." + name.text());
  }
}

std::string Shapes::place(const Value* schema, const std::string& keyword) const {
  const auto known = schema == nullptr ? places_.end() : places_.find(schema->object().get());
  const std::string where = known == places_.end() ? "" : known->second;
  return where.empty() ? keyword : keyword.empty() ? where : where + "." + keyword;
}

const Value* Shapes::create(std::vector<std::pair<Value, Value>> items) {
  created_.push_back(json::make_dict(std::move(items)));
  return &created_.back();
}

const Value& Shapes::target(const Value& schema) const {
  const Value& reference = *schema.dict().find("$ref");
  const Value* match = nullptr;
  if (reference.is_string() && !reference.text().empty() && reference.text()[0] == '#') {
    const std::string& text = reference.text();
    const auto anchor = anchors_.find(text.substr(1));
    match = text == "#" || text[1] == '/' ? &root_
            : anchor == anchors_.end()    ? nullptr
                                          : anchor->second;
    for (size_t at = 1; match != nullptr && at < text.size() && text[1] == '/';) {
      const size_t end = std::min(text.find('/', at + 1), text.size());
      std::string name;
      for (size_t i = at + 1; i < end; ++i) {
        if (text[i] == '~' && i + 1 < end) {
          name += text[++i] == '1' ? '/' : '~';
        } else if (text[i] == '%' && i + 2 < end) {
          const std::string code = text.substr(i + 1, 2);
          char* last = nullptr;
          const long byte = std::strtol(code.c_str(), &last, 16);
          if (last != code.c_str() + 2) break;
          name += static_cast<char>(byte);
          i += 2;
        } else {
          name += text[i];
        }
      }
      // In URI fragments "%7E1" is the same as "~1", which means "/".
      for (size_t i = name.find('~'); text.find('%') != text.npos && i != name.npos;
           i = name.find('~', i + 1)) {
        if (i + 1 < name.size() && name[i + 1] == '1')
          name.replace(i, 2, "/");
        else if (i + 1 < name.size() && name[i + 1] == '0')
          name.replace(i, 2, "~");
      }
      if (match->is(Kind::kList)) {
        const bool number =
            !name.empty() && name.size() < 7 && name.find_first_not_of("0123456789") == name.npos;
        const size_t index = number ? std::stoul(name) : match->items().size();
        match = index < match->items().size() ? &match->items()[index] : nullptr;
      } else {
        match = match->is_dict() ? match->dict().find(std::string_view(name)) : nullptr;
      }
      at = end;
    }
  }
  if (match == nullptr || (!match->is_dict() && !match->is(Kind::kBool))) {
    throw NotEnforced(place(&schema, "$ref"), "it names no schema of this document");
  }
  return *match;
}

Goal Shapes::plain(Goal goal) {
  static const Value kNothing(false);
  Goal result;
  for (Literal literal : goal) {
    std::vector<const json::Object*> passed;
    for (int n = 0; literal.kind == Literal::kFits && literal.schema != nullptr; ++n) {
      const Value& schema = *literal.schema;
      if (schema.is(Kind::kBool) && schema.integer() != 0) literal.schema = nullptr;
      if (!schema.is_dict()) break;
      const auto says = [&](const auto& item) {
        const bool moves =
            item.first.text() == "$id" && item.second.is_string() && &schema != &root_;
        return moves ||
               std::any_of(std::begin(kKeywords), std::end(kKeywords),
                           [&](const TypeName& one) { return one.name == item.first.text(); }) ||
               std::find(std::begin(kRefused), std::end(kRefused), item.first.text()) !=
                   std::end(kRefused);
      };
      const auto& items = schema.dict().items;
      const auto count = std::count_if(items.begin(), items.end(), says);
      if (count == 0) literal.schema = nullptr;
      if (count != 1 || schema.dict().find("$ref") == nullptr) break;
      if (n == kMostReferences) throw NotEnforced(place(&schema, "$ref"), "it leads too far");
      // A reference that leads to itself says of no value that it is valid.
      const bool circle =
          std::find(passed.begin(), passed.end(), schema.object().get()) != passed.end();
      passed.push_back(schema.object().get());
      literal.schema = circle ? &kNothing : &target(schema);
    }
    if (literal.schema == nullptr && literal.kind == Literal::kFits && literal.types == kAnyType)
      continue;
    if (literal.schema != nullptr && literal.schema->object() != nullptr) {
      literal.schema = first_.emplace(literal.schema->object().get(), literal.schema).first->second;
    }
    result.push_back(literal);
  }
  return result;
}

const std::vector<Shape>& Shapes::of(Goal goal) {
  goal = plain(std::move(goal));
  const auto known = known_.find(goal);
  if (known != known_.end()) return known->second;
  std::vector<Choice> open;
  for (auto literal = goal.rbegin(); literal != goal.rend(); ++literal)
    open.push_back({{*literal}});
  std::vector<Shape> shapes;
  expand({}, std::move(open), {}, shapes);
  return known_.emplace(std::move(goal), std::move(shapes)).first->second;
}

// Expands a goal into shapes: applies the fixed requirements first, then enumerates the choices.
void Shapes::expand(Shape shape, std::vector<Choice> open, std::set<Literal> seen,
                    std::vector<Shape>& into) {
  std::vector<Choice> choices;
  while (!open.empty()) {
    Choice next = std::move(open.back());
    open.pop_back();
    if (next.size() != 1) {
      choices.push_back(std::move(next));
      continue;
    }
    for (auto& literal : plain(std::move(next[0]))) {
      steps_.take(4);
      if (!seen.insert(literal).second) continue;
      std::vector<Choice> more;
      if (!apply(literal, shape, more) || shape.types == 0) return;
      open.insert(open.end(), more.rbegin(), more.rend());
    }
  }
  if (choices.empty()) {
    if (into.size() == kMostShapes) {
      throw NotEnforced("", "the schema has more than " + std::to_string(kMostShapes) +
                                " alternatives in one place");
    }
    into.push_back(std::move(shape));
    return;
  }
  if (choices.size() > kMostChoices) {
    throw NotEnforced("", "the schema has too many alternatives in one place");
  }
  std::reverse(choices.begin(), choices.end());  // the first choice is then decided first
  Choice now = std::move(choices.back());
  choices.pop_back();
  for (Goal& one : now) {
    std::vector<Choice> rest = choices;
    for (auto literal = one.rbegin(); literal != one.rend(); ++literal)
      rest.push_back({{*literal}});
    steps_.take(20 + 4 * shape.objects.size());
    expand(shape, std::move(rest), seen, into);
  }
}

// Applies a requirement to the shape; returns false if the two contradict each other.
bool Shapes::apply(const Literal& literal, Shape& shape, std::vector<Choice>& open) {
  shape.types &= literal.types;
  if (literal.schema == nullptr) return true;
  const Value& schema = *literal.schema;
  if (literal.kind == Literal::kNoneOf) {
    for (const Value& value : schema.items()) {
      const unsigned type = type_of(value);
      if ((type & (kNull | kTrue | kFalse)) != 0) {
        shape.types &= ~type;
      } else if ((type & kNumber) != 0) {
        const auto number = decimal_of(value);
        if (!number) throw NotEnforced(place(&schema, ""), "a number beyond 2^63 is left out");
        shape.numbers.limits.push_back({Numbers::Is::kNot, *number});
      } else {
        shape.excluded.push_back(value);
      }
    }
    return true;
  }
  if (literal.kind == Literal::kNot) {
    open.push_back(negated(schema));
    return true;
  }
  if (schema.is(Kind::kBool)) return schema.integer() != 0;
  if (!schema.is_dict()) throw NotEnforced("", "a schema is an object or a boolean");
  for (const auto& [name, value] : schema.dict().items) {
    if (!keyword(name.text(), value, schema, shape, open)) return false;
  }
  return true;
}

}  // namespace wherry::app
