// Implements filters of texts and numbers.
#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "app/template/functions.h"
#include "app/template/operators.h"
#include "app/template/runtime.h"
#include "app/template/text_pieces.h"
#include "app/value/code_points.h"
#include "app/value/json_text.h"
#include "app/value/unicode/characters.h"

namespace wherry::jinja {

namespace {

template <std::string (*change)(std::string_view)>
Value changes(Runtime&, const Value& value, const Arguments& given) {
  const Bound none(given, {});
  return like(value, change(to_string(value)));
}

Value trim(Runtime&, const Value& value, const Arguments& given) {
  const Bound arguments(given, {"chars="});
  return like(value, without_ends(to_string(value), arguments[0]));
}

// Returns the text with the first letter of each word in upper case, by Jinja's definition of a
// word.
std::string title_of(std::string_view text) {
  std::string result;
  for (size_t at = 0; at < text.size();) {
    const auto separates = [](char32_t c) {
      return c == '-' || c == '(' || c == '{' || c == '[' || c == '<' || is_space(c);
    };
    size_t end = at, first = at;
    const bool sign = separates(next_code_point(text, first));
    while (end < text.size()) {
      size_t next = end;
      if (separates(next_code_point(text, next)) != sign) break;
      end = next;
    }
    result += upper(text.substr(at, first - at));
    result += lower(text.substr(first, end - first));
    at = end;
  }
  return result;
}

Value title(Runtime&, const Value& value, const Arguments& given) {
  const Bound none(given, {});
  return Value(title_of(to_string(value)));
}

Value center(Runtime&, const Value& value, const Arguments& given) {
  const Bound arguments(given, {"width="});
  return Value(centered(to_string(value), arguments[0] ? to_integer(*arguments[0]) : 80, " "));
}

Value replace(Runtime& runtime, const Value& value, const Arguments& given) {
  const Bound arguments(given, {"old", "new", "count="});
  const bool all = arguments[2] == nullptr || arguments[2]->is_none();
  return Value(replaced(runtime.budget(), to_string(value), to_string(*arguments[0]),
                        to_string(*arguments[1]), all ? -1 : to_integer(*arguments[2])));
}

Value indent(Runtime& runtime, const Value& value, const Arguments& given) {
  const Bound arguments(given, {"width=", "first=", "blank="});
  const Value width = arguments.or_else(0, Value(4));
  use(value);
  if (!value.is_string()) fail("a function takes a text");
  const std::string space =
      width.is_string()
          ? width.text()
          : std::string(static_cast<size_t>(std::max<int64_t>(to_integer(width), 0)), ' ');
  const std::string text = value.text() + "\n";
  const auto breaks = static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
  runtime.budget().check(value.chars() + breaks * count_code_points(space));
  const bool blank = arguments[2] && truth(*arguments[2]);
  std::string result = arguments[1] && truth(*arguments[1]) ? space : "";
  bool first = true;
  for (std::string_view line : lines_of(text, false)) {
    if (!first) result += "\n";
    if (!first && (blank || !line.empty())) result += space;
    result += line;
    first = false;
  }
  return Value(std::move(result));
}

Value truncate(Runtime&, const Value& value, const Arguments& given) {
  const Bound arguments(given, {"length=", "killwords=", "end=", "leeway="});
  const int64_t length = arguments[0] ? to_integer(*arguments[0]) : 255;
  const std::string end = arguments[2] ? to_string(*arguments[2]) : "...";
  const auto room = static_cast<int64_t>(count_code_points(end));
  const bool usual = arguments[3] == nullptr || arguments[3]->is_none();
  const int64_t leeway = usual ? 5 : to_integer(*arguments[3]);
  if (length < room) fail("length is less than that of the end");
  if (leeway < 0) fail("leeway is negative");
  if (length_of(value) <= length + leeway) return value;
  const Value head = slice(value, Value(), Value(length - room), Value());
  const bool words = !(arguments[1] && truth(*arguments[1]));
  if (!value.is_string()) {  // Python calls a method here that only strings have
    fail("truncate takes a text");
  }
  const std::string kept = to_string(head);
  const size_t space = words ? kept.rfind(' ') : kept.npos;
  return Value(kept.substr(0, space) + end);
}

Value wordcount(Runtime&, const Value& value, const Arguments&) {
  return Value::size(words_of(to_string(value)).size());
}

Value to_text(Runtime&, const Value& value, const Arguments&) {
  return like(value, to_string(value));
}

Value escape(Runtime&, const Value& value, const Arguments&) {
  return Value::markup(escaped(value));
}

Value forceescape(Runtime&, const Value& value, const Arguments&) {
  return Value::markup(escaped(Value(to_string(value))));
}

Value safe(Runtime&, const Value& value, const Arguments&) {
  return Value::markup(to_string(value));
}

// Returns the key and the value of a pair; fails for other values.
std::pair<Value, Value> two_of(const Value& pair) {
  Values parts;
  Next next = iterate(pair);
  for (Value part; parts.size() < 3 && next(part);) parts.push_back(part);
  if (parts.size() > 2) fail("a function takes pairs");
  if (parts.size() < 2) fail("a function takes pairs");
  return {parts[0], parts[1]};
}

Value urlencode(Runtime&, const Value& value, const Arguments&) {
  const auto quoted = [](const std::string& text, bool slash) {
    static constexpr std::string_view kKept =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-~";
    std::string result;
    for (char c : text) {
      if (kKept.find(c) != kKept.npos || (c == '/' && slash)) {
        result += c;
      } else if (c == ' ' && !slash) {
        result += '+';
      } else {
        static constexpr char kHex[] = "0123456789ABCDEF";
        const auto byte = static_cast<unsigned char>(c);
        result += {'%', kHex[byte >> 4], kHex[byte & 15]};
      }
    }
    return result;
  };
  if (value.is_string() || (!has_length(value) && !value.is(Kind::kIterator))) {
    return Value(quoted(to_string(value), true));
  }
  std::string result;
  Next next = iterate(value);
  if (value.is_dict()) {
    auto view = std::make_shared<View>();
    view->part = 'i';
    view->of = value;
    next = iterate(Value(Kind::kView, std::move(view)));
  }
  for (Value pair; next(pair);) {
    const auto [key, item] = two_of(pair);
    result += (result.empty() ? "" : "&") + quoted(to_string(key), false) + "=" +
              quoted(to_string(item), false);
  }
  return Value(std::move(result));
}

Value format(Runtime& runtime, const Value& value, const Arguments& given) {
  if (!given.positional.empty() && !given.named.empty()) {
    fail("can't handle positional and keyword arguments at the same time");
  }
  std::vector<std::pair<Value, Value>> named;
  for (const auto& [name, one] : given.named) named.emplace_back(name, one);
  const Value values = named.empty() ? make_tuple(given.positional) : make_dict(std::move(named));
  return like(value, percent(runtime.budget(), to_string(value), values, value.is_markup()));
}

// Returns the digits of a number as Python's int() and float() accept them: with spaces around and
// single underscores within.
std::optional<std::string> digits_of(const std::string& text) {
  std::string result;
  const std::string bare = without_ends(text, nullptr);
  for (size_t i = 0; i < bare.size(); ++i) {
    const auto digit = [&](size_t k) {
      return k < bare.size() && std::isalnum(static_cast<unsigned char>(bare[k]));
    };
    if (bare[i] != '_') {
      result += bare[i];
    } else if (i == 0 || !digit(i - 1) || !digit(i + 1)) {
      return std::nullopt;
    }
  }
  return result.empty() ? std::nullopt : std::optional<std::string>(result);
}

std::optional<double> float_of(const Value& value) {
  if (value.is_number()) return value.number();
  if (!value.is_string()) return std::nullopt;
  const std::optional<std::string> text = digits_of(value.text());
  if (!text || text->find_first_of("xXpP(") != text->npos) return std::nullopt;
  char* end = nullptr;
  const double result = std::strtod(text->c_str(), &end);
  if (*end != '\0') return std::nullopt;
  return result;
}

std::optional<int64_t> integer_of(const std::string& given, int64_t base) {
  std::optional<std::string> text = digits_of(given);
  if (!text) return std::nullopt;
  const size_t sign = (*text)[0] == '-' || (*text)[0] == '+';
  const auto prefix = [&](char c) {
    return text->size() > sign + 2 && (*text)[sign] == '0' && ((*text)[sign + 1] | 0x20) == c;
  };
  for (auto [c, radix] : {std::pair{'x', 16}, {'o', 8}, {'b', 2}}) {
    if (!prefix(c) || (base != radix && base != 0)) continue;
    base = radix;
    text->erase(sign, 2);
  }
  if (base == 0) base = 10;
  if (base < 2 || base > 36) fail("a base is from 2 to 36");
  if (text->size() == sign) return std::nullopt;
  for (size_t i = sign; i < text->size(); ++i) {
    if (!std::isalnum(static_cast<unsigned char>((*text)[i]))) return std::nullopt;
  }
  errno = 0;
  char* end = nullptr;
  const long long result = std::strtoll(text->c_str(), &end, static_cast<int>(base));
  if (*end != '\0') return std::nullopt;
  if (errno == ERANGE) fail("it makes a number of more than 63 bits");
  return result;
}

Value to_int(Runtime&, const Value& value, const Arguments& given) {
  const Bound arguments(given, {"default=", "base="});
  use(value);
  if (value.is_integer()) return Value(value.integer());
  if (value.is_string()) {
    const int64_t base = arguments[1] ? to_integer(*arguments[1]) : 10;
    if (std::optional<int64_t> result = integer_of(value.text(), base)) return Value(*result);
  }
  const std::optional<double> number = float_of(value);
  if (!number || !std::isfinite(*number)) return arguments.or_else(0, Value(0));
  if (std::fabs(*number) >= 9.2e18) fail("it makes a number of more than 63 bits");
  return Value(static_cast<int64_t>(*number));
}

Value to_float(Runtime&, const Value& value, const Arguments& given) {
  const Bound arguments(given, {"default="});
  use(value);
  const std::optional<double> number = float_of(value);
  return number ? Value(*number) : arguments.or_else(0, Value(0.0));
}

Value absolute(Runtime&, const Value& value, const Arguments&) {
  use(value);
  if (!value.is_number()) fail("abs takes a number");
  if (value.is(Kind::kFloat)) return Value(std::fabs(value.number()));
  return value.integer() < 0 ? negative(value) : Value(value.integer());
}

// Rounds to this number of digits, half to even, as Python's round does.
double rounded(double value, int64_t digits) {
  if (!std::isfinite(value) || digits > 300) return value;
  if (digits >= 0) return std::strtod(fixed(value, static_cast<int>(digits)).c_str(), nullptr);
  const double power = std::pow(10.0, static_cast<double>(-digits));
  return std::nearbyint(value / power) * power;
}

Value round(Runtime&, const Value& value, const Arguments& given) {
  const Bound arguments(given, {"precision=", "method="});
  const int64_t digits = arguments[0] ? to_integer(*arguments[0]) : 0;
  const std::string method = arguments[1] ? to_string(*arguments[1]) : "common";
  if (method != "common" && method != "ceil" && method != "floor") {
    fail("method must be common, ceil or floor");
  }
  use(value);
  if (!value.is_number()) fail("round takes a number");
  if (method == "common") {
    if (!value.is_integer()) return Value(rounded(value.number(), digits));
    if (digits >= 0) return Value(value.integer());
    return Value(static_cast<int64_t>(rounded(value.number(), digits)));
  }
  const double power = std::pow(10.0, static_cast<double>(digits));
  const double scaled = value.number() * power;
  return Value((method == "ceil" ? std::ceil(scaled) : std::floor(scaled)) / power);
}

Value filesizeformat(Runtime&, const Value& value, const Arguments& given) {
  const Bound arguments(given, {"binary="});
  const std::optional<double> size = float_of(value);
  if (!size) fail("a function takes a number");
  const bool binary = arguments[0] && truth(*arguments[0]);
  const double base = binary ? 1024 : 1000;
  if (*size == 1) return Value("1 Byte");
  if (*size < base) return Value(std::to_string(static_cast<int64_t>(*size)) + " Bytes");
  static constexpr char kUnits[] = "kMGTPEZY";
  double unit = base * base;
  size_t i = 0;
  for (; i + 1 < 8 && *size >= unit; ++i) unit *= base;
  const std::string letter(1, binary && i == 0 ? 'K' : kUnits[i]);
  return Value(fixed(base * *size / unit, 1) + " " + letter + (binary ? "iB" : "B"));
}

// Implements the filter tojson. Unlike Jinja's own filter, it does not escape HTML, because models
// were trained on plain JSON.
Value tojson(Runtime& runtime, const Value& value, const Arguments& given) {
  constexpr int64_t kWidest = 64;
  const Bound arguments(given, {"ensure_ascii=", "indent=", "separators=", "sort_keys="});
  JsonStyle style;
  style.ensure_ascii = arguments[0] && truth(*arguments[0]);
  style.sort_keys = arguments[3] && truth(*arguments[3]);
  if (const Value* indent = arguments[1]; indent != nullptr && !indent->is_none()) {
    if (indent->is_integer() && indent->integer() > kWidest) {
      fail("it indents by " + std::to_string(indent->integer()));
    }
    const int64_t width = indent->is_string()        ? std::atoll(indent->text().c_str())
                          : indent->is(Kind::kFloat) ? static_cast<int64_t>(indent->number())
                                                     : to_integer(*indent);
    style.indent = std::string(static_cast<size_t>(std::clamp<int64_t>(width, 0, kWidest)), ' ');
    style.comma = ",";
  }
  if (const Value* separators = arguments[2]; separators != nullptr && truth(*separators)) {
    const auto separator = [&](int64_t i) {
      const Value one = item(*separators, Value(i));
      use(one);
      return to_string(slice(one, Value(), Value(kWidest), Value()));
    };
    style.comma = separator(0);
    style.colon = separator(1);
  }
  const Budget& budget = runtime.budget();
  return Value(to_json(value, style, [&](size_t chars) { budget.check(chars); }));
}

}  // namespace

const Filter kTextFilters[] = {
    {"abs", absolute},
    {"capitalize", changes<capitalized>},
    {"center", center, false, false, true},
    {"e", escape},
    {"escape", escape},
    {"filesizeformat", filesizeformat},
    {"float", to_float},
    {"forceescape", forceescape},
    {"format", format},
    {"indent", indent, false, false, true},
    {"int", to_int},
    {"lower", changes<lower>},
    {"replace", replace},
    {"round", round, false, false, true},
    {"safe", safe},
    {"string", to_text},
    {"title", title},
    {"tojson", tojson},
    {"trim", trim},
    {"truncate", truncate},
    {"upper", changes<upper>},
    {"urlencode", urlencode},
    {"wordcount", wordcount},
    {nullptr, nullptr},
};

}  // namespace wherry::jinja
