// Greedy generation with llama.cpp: llama_greedy MODEL COUNT OUT [float32]
//
// Reads prompts from stdin, a line of token ids each. Prints a line of COUNT token ids for each,
// and writes the logits from which each was taken to OUT, float32 [prompts, COUNT, vocabulary]. The
// KV cache is float16, or float32.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "llama.h"

namespace {

[[noreturn]] void Fail(const char* why) {
  std::fprintf(stderr, "llama_greedy: %s\n", why);
  std::exit(1);
}

}  // namespace

int main(int argc, char** argv) {
  const bool wide = argc == 5 && std::string(argv[4]) == "float32";
  if (argc != 4 && !wide) Fail("llama_greedy MODEL COUNT OUT [float32]");
  const int count = std::atoi(argv[2]);
  std::ofstream out(argv[3], std::ios::binary);
  llama_log_set([](ggml_log_level, const char*, void*) {}, nullptr);
  llama_backend_init();
  llama_model* model = llama_model_load_from_file(argv[1], llama_model_default_params());
  if (!model) Fail("the model cannot be loaded");
  const int vocabulary = llama_vocab_n_tokens(llama_model_get_vocab(model));
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream ids(line);
    std::vector<llama_token> tokens;
    for (llama_token id; ids >> id;) tokens.push_back(id);
    llama_context_params params = llama_context_default_params();
    params.n_ctx = static_cast<uint32_t>(tokens.size()) + count;
    params.n_batch = params.n_ctx;
    params.n_threads = params.n_threads_batch = 1;
    if (wide) params.type_k = params.type_v = GGML_TYPE_F32;
    llama_context* context = llama_init_from_model(model, params);
    if (!context) Fail("no context can be made");
    for (int i = 0; i < count; ++i) {
      const auto size = static_cast<int32_t>(tokens.size());
      if (llama_decode(context, llama_batch_get_one(tokens.data(), size))) Fail("decode failed");
      const float* logits = llama_get_logits_ith(context, -1);
      out.write(reinterpret_cast<const char*>(logits), vocabulary * sizeof(float));
      tokens = {static_cast<llama_token>(std::max_element(logits, logits + vocabulary) - logits)};
      std::printf("%d ", tokens[0]);
    }
    std::printf("\n");
    llama_free(context);
  }
  llama_model_free(model);
  if (!out.flush()) Fail("the logits cannot be written");
}
