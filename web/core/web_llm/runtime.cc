// TVM's runtime as WebLLM's JavaScript needs it, compiled from the wheel's sources:
// ../wasm_runtime.cc with TVM's parameter cache and its functions for language models; without RPC.
// gpu.cc adds WebGPU.
#include "../wasm_runtime.cc"
// Sources whose functions WebLLM's JavaScript finds by name.
#include "src/runtime/timer.cc"
#include "src/runtime/vm/kv_state.cc"
#include "src/runtime/vm/lm_support.cc"
#include "src/runtime/vm/tensor_cache_support.cc"
