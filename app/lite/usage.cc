#include "app/lite/usage.h"

namespace wherry::lite {

namespace {

constexpr char kProgram[] =
    "usage: wherry-lite COMMAND FOLDER [OPTION VALUE]...\n"
    "\n"
    "Runs a compiled model without Python. FOLDER is what `wherry compile` writes, or assets/NAME\n"
    "of what `wherry package --target linux-...` writes.\n"
    "\n"
    "  chat FOLDER            a conversation in the terminal\n"
    "  run FOLDER [PROMPT]    one answer; without PROMPT, to what standard input says\n"
    "  serve FOLDER           OpenAI's API over HTTP\n"
    "\n"
    "wherry-lite COMMAND --help lists the options of a command.\n";

constexpr char kChat[] =
    "usage: wherry-lite chat FOLDER [OPTION VALUE]...\n"
    "\n"
    "Enter sends; a message of several lines stands between two lines of \"\"\". Ctrl-C ends an\n"
    "answer, a second one the program. /help lists what else may be typed. When the conversation\n"
    "has become longer than the context its oldest turns are forgotten, and a line says so.\n";

constexpr char kRun[] =
    "usage: wherry-lite run FOLDER [PROMPT] [OPTION VALUE]...\n"
    "\n"
    "Answers PROMPT, or what standard input says, on standard output, and ends it with a newline.\n"
    "A model without a chat template continues PROMPT instead.\n"
    "\n"
    "  --image FILE          a JPEG, PNG or GIF, which stands before PROMPT; may be repeated\n"
    "  --completion          continue PROMPT in any case\n";

constexpr char kServe[] =
    "usage: wherry-lite serve FOLDER [OPTION VALUE]...\n"
    "\n"
    "POST /v1/chat/completions, /v1/completions, /v1/embeddings, /v1/rerank, /v1/score and\n"
    "/v1/classify, GET /v1/models, /health, /ready, /stats.\n"
    "Requests are answered together, streamed or complete; one ends when its client goes away.\n"
    "After SIGTERM or Ctrl-C no new ones are taken, and those running have 30 seconds, or until\n"
    "the next such signal.\n"
    "\n"
    "  --host HOST           default: 127.0.0.1; others than this machine's own only with a key\n"
    "  --port N              default: 8000; 0: a free one\n"
    "  --api-key KEY         require it; default: WHERRY_API_KEY\n"
    "  --allow-host NAME     a name of this machine that clients use, where no key is required\n"
    "  --name NAME           of the model, for clients; default: its own\n"
    "  --max-body N          bytes of one request; default: 1048576, for a model that reads "
    "images\n"
    "                        16777216\n"
    "  --quiet               no line for each request\n";

constexpr char kSampling[] =
    "\n"
    "  --system TEXT         system message\n"
    "  --max-tokens N        of an answer; default: until it ends, or the context is full; of a\n"
    "                        continuation 16\n"
    "  --temperature X, --top-p X, --top-k N, --min-p X, --repetition-penalty X\n"
    "                        default: the model's own\n"
    "  --seed N              the same seed, the same answer\n";

constexpr char kModel[] =
    "\n"
    "  --context N           tokens of prompt and answer; default: what it was compiled for\n"
    "  --kv-tokens N         tokens that all requests together have memory for\n"
    "  --kv-memory N         bytes that these tokens may take; default: no limit\n"
    "  --max-batch N         requests decoded together\n"
    "  --threads N           of the kernels; default: all cores\n"
    "  --pack-dir DIR        where weights are kept as the kernels read them, to be mapped from\n"
    "                        there; default: wherry-lite in ~/.cache\n"
    "  --library PATH        the compiled library; default: FOLDER's, or the one that is linked "
    "in\n"
    "  --device KIND[:N]     that the library is compiled for; default: cpu; of a package with\n"
    "                        code for several: the first of opencl, vulkan and cpu that works\n"
    "  --driver PATH         library that drives the device, if it is no CPU\n"
    "  --runtime PATH        TVM's run time, where it is neither linked in nor found\n";

}  // namespace

std::string usage(const std::string& command) {
  if (command == "chat") return std::string(kChat) + kSampling + kModel;
  if (command == "run") return std::string(kRun) + kSampling + kModel;
  if (command == "serve") return std::string(kServe) + kModel;
  return kProgram;
}

}  // namespace wherry::lite
