// Tests which messages of a conversation are kept where the context is full.
#include "app/chat/truncation.h"

#include <algorithm>

#include "testing/testing.h"

namespace {

using namespace wherry;
using namespace wherry::app;

constexpr int64_t kContext = 20;

// Returns a chat of messages "<first letter of the role><text>", each of as many tokens as letters.
Fields chat(const std::vector<std::string>& messages, const char* truncation, int64_t max_tokens) {
  Values values;
  for (const std::string& message : messages) {
    const char* role = message[0] == 's' ? "system" : message[0] == 'u' ? "user" : "assistant";
    values.push_back(json::make_dict({{"role", role}, {"content", message}}));
  }
  return Fields(json::make_dict({{"messages", json::make_list(std::move(values))},
                                 {"truncation", truncation},
                                 {"max_tokens", max_tokens > 0 ? Value(max_tokens) : Value()}}));
}

std::string kept(const Fields& fields) {
  std::string result;
  for (const Value& message : fields.find("messages")->items()) {
    result += Fields(message).text("content") + " ";
  }
  return result;
}

void check_kept(const std::vector<std::string>& messages, int64_t max_tokens, const char* expected,
                int64_t dropped, const char* truncation = "auto") {
  int counted = 0;
  const auto tokens = [&](const Fields& some) {
    ++counted;
    const std::string text = kept(some);
    return static_cast<int64_t>(text.size()) - std::count(text.begin(), text.end(), ' ');
  };
  const Truncated match = truncated(chat(messages, truncation, max_tokens), kContext, tokens);
  CHECK_EQ(kept(match.fields), expected);
  CHECK_EQ(match.dropped, dropped);
  CHECK(counted <= 1 + 4);  // a binary search over less than 16 turns
}

const std::vector<std::string> kLong = {"s1", "u123", "a123", "u456", "a456", "u789"};

TEST(the_oldest_turns_are_dropped_until_the_response_fits) {
  check_kept(kLong, 6, "s1 u456 a456 u789 ", 2);
  check_kept(kLong, 7, "s1 u789 ", 4);
  check_kept({"u123", "a123", "u456", "a456", "u789"}, 0, "u456 a456 u789 ", 2);  // 1/4 is free
  check_kept({"u1"}, 0, "u1 ", 0);
}

TEST(a_turn_has_all_messages_up_to_the_users_next_one) {
  check_kept({"u123", "a123", "a456", "u4", "a45678", "a78", "u7"}, 7, "u4 a45678 a78 u7 ", 3);
}

TEST(the_last_turn_stays) {
  check_kept(kLong, 19, "s1 u789 ", 4);
  check_kept({"s1"}, 25, "s1 ", 0);
}

TEST(nothing_is_dropped_without_a_request) {
  check_kept(kLong, 8, "s1 u123 a123 u456 a456 u789 ", 0, "disabled");
}

}  // namespace
