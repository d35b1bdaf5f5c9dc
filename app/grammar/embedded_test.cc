#include "app/grammar/embedded.h"

#include "testing/testing.h"

namespace {

using wherry::app::embedded;

TEST(rules_get_names_of_their_own) {
  CHECK_EQ(
      embedded("root ::= (\"root\" a [a\"\\]a] | a-1{2,3})\na ::= (\"\\\"a\")\na-1 ::= ((a))", "x"),
      "x ::= (\"root\" x.a [a\"\\]a] | x.a-1{2,3})\nx.a ::= (\"\\\"a\")\nx.a-1 ::= ((x.a))\n");
}

TEST(options_and_macros_stay) {
  CHECK_EQ(embedded("root ::= TagDispatch((\"a\", a), loop_after_dispatch=true)\na[lazy] ::= b\n",
                    "x", {"b"}),
           "x ::= TagDispatch((\"a\", x.a), loop_after_dispatch=true)\nx.a[lazy] ::= x.b\n");
}

TEST(what_is_cut_off_does_no_harm) {
  CHECK_EQ(embedded("root ::= \"a\\", "x"), "x ::= \"a\\\n");
  CHECK_EQ(embedded("root ::= [a", "x"), "x ::= [a\n");
  CHECK_EQ(embedded("", "x"), "");
}

}  // namespace
