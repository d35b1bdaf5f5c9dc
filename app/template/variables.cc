#include "app/template/variables.h"

#include <map>

#include "app/template/globals.h"

namespace wherry::jinja {

namespace {

// The names of one scope, collected in source order as Jinja's compiler does.
struct Scope {
  const Scope* parent = nullptr;
  std::set<Name> known;   // names that are stored or loaded in the scope
  std::set<Name> stores;  // names that are stored in the scope

  bool finds(Name name) const {
    return known.count(name) > 0 || (parent != nullptr && parent->finds(name));
  }
};

class Finder {
 public:
  explicit Finder(const Program& program) : program_(program) {}

  std::set<std::string> run() {
    Scope root;
    visit(program_.body, root);
    for (const auto& [name, block] : program_.blocks) {
      Scope scope;
      visit(block->body, scope);
    }
    return std::move(variables_);
  }

 private:
  void load(Name name, Scope& scope) {
    if (scope.finds(name)) return;
    scope.known.insert(name);
    look_up(name);
  }

  void look_up(Name name) {
    if (!is_global(*name)) variables_.insert(*name);
  }

  void store(const Expression& target, Scope& scope) {
    if (target.kind == ExpressionKind::kTuple) {
      for (const ExpressionPtr& part : target.parts) store(*part, scope);
    } else if (target.kind == ExpressionKind::kNamespaceRef) {
      load(target.name, scope);
    } else {
      set(target.name, scope);
    }
  }

  void set(Name name, Scope& scope) {
    scope.known.insert(name);
    scope.stores.insert(name);
  }

  void visit(const Expression& node, Scope& scope) {
    if (node.kind == ExpressionKind::kName) load(node.name, scope);
    for (const ExpressionPtr& part : node.parts) visit(part, scope);
    if (node.arguments == nullptr) return;
    for (const ExpressionPtr& part : node.arguments->positional) visit(part, scope);
    for (const auto& [name, part] : node.arguments->named) visit(part, scope);
    visit(node.arguments->list, scope);
    visit(node.arguments->dict, scope);
  }

  void visit(const ExpressionPtr& node, Scope& scope) {
    if (node != nullptr) visit(*node, scope);
  }

  void visit(const Statements& body, Scope& scope) {
    for (const StatementPtr& node : body) visit(*node, scope);
  }

  // Visits an if statement. Jinja's compiler always compares three branches: the first, all elif
  // branches together, and else, even where they are missing. A name that not every branch stores
  // is looked up in the outer scope.
  void visit_if(const Statement& node, Scope& scope) {
    visit(node.parts[0], scope);
    Scope first = scope, middle = scope, last = scope;
    visit(node.branches[0], first);
    for (size_t i = 1; i < node.parts.size(); ++i) {
      visit(node.parts[i], middle);
      Scope one = middle, nothing = middle;
      visit(node.branches[i], one);
      join(middle, {&one, &nothing, &nothing});
    }
    visit(node.otherwise, last);
    join(scope, {&first, &middle, &last});
  }

  void join(Scope& scope, std::initializer_list<const Scope*> branches) {
    std::map<Name, size_t> stored;
    for (const Scope* branch : branches) {
      for (Name name : branch->stores) stored[name] += scope.stores.count(name) == 0;
    }
    for (const Scope* branch : branches) {
      scope.known.insert(branch->known.begin(), branch->known.end());
      scope.stores.insert(branch->stores.begin(), branch->stores.end());
    }
    for (const auto& [name, count] : stored) {
      if (count == 0 || count == branches.size()) continue;
      if (scope.parent == nullptr || !scope.parent->finds(name)) look_up(name);
    }
  }

  void visit_for(const Statement& node, Scope& scope) {
    visit(node.parts[1], scope);
    Scope body;
    body.parent = &scope;
    store(*node.parts[0], body);
    if (const auto loop = program_.names.find("loop"); loop != program_.names.end()) {
      set(&*loop, body);
    }
    if (node.parts[2]) {
      Scope test;
      test.parent = &scope;
      store(*node.parts[0], test);
      visit(node.parts[2], test);
    }
    visit(node.body, body);
    Scope otherwise;
    otherwise.parent = &scope;
    visit(node.otherwise, otherwise);
  }

  void visit_macro(const Statement& node, Scope& scope) {
    Scope body;
    body.parent = &scope;
    for (const Parameter& parameter : node.parameters) {
      visit(parameter.otherwise, body);
      set(parameter.name, body);
    }
    for (const char* name : {"caller", "varargs", "kwargs"}) {
      const auto match = program_.names.find(name);
      if (match != program_.names.end()) set(&*match, body);
    }
    visit(node.body, body);
  }

  void visit(const Statement& node, Scope& scope) {
    Scope inner;
    inner.parent = &scope;
    switch (node.kind) {
      case StatementKind::kIf:
        return visit_if(node, scope);
      case StatementKind::kFor:
        return visit_for(node, scope);
      case StatementKind::kSet:
        visit(node.parts[1], scope);
        return store(*node.parts[0], scope);
      case StatementKind::kSetBlock:
        visit(node.body, inner);
        visit(node.parts[1], inner);
        return store(*node.parts[0], scope);
      case StatementKind::kMacro:
        set(node.name, scope);
        return visit_macro(node, scope);
      case StatementKind::kCallBlock:
        visit(node.parts[0], scope);
        return visit_macro(node, scope);
      case StatementKind::kFilterBlock:
        visit(node.body, inner);
        return visit(node.parts[0], inner);
      case StatementKind::kWith:
        for (size_t i = 0; i < node.parts.size(); i += 2) {
          visit(node.parts[i + 1], scope);
          store(*node.parts[i], inner);
        }
        return visit(node.body, inner);
      case StatementKind::kBlock:
        return;  // macros and blocks are visited separately
      default:
        for (const ExpressionPtr& part : node.parts) visit(part, scope);
    }
  }

  const Program& program_;
  std::set<std::string> variables_;
};

}  // namespace

std::set<std::string> find_variables(const Program& program) { return Finder(program).run(); }

}  // namespace wherry::jinja
