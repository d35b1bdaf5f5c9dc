#include "app/grammar/ebnf_rules.h"

#include <algorithm>

#include "app/grammar/embedded.h"
#include "app/grammar/schema/schema_grammar.h"
#include "app/grammar/schema/steps.h"
#include "app/grammar/schema_audit.h"
#include "app/request/request_error.h"

namespace wherry::app {

using json::Value;

namespace {

constexpr char kAnyText[] = "[^]*";  // matches any text without special tokens

}  // namespace

std::string EbnfRules::written(const std::vector<Piece>& pieces) const {
  std::string result;
  for (const auto& [id, text] : pieces) {
    if (!result.empty()) result += ' ';
    result += id >= 0 ? "Token(" + std::to_string(id) + ")" : quoted(text);
  }
  return result.empty() ? "\"\"" : result;
}

std::string EbnfRules::any_text() { return rule(kAnyText); }

std::string EbnfRules::text_beginning(const std::string& characters) {
  return rule(characters + " " + kAnyText);
}

std::string EbnfRules::up_to(std::string_view literal) {
  std::vector<Piece> all = pieces(literal);
  if (all.empty()) return kAnyText;
  if (all[0].first >= 0) return rule(kAnyText) + " " + written(all);
  // The literals share their first character, because xgrammar's lazy rules may contain only
  // characters.
  const std::string first = rule(std::string(kAnyText) + " " + quoted(all[0].second), true);
  all.erase(all.begin());
  return all.empty() ? first : first + " " + written(all);
}

std::string EbnfRules::amid_text(const std::vector<std::pair<std::string, std::string>>& rests,
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

std::string EbnfRules::json(const Value& schema, const Value& root) {
  return part(GrammarPart::Kind::kRules, checked_rules(schema, root, "tools"));
}

std::pair<bool, std::string> EbnfRules::element(const Value& schema, const Value& root,
                                                const std::string& end) {
  PlainTexts texts;
  try {
    texts = plain_texts(schema, root, end);
  } catch (const NotEnforced& problem) {
    throw RequestError(
        std::string("The schema of an argument is not enforced here: ") + problem.what(), "tools",
        "unsupported_schema");
  }
  if (texts.are == PlainTexts::Are::kAll) return {texts.alone, up_to(end)};
  const bool plain = texts.are == PlainTexts::Are::kSome && texts.alone;
  const std::string value =
      plain ? part(GrammarPart::Kind::kRules, texts.rules) : json(schema, root);
  return {plain, value + " " + text(end)};
}

std::string EbnfRules::part(GrammarPart::Kind kind, std::string text) {
  const auto known = std::find_if(parts_.begin(), parts_.end(), [&](const GrammarPart& part) {
    return part.kind == kind && part.text == text;
  });
  if (known != parts_.end()) return known->rule;
  parts_.push_back({"part" + std::to_string(parts_.size()), kind, std::move(text)});
  return parts_.back().rule;
}

std::string EbnfRules::included(const Constraint& base) {
  const std::string name = "base";
  std::vector<std::string> others;
  for (const GrammarPart& part : base.parts) {
    others.push_back(part.rule);
    parts_.push_back({name + "." + part.rule, part.kind, part.text});
  }
  rules_ += embedded(base.ebnf, name, others);
  return name;
}

std::string EbnfRules::rule(const std::string& expression, bool lazy) {
  const std::string name = "rule" + std::to_string(count_++);
  rules_ += name + (lazy ? "[lazy]" : "") + " ::= " + expression + "\n";
  return name;
}

Constraint EbnfRules::constraint(const std::string& root, std::string param) && {
  return {"root ::= " + root + "\n" + rules_, std::move(parts_), std::move(param)};
}

}  // namespace wherry::app
