// Grammars that the host compiles.
#ifndef WHERRY_APP_HOST_HOST_GRAMMARS_H_
#define WHERRY_APP_HOST_HOST_GRAMMARS_H_

#include <mutex>
#include <unordered_map>

#include "app/grammar/compiled_grammar.h"
#include "app/host/services.h"

namespace wherry::app {

// Makes the masks of one grammar of the host.
struct MaskMaker {
  int (*mask)(void* context, const int32_t* stop_ids, size_t n, wherry_mask* out);
  void (*release)(void* context);
  void* context;
};

class HostGrammars : public GrammarSource {
 public:
  explicit HostGrammars(const Services& services) : services_(services) {}

  void compile(int64_t id, const Constraint& constraint, Done done) override;
  bool abandon(int64_t id) override;
  // Ends the wait of a request; the maker is released if no request waits any more. error_json: ""
  // for a grammar, else the error of the request.
  void constrained(int64_t id, const MaskMaker& maker, const std::string& error_json);

 private:
  const Services& services_;
  std::mutex mutex_;
  std::unordered_map<int64_t, Done> waiting_;
};

}  // namespace wherry::app

#endif  // WHERRY_APP_HOST_HOST_GRAMMARS_H_
