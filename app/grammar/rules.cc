#include "app/grammar/rules.h"

#include <algorithm>
#include <cstdio>

#include "app/grammar/embedded.h"
#include "app/grammar/schema_audit.h"
#include "app/request/request_error.h"

namespace wherry::app {

using json::Value;

std::string quoted(std::string_view text) {
  std::string made = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      made += {'\\', c};
    } else if (byte < 0x20 || byte == 0x7F) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04x", byte);
      made += escape;
    } else {
      made += c;
    }
  }
  return made + '"';
}

std::vector<Rules::Piece> Rules::pieces(std::string_view literal) const {
  std::vector<Piece> made;
  while (!literal.empty()) {
    const auto found = std::find_if(special_.begin(), special_.end(), [&](const auto& one) {
      return literal.substr(0, one.first.size()) == one.first;
    });
    if (found != special_.end()) {
      made.emplace_back(found->second, found->first);
      literal.remove_prefix(found->first.size());
      continue;
    }
    if (made.empty() || made.back().first >= 0) made.emplace_back(-1, "");
    made.back().second += literal[0];
    literal.remove_prefix(1);
  }
  return made;
}

std::string Rules::written(const std::vector<Piece>& pieces) const {
  std::string made;
  for (const auto& [id, text] : pieces) {
    if (!made.empty()) made += ' ';
    made += id >= 0 ? "Token(" + std::to_string(id) + ")" : quoted(text);
  }
  return made.empty() ? "\"\"" : made;
}

std::string Rules::text(std::string_view literal) const { return written(pieces(literal)); }

std::string Rules::up_to(std::string_view literal) {
  std::vector<Piece> all = pieces(literal);
  if (all.empty()) return kAnyText;
  if (all[0].first >= 0) return rule(kAnyText) + " " + written(all);
  // The literals share their first character, because xgrammar's lazy rules may contain only
  // characters.
  const std::string first = rule(std::string(kAnyText) + " " + quoted(all[0].second), true);
  all.erase(all.begin());
  return all.empty() ? first : first + " " + written(all);
}

std::string Rules::amid_text(const std::vector<std::pair<std::string, std::string>>& rests,
                             bool again) {
  size_t tokens = 0;
  std::string pairs, others = "," + special_ids_;
  for (const auto& [literal, rest] : rests) {
    std::vector<Piece> all = pieces(literal);
    const auto [id, first] = all[0];
    all.erase(all.begin());
    const std::string body = rule(all.empty() ? rest : written(all) + " " + rest);
    pairs += "(" + (id >= 0 ? std::to_string(id) : quoted(first)) + ", " + body + "), ";
    if (id < 0) continue;
    ++tokens;
    const std::string listed = "," + std::to_string(id) + ",";
    if (const size_t at = others.find(listed); at != others.npos) {
      others.erase(at, listed.size() - 1);
    }
  }
  const std::string loops = again ? "loop_after_dispatch=true" : "loop_after_dispatch=false";
  if (tokens == 0) return rule("TagDispatch(" + pairs + loops + ")");
  if (tokens < rests.size()) {
    throw RequestError("triggers are either special tokens or texts; these are both",
                       "response_format", "invalid_grammar");
  }
  return rule("TokenTagDispatch(" + pairs + loops + ", excludes=(" + others.substr(1) + "))");
}

std::string Rules::json(const Value& schema, const Value& root) {
  return part(GrammarPart::Kind::kRules, checked_rules(schema, root, "tools"));
}

std::string Rules::part(GrammarPart::Kind kind, std::string text) {
  const auto known = std::find_if(parts_.begin(), parts_.end(), [&](const GrammarPart& part) {
    return part.kind == kind && part.text == text;
  });
  if (known != parts_.end()) return known->rule;
  parts_.push_back({"part" + std::to_string(parts_.size()), kind, std::move(text)});
  return parts_.back().rule;
}

std::string Rules::included(const Constraint& base) {
  const std::string name = "base";
  std::vector<std::string> others;
  for (const GrammarPart& part : base.parts) {
    others.push_back(part.rule);
    parts_.push_back({name + "." + part.rule, part.kind, part.text});
  }
  rules_ += embedded(base.ebnf, name, others);
  return name;
}

std::string Rules::rule(const std::string& expression, bool lazy) {
  const std::string name = "rule" + std::to_string(count_++);
  rules_ += name + (lazy ? "[lazy]" : "") + " ::= " + expression + "\n";
  return name;
}

std::string Rules::either(const std::vector<std::string>& expressions) {
  std::string made;
  for (const std::string& one : expressions) made += (made.empty() ? "(" : " | (") + one + ")";
  return rule(made);
}

Constraint Rules::made(const std::string& root, std::string param) && {
  return {"root ::= " + root + "\n" + rules_, std::move(parts_), std::move(param)};
}

}  // namespace wherry::app
