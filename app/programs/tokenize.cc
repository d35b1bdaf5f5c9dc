// Runs a tokenizer with commands from standard input; tests/app compares its results.
//
// A text is sent as its length in bytes, a newline, the bytes and a newline; a list of ids as its
// length and the ids. A result is one line, or a text in the same form.
//
//   open TEXT               loads a tokenizer.json; the result is "ok"
//   encode SPECIALS TEXT    ids; SPECIALS is 1 or 0
//   decode SPECIALS IDS     a text; 1 leaves special tokens out
//   piece ID                a text
//   find TEXT               an id, -1 if there is none
//   name ID                 a text, empty if there is none
//   size                    number of different tokens
//   detokenize PROMPT VISIBLE IDS   a text for each id, and one for the end
//   stop N TEXT... M TEXT...        stop strings, chunks: a text per chunk, one for the end, and
//                                   the stop string that was found ("" for none)
//   time TEXT               CPU seconds of the encoding, and the number of ids
// A failed command returns "error" and a message. An unknown command ends the program.
#include <cstdio>
#include <ctime>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "app/text/detokenizer.h"
#include "app/text/json_tokenizer.h"
#include "app/text/stop_strings.h"
#include "support/error.h"

namespace wherry {
namespace {

size_t read_number() {
  size_t value;
  if (!(std::cin >> value)) throw Error(WHERRY_INTERNAL, "a command lacks a number");
  return value;
}

std::string read_text() {
  std::string text(read_number(), '\0');
  std::cin.get();
  std::cin.read(text.data(), static_cast<std::streamsize>(text.size()));
  std::cin.get();
  return text;
}

std::vector<int32_t> read_ids() {
  std::vector<int32_t> ids(read_number());
  for (int32_t& id : ids) std::cin >> id;
  return ids;
}

std::vector<std::string> read_texts() {
  std::vector<std::string> texts(read_number());
  for (std::string& text : texts) text = read_text();
  return texts;
}

void print(const std::string& text) { std::cout << text.size() << '\n' << text << '\n'; }

void print(const std::vector<int32_t>& ids) {
  for (size_t i = 0; i < ids.size(); ++i) std::cout << (i ? " " : "") << ids[i];
  std::cout << '\n';
}

class Commands {
 public:
  void run(const std::string& command);

 private:
  void detokenize(const std::vector<int32_t>& prompt, const std::vector<int32_t>& visible,
                  const std::vector<int32_t>& ids) const;
  void stop(std::vector<std::string> stops, const std::vector<std::string>& chunks) const;
  void time(const std::string& text) const;

  std::unique_ptr<Tokenizer> tokenizer_;
};

void Commands::detokenize(const std::vector<int32_t>& prompt, const std::vector<int32_t>& visible,
                          const std::vector<int32_t>& ids) const {
  Detokenizer detokenizer(*tokenizer_, prompt, visible);
  for (int32_t id : ids) print(detokenizer.push(id));
  print(detokenizer.flush());
}

void Commands::stop(std::vector<std::string> stops, const std::vector<std::string>& chunks) const {
  StopStrings stop_strings(std::make_shared<StopAutomaton>(std::move(stops)));
  for (const std::string& chunk : chunks) print(stop_strings.push(chunk));
  print(stop_strings.flush());
  print(stop_strings.match().value_or(""));
}

void Commands::time(const std::string& text) const {
  std::clock_t begin = std::clock();
  size_t n = tokenizer_->encode(text, false).size();
  std::printf("%.6f %zu\n", static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC, n);
  std::fflush(stdout);
}

void Commands::run(const std::string& command) {
  if (command == "open") {
    std::string json = read_text();
    tokenizer_ = JsonTokenizer::read(json);
    std::cout << "ok\n";
  } else if (command == "encode") {
    bool specials = read_number() != 0;
    print(tokenizer_->encode(read_text(), specials));
  } else if (command == "decode") {
    bool skip = read_number() != 0;
    print(tokenizer_->decode(read_ids(), skip));
  } else if (command == "piece") {
    print(tokenizer_->piece(static_cast<int32_t>(read_number())));
  } else if (command == "find") {
    std::cout << tokenizer_->id_of(read_text()).value_or(-1) << '\n';
  } else if (command == "name") {
    print(tokenizer_->token_of(static_cast<int32_t>(read_number())).value_or(""));
  } else if (command == "size") {
    std::cout << tokenizer_->vocab_size() << '\n';
  } else if (command == "detokenize") {
    auto prompt = read_ids(), visible = read_ids(), ids = read_ids();
    detokenize(prompt, visible, ids);
  } else if (command == "stop") {
    auto stops = read_texts(), chunks = read_texts();
    stop(std::move(stops), chunks);
  } else if (command == "time") {
    time(read_text());
  } else {
    throw Error(WHERRY_INTERNAL, "unknown command " + command);
  }
}

int run_all() {
  Commands commands;
  for (std::string command; std::cin >> command; std::cout.flush()) {
    try {
      commands.run(command);
    } catch (const Error& error) {
      if (error.status() == WHERRY_INTERNAL) throw;
      std::cout << "error\n";
      print(error.what());
    }
  }
  return 0;
}

}  // namespace
}  // namespace wherry

int main() {
  try {
    std::ios::sync_with_stdio(false);
    return wherry::run_all();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
