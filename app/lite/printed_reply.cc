#include "app/lite/printed_reply.h"

#include <cstdio>

#include "app/value/json_text.h"

namespace wherry::lite {

namespace {

constexpr std::chrono::milliseconds kBetweenLooks{50};

void print(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

void add(PrintedReply& reply, const Value& chunk) {
  if (find(chunk, "error") != nullptr) {
    reply.error = text_at(chunk, "error/message");
    reply.code = text_at(chunk, "error/code");
    return;
  }
  const std::string piece = text_at(chunk, "choices/0/delta/content") +  // text of chat chunks
                            text_at(chunk, "choices/0/text");  // text of completion chunks
  if (!piece.empty()) print(piece);
  reply.text += piece;
  const std::string finish = text_at(chunk, "choices/0/finish_reason");
  if (!finish.empty()) reply.finish = finish;
}

}  // namespace

PrintedReply ask(const Model& model, Items fields, const std::function<bool()>& stopped,
                 const std::function<void(int64_t)>& on_dropped) {
  fields.emplace_back("stream", true);
  const auto answer = model.start(json::to_compact_json(json::make_dict(std::move(fields))));
  PrintedReply reply;
  for (bool last = false, ending = false; !last;) {
    const bool more = answer->wait(kBetweenLooks);
    if (!ending && stopped()) {
      ending = true;
      answer->abort();
    }
    if (!more) continue;
    Answer::Taken taken = answer->take();
    for (const std::string& json : taken.json) {
      const Value chunk = json::from_json(json);
      const Value* dropped = find(chunk, "dropped_messages");
      if (dropped != nullptr && on_dropped) on_dropped(dropped->integer());
      add(reply, chunk);
    }
    last = taken.last;
  }
  const bool begun = reply.error.empty() || !reply.text.empty();
  if (begun && (reply.text.empty() || reply.text.back() != '\n')) print("\n");
  return reply;
}

}  // namespace wherry::lite
