// Builds a grammar in llguidance's dialect of Lark, whose schemas the host writes.
#ifndef WHERRY_APP_HOST_LARK_RULES_H_
#define WHERRY_APP_HOST_LARK_RULES_H_

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app/grammar/rules.h"

namespace wherry::app {

// A rule that the host defines.
struct LarkPart {
  // "schema": JSON of the schema in `text`. "input", "input_in_json": the grammar of the input of
  // the tool whose index is in `text`, as it is or for the content of a JSON string.
  std::string kind, text;
};

// What cannot be enforced of a tool; each line is "keyword: why".
struct Unenforced {
  std::vector<std::string> lines;
};

// Parts of one constraint, each once; the rule of part i is named wherry_part<i>.
class LarkParts {
 public:
  // Returns the name of a part's rule. Throws Unenforced if all parts together are too long.
  std::string rule(const std::string& kind, const std::string& text);
  // Returns the parts to which a grammar refers.
  std::set<size_t> used_in(std::string_view grammar) const;
  const std::vector<LarkPart>& all() const { return parts_; }

 private:
  std::vector<LarkPart> parts_;
  std::map<std::pair<std::string, std::string>, size_t> indices_;  // of kinds and texts
  size_t bytes_ = 0;
};

class LarkRules : public Rules {
 public:
  LarkRules(Special special, LarkParts& parts) : Rules(std::move(special)), parts_(parts) {}

  std::string any_text() override;
  std::string text_beginning(const std::string& characters) override;
  std::string characters(const std::string& classes) const override { return "/" + classes + "/"; }
  std::string up_to(std::string_view literal) override;
  std::string amid_text(const std::vector<std::pair<std::string, std::string>>& rests,
                        bool again) override;
  std::string json(const json::Value& schema, const json::Value& root) override;
  // Throws Unenforced if the schema constrains the form of a text.
  std::pair<bool, std::string> element(const json::Value& schema, const json::Value& root,
                                       const std::string& end) override;
  std::string rule(const std::string& expression, bool lazy = false) override;

  // Returns the grammar whose output is the expression `root`.
  std::string grammar(const std::string& root) const { return "start: " + root + "\n" + rules_; }

 private:
  std::string written(const std::vector<Piece>& pieces) const override;

  LarkParts& parts_;
  bool has_any_text_ = false;
};

}  // namespace wherry::app

#endif  // WHERRY_APP_HOST_LARK_RULES_H_
