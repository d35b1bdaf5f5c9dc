#include "app/chat/parts_reply.h"

#include "app/chat/reply_text.h"

namespace wherry::app {

namespace {

Value part_json(const Part& part) {
  switch (part.kind) {
    case Part::Kind::kText:
      return json::make_list({"text", part.text});
    case Part::Kind::kReasoning:
      return json::make_list({"reasoning", part.text});
    case Part::Kind::kCallBegin:
      return json::make_list({"call", part.id, part.name, part.custom});
    case Part::Kind::kCallArguments:
      return json::make_list({"arguments", part.text});
    case Part::Kind::kCallEnd:
      break;
  }
  return json::make_list({"end", part.complete});
}

void add_totals(ObjectText& text, const Totals& totals) {
  text.add("usage", usage_of(totals));
  text.add("timings", timings_of(totals));
}

}  // namespace

std::string PartsReply::chunk(const Delta& delta) const {
  Values parts;
  for (const Part& part : delta.parts) parts.push_back(part_json(part));
  ObjectText text;
  text.raw("index", std::to_string(delta.index));
  text.add("parts", json::make_list(std::move(parts)));
  text.add("finish", delta.finish.empty() ? Value() : Value(delta.finish));
  text.add("stop", delta.stop ? Value(*delta.stop) : Value());
  if (plan_.logprobs) text.raw("logprobs", token_logprobs(delta.logprobs));
  return std::move(text).done();
}

std::string PartsReply::closing(const Totals& totals) const {
  ObjectText text;
  add_totals(text, totals);
  return std::move(text).done();
}

std::string PartsReply::complete(const std::vector<Delta>& choices, const Totals& totals) const {
  ListText list;
  for (const Delta& delta : choices) list.raw(chunk(delta));
  ObjectText text;
  text.raw("choices", std::move(list).done());
  add_totals(text, totals);
  return std::move(text).done();
}

}  // namespace wherry::app
