// Normalizes a schema and its references into shapes: the constraints for each type.
#ifndef WHERRY_APP_GRAMMAR_SCHEMA_SHAPES_H_
#define WHERRY_APP_GRAMMAR_SCHEMA_SHAPES_H_

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "app/grammar/schema/keywords.h"
#include "app/grammar/schema/numbers.h"
#include "app/grammar/schema/texts.h"
#include "app/value/value.h"

namespace wherry::app {

// A requirement on a value: that a schema holds, that it does not hold, or that the value is none
// of a list of constants.
struct Literal {
  enum Kind { kFits, kNot, kNoneOf } kind;
  // Schema of the requirement, or the list for kNoneOf; null allows any value.
  const json::Value* schema;
  unsigned types = kAnyType;  // types that the value may have, as a further requirement
  bool operator<(const Literal& other) const {
    return std::tie(kind, schema, types) < std::tie(other.kind, other.schema, other.types);
  }
};
// Requirements that a value has to satisfy together.
using Goal = std::vector<Literal>;

struct Shape {
  unsigned types = kAnyType;
  unsigned mentioned = 0;  // types that the schema's keywords mention
  std::optional<json::Values> constants;
  json::Values excluded;  // texts, lists and objects that are excluded
  Numbers numbers;
  std::vector<Texts::Id> texts;
  std::string numbers_at, texts_at;  // paths of the keywords for numbers and for texts, for errors
  struct ListPart {
    const json::Values* first;
    const json::Value* rest;  // schema of the remaining items; null allows any value
  };
  std::vector<ListPart> lists;
  int64_t least_items = 0, most_items = -1;  // a `most_items` of -1 allows any number
  const json::Value* unique = nullptr;       // the schema that has `uniqueItems`
  struct ObjectPart {
    const json::Dict* properties;
    const json::Dict* patterns;
    const json::Value* others;  // schemas of other properties; each may be null
  };
  std::vector<ObjectPart> objects;
  std::vector<std::string> required;
  Goal names;  // requirements on property names
  int64_t least_properties = 0, most_properties = -1;
};

class Shapes {
 public:
  // texts and steps must outlive the object.
  Shapes(const json::Value& root, Texts& texts, Steps& steps);
  // Leaves out the formats that llguidance has patterns of its own for, which allow more.
  void leave_formats_out() { formats_ = false; }

  // Returns the alternatives of a goal: a value satisfies the goal if it matches one of the shapes.
  // Throws NotEnforced.
  const std::vector<Shape>& of(Goal goal);
  static Goal goal_of(const json::Value& schema) { return {{Literal::kFits, &schema}}; }
  // Resolves a goal's references and removes empty requirements, so that equal goals have equal
  // forms.
  Goal plain(Goal goal);
  // Returns false if provably no value satisfies the goal.
  bool may_fit(const Goal& goal, int depth = 0);
  bool fits(const json::Value& value, const Goal& goal);
  bool fits(const json::Value& value, const Shape& shape);
  // Returns the requirements on an item or a property of this shape.
  static Goal item(const Shape& shape, size_t at);
  Goal property(const Shape& shape, const std::string& name);
  Texts::Id pattern(const std::string& text);
  // Returns the path of a schema in the document, followed by ".keyword".
  std::string place(const json::Value* schema, const std::string& keyword) const;

 private:
  using Choice = std::vector<Goal>;  // alternatives, one of which has to hold

  // Marks a schema as being expanded while the object lives. It is circular if it already was.
  class Expansion {
   public:
    Expansion(std::set<const json::Object*>& open, const json::Object* schema)
        : open_(open), schema_(schema), entered_(open.insert(schema).second) {}
    ~Expansion() {
      if (entered_) open_.erase(schema_);
    }
    Expansion(const Expansion&) = delete;
    Expansion& operator=(const Expansion&) = delete;

    bool circular() const { return !entered_; }

   private:
    std::set<const json::Object*>& open_;
    const json::Object* schema_;
    const bool entered_;
  };

  void expand(Shape shape, std::vector<Choice> open, std::set<Literal> seen,
              std::vector<Shape>& into);
  bool apply(const Literal& literal, Shape& shape, std::vector<Choice>& open);
  bool keyword(const std::string& name, const json::Value& value, const json::Value& schema,
               Shape& shape, std::vector<Choice>& open);
  bool of_numbers(const std::string& name, const json::Value& value, const json::Value& schema,
                  Shape& shape);
  void of_texts(const std::string& name, const json::Value& value, Shape& shape);
  void of_lists(const std::string& name, const json::Value& value, const json::Value& schema,
                Shape& shape);
  void of_objects(const std::string& name, const json::Value& value, const json::Value& schema,
                  Shape& shape);
  void dependent(const json::Value& value, const std::string& where, std::vector<Choice>& open);
  const Choice& one_of(const json::Value& list, const std::string& where);
  const Choice& negated(const json::Value& schema);
  void negate(const std::string& name, const json::Value& value, const json::Value& schema,
              Choice& into);
  void negate_bound(const std::string& name, const json::Value& value, Choice& into);
  bool may_have(const Shape& shape, int depth);
  const json::Value& target(const json::Value& reference) const;
  void remember(const json::Value& value, const std::string& where);
  // Creates a schema that the document does not contain.
  const json::Value* create(std::vector<std::pair<json::Value, json::Value>> items);

  bool formats_ = true;
  const json::Value& root_;
  Texts& texts_;
  Steps& steps_;
  std::map<const json::Object*, std::string> places_;
  // Maps each schema to the first pointer to an equal one.
  std::map<const json::Object*, const json::Value*> first_;
  std::map<std::string, const json::Value*> anchors_;
  std::deque<json::Value> created_;
  std::map<Goal, std::vector<Shape>> known_;
  std::map<const json::Object*, Choice> one_of_, negated_;
  std::set<const json::Object*> open_;  // schemas that are being expanded, to detect cycles
  std::map<std::string, Texts::Id> patterns_;
};

// Compares two values as JSON Schema does: 1 equals 1.0, and 1 does not equal true.
bool same(const json::Value& a, const json::Value& b);
unsigned type_of(const json::Value& value);

}  // namespace wherry::app

#endif  // WHERRY_APP_GRAMMAR_SCHEMA_SHAPES_H_
