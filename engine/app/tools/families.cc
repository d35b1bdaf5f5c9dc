// A family is told by what its chat template says, never by a model's name: it is the first row
// whose signs are all in the template's text. The rows are those of runtime_py/tools/families.py.
#include "app/tools/families.h"

#include <algorithm>
#include <random>

#include "app/tools/formats/formats.h"
#include "support/blake2b.h"
#include "support/error.h"

namespace wherry::app {

namespace {

using FormatPtr = std::shared_ptr<const Format>;

constexpr std::string_view kIdLetters =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
constexpr size_t kShortId = 9;

template <typename Kind, typename Set>
FormatPtr made(Set set) {
  auto format = std::make_shared<Kind>();
  set(*format);
  return format;
}

FormatPtr tagged(Texts begin, std::string end, bool listed, std::string space = "") {
  return made<Tagged>([&](Tagged& f) {
    f.begin = std::move(begin);
    f.end = std::move(end);
    f.listed = listed;
    f.space = std::move(space);
  });
}

FormatPtr gigachat3() {
  return made<Tagged>([](Tagged& f) {
    f.begin = {"<|message_sep|>\n\nfunction call<|role_sep|>\n", "function call<|role_sep|>\n"};
    f.left_out = {"<|message_sep|>", "<|role_sep|>"};
  });
}

FormatPtr cohere() {
  return made<Tagged>([](Tagged& f) {
    f.begin = {"<|START_ACTION|>"};
    f.end = "<|END_ACTION|>";
    f.listed = true;
    f.form.name = {"tool_name"};
    f.form.arguments = {"parameters"};
    f.head = "{\"tool_call_id\": \"0\", \"tool_name\": \"";
    f.middle = "\", \"parameters\": ";
  });
}

FormatPtr deepseek(Texts middle, std::string before, Texts end, std::string between = "") {
  return made<Headed>([&](Headed& f) {
    f.begin = "<｜tool▁call▁begin｜>";
    f.middle = std::move(middle);
    f.before = std::move(before);
    f.end = std::move(end);
    f.section = "<｜tool▁calls▁begin｜>";
    f.section_end = "<｜tool▁calls▁end｜>";
    f.between = std::move(between);
  });
}

FormatPtr kimi() {
  return made<Headed>([](Headed& f) {
    f.begin = "<|tool_call_begin|>";
    f.middle = {"<|tool_call_argument_begin|>"};
    f.before = "functions.";
    f.tag = ":";
    f.whole_id = true;
    f.end = {"<|tool_call_end|>"};
    f.section = "<|tool_calls_section_begin|>";
    f.section_end = "<|tool_calls_section_end|>";
  });
}

FormatPtr function_tags() {
  return made<Headed>([](Headed& f) {
    f.begin = "<function=";
    f.middle = {">"};
    f.end = {"</function>"};
  });
}

FormatPtr minimax() {
  return made<Markup>([](Markup& f) {
    f.outer = "<minimax:tool_call>";
    f.outer_end = "</minimax:tool_call>";
    f.call = "<invoke name=\"";
    f.named = "\">";
    f.call_end = "</invoke>";
    f.key = "<parameter name=\"";
    f.keyed = {"\">"};
    f.several = true;
  });
}

FormatPtr dsml(const std::string& outer) {
  return made<Markup>([&](Markup& f) {
    f.outer = "<｜DSML｜" + outer + ">";
    f.outer_end = "</｜DSML｜" + outer + ">";
    f.call = "<｜DSML｜invoke name=\"";
    f.named = "\">";
    f.call_end = "</｜DSML｜invoke>";
    f.key = "<｜DSML｜parameter name=\"";
    f.ended = "</｜DSML｜parameter>";
    f.several = f.typed = true;
    f.wrappers = {"arguments", "input"};
  });
}

FormatPtr glm(std::string line) {
  return made<Markup>([&](Markup& f) {
    f.outer = "<tool_call>";
    f.outer_end = "</tool_call>";
    f.call = f.call_end = "";
    f.key = "<arg_key>";
    f.keyed = {"</arg_key>", "<arg_value>"};
    f.ended = "</arg_value>";
    f.line = std::move(line);
  });
}

FormatPtr function_markup(std::string outer, std::string outer_end, std::string pad,
                          Texts unclosed = {}) {
  return made<Markup>([&](Markup& f) {
    f.outer = std::move(outer);
    f.outer_end = std::move(outer_end);
    f.pad = std::move(pad);
    f.unclosed = std::move(unclosed);
  });
}

FormatPtr pythonic(Texts begin, std::string end, bool brackets) {
  return made<Pythonic>([&](Pythonic& f) {
    f.begin = std::move(begin);
    f.end = std::move(end);
    f.brackets = brackets;
  });
}

FormatPtr bare(Texts begin, bool fenced = false) {
  return made<Bare>([&](Bare& f) {
    f.begin = std::move(begin);
    const Texts objects = {"{\"name\":", "{ \"name\":", "{\"type\": \"function\",", "[{\"name\":"};
    f.between = objects;
    if (!fenced) return;
    f.middle = "\", \"arguments\": ";
    f.fences = {{"```json", "```"}, {"```tool_code", "```"}, {"```", "```"}};
    for (const char* fence : {"```json\n", "```\n"}) {
      for (const std::string& object : objects) f.between.push_back(fence + object);
    }
  });
}

Family with_short_ids(Family family) {
  family.short_ids = true;
  return family;
}

Family with_channels(Family family) {
  family.thinking_field = family.channels = true;
  return family;
}

// Families whose marks are tokens of their own. The order matters: see the top of the file.
std::vector<Family> first_rows() {
  const std::string calls = "<｜tool▁calls▁begin｜>", sep = "<｜tool▁sep｜>";
  const std::string end = "<｜tool▁call▁end｜>";
  const Texts names = {"<|channel|>", "<|message|>"};
  return {
      with_channels({"harmony", names, std::make_shared<Harmony>(), {"<|call|>", "<|return|>"}}),
      {"deepseek-v3",
       {calls, "```json"},
       deepseek({"\n```json\n"}, "function" + sep, {"\n```" + end, end}, "\n"),
       {}},
      {"deepseek-v3.1", {calls}, deepseek({sep}, "", {end}), {}},
      {"kimi", {"<|tool_calls_section_begin|>"}, kimi(), {}},
      with_short_ids({"mistral", {"[TOOL_CALLS]", "[ARGS]"}, std::make_shared<Mistral>(true), {}}),
      with_short_ids({"mistral-list", {"[TOOL_CALLS]"}, std::make_shared<Mistral>(false), {}}),
      {"cohere", {"<|START_ACTION|>"}, cohere(), {}},
      {"gemma",
       {"<|tool_call>", "<tool_call|>"},
       std::make_shared<Braces>("<|tool_call>", "<tool_call|>", "<|\"|>"),
       {"<|tool_response>"}},
      {"function-gemma",
       {"<start_function_call>"},
       std::make_shared<Braces>("<start_function_call>", "<end_function_call>", "<escape>"),
       {"<start_function_response>"}},
      {"minimax", {"<minimax:tool_call>"}, minimax(), {}},
      {"deepseek-v3.2", {"｜DSML｜", "function_calls"}, dsml("function_calls"), {}},
      {"deepseek-v4", {"｜DSML｜", "tool_calls"}, dsml("tool_calls"), {}},
      {"seed",
       {"<seed:tool_call>"},
       function_markup("<seed:tool_call>", "</seed:tool_call>", ""),
       {}},
      {"glm", {"<arg_key>", "\\n<arg_value>"}, glm("\n"), {}},
      {"glm", {"<arg_key>", "\n<arg_value>"}, glm("\n"), {}},
      {"glm-4.7", {"<arg_key>"}, glm(""), {}},
      {"qwen-coder",
       {"<tool_call>", "<function=", "<parameter="},
       function_markup("<tool_call>", "</tool_call>", "\n", {"\n<parameter=", "\n</function>"}),
       {}},
      {"function-tags", {"<function=", "</function>"}, function_tags(), {"<|eom_id|>"}},
  };
}

// Those whose calls are JSON or Python after a mark that others may have, too.
std::vector<Family> last_rows() {
  const std::string python = "<|python_tag|>";
  return {
      {"phi",
       {"<|tool_call|>", "<|/tool_call|>"},
       tagged({"<|tool_call|>", "functools"}, "<|/tool_call|>", true),
       {}},
      {"granite", {"<|tool_call|>"}, tagged({"<|tool_call|>", "<tool_call>"}, "", true), {}},
      {"functools", {"functools["}, tagged({"functools"}, "", true), {}},
      {"nemotron", {"<TOOLCALL>"}, tagged({"<TOOLCALL>"}, "</TOOLCALL>", true), {}},
      {"apriel", {"<tool_calls>"}, tagged({"<tool_calls>"}, "</tool_calls>", true), {}},
      {"gigachat", {"<|function_call|>"}, tagged({"<|function_call|>"}, "", false), {}},
      {"gigachat-3", {"function call", "<|role_sep|>"}, gigachat3(), {}},
      {"hermes", {"<tool_call>"}, tagged({"<tool_call>"}, "</tool_call>", false, "\n"), {}},
      {"lfm2",
       {"<|tool_call_start|>"},
       pythonic({"<|tool_call_start|>"}, "<|tool_call_end|>", true),
       {}},
      {"lfm2",
       {"<|tool_list_start|>"},
       pythonic({"<|tool_call_start|>"}, "<|tool_call_end|>", true),
       {}},
      {"olmo",
       {"<function_calls>", "</function_calls>"},
       pythonic({"<function_calls>\n", "<function_calls>"}, "\n</function_calls>", false),
       {}},
      {"tool-code", {"```tool_code"}, pythonic({"```tool_code\n"}, "\n```", false), {}},
      {"pythonic", {"[func_name1("}, pythonic({}, "", true), {}},
      {"llama", {python}, bare({python}), {"<|eom_id|>"}},
      {"llama", {"{\"name\": function name, \"parameters\":"}, bare({python}), {}},
      {"json", {}, bare({"<tool_call>"}, true), {}},
  };
}

const std::vector<Family>& families() {  // the last one is the generic one
  static const std::vector<Family> kFamilies = [] {
    std::vector<Family> rows = first_rows();
    for (Family& family : last_rows()) rows.push_back(std::move(family));
    return rows;
  }();
  return kFamilies;
}

template <typename Known>
const Family& first_family(Known known) {
  return *std::find_if(families().begin(), families().end(), [&](const Family& family) {
    return std::all_of(family.signs.begin(), family.signs.end(), known);
  });
}

}  // namespace

std::string Family::new_id() const {
  static thread_local std::random_device device;
  std::string made = short_ids ? "" : "call_";
  const size_t letters = short_ids ? kIdLetters.size() : 16;
  for (size_t i = 0; i < (short_ids ? kShortId : 24); ++i) {
    made += short_ids ? kIdLetters[device() % letters] : "0123456789abcdef"[device() % letters];
  }
  return made;
}

std::string Family::known_id(const std::string& given) const {
  const bool fits =
      given.size() == kShortId && given.find_first_not_of(kIdLetters) == std::string::npos;
  if (!short_ids || fits) return given;
  const Blake2b::Digest digest = Blake2b().bytes(given.data(), given.size()).finish();
  uint64_t number = 0;
  for (size_t i = 0; i < sizeof number; ++i) number = number << 8 | digest[i];
  std::string made;
  for (size_t i = 0; i < kShortId; ++i, number /= kIdLetters.size()) {
    made += kIdLetters[number % kIdLetters.size()];
  }
  return made;
}

const Family& generic_family() { return families().back(); }

const Family& family_of(std::string_view chat_template) {
  return first_family(
      [&](const std::string& sign) { return chat_template.find(sign) != chat_template.npos; });
}

const Family& family_of_tokens(const std::function<bool(const std::string&)>& known) {
  return first_family(known);
}

const Family& family_named(const std::string& name) {
  std::string names, last;
  for (const Family& family : families()) {
    if (family.name == name) return family;
    if (family.name != last) names += (names.empty() ? "" : ", ") + family.name;
    last = family.name;
  }
  throw Error(WHERRY_INVALID_ARGUMENT,
              "tool_format is " + jinja::repr_text(name) + "; it takes one of " + names);
}

}  // namespace wherry::app
