#include "app/lite/asking.h"

#include <cstdio>

#include "app/value/json_text.h"

namespace wherry::lite {

namespace {

constexpr std::chrono::milliseconds kBetweenLooks{50};

void print(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

void add(Told& told, const Value& chunk) {
  if (find(chunk, "error") != nullptr) {
    told.error = text_at(chunk, "error/message");
    told.code = text_at(chunk, "error/code");
    return;
  }
  const std::string piece = text_at(chunk, "choices/0/delta/content") +  // text of chat chunks
                            text_at(chunk, "choices/0/text");  // text of completion chunks
  if (!piece.empty()) print(piece);
  told.text += piece;
  const std::string finish = text_at(chunk, "choices/0/finish_reason");
  if (!finish.empty()) told.finish = finish;
}

}  // namespace

Told ask(const Model& model, Items fields, const std::function<bool()>& stopped,
         const std::function<void(int64_t)>& on_dropped) {
  fields.emplace_back("stream", true);
  const auto answer = model.start(json::to_compact_json(json::make_dict(std::move(fields))));
  Told told;
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
      add(told, chunk);
    }
    last = taken.last;
  }
  const bool begun = told.error.empty() || !told.text.empty();
  if (begun && (told.text.empty() || told.text.back() != '\n')) print("\n");
  return told;
}

}  // namespace wherry::lite
