// Builds TVM's runtime as WebLLM's JavaScript needs it, from the wheel's sources: as
// ../wasm_runtime.cc, with TVM's caches of parameters and its functions for language models,
// without RPC. gpu.cc has WebGPU.
#include "../wasm_runtime.cc"
// The functions that WebLLM's JavaScript finds by name.
#include "src/runtime/timer.cc"
#include "src/runtime/vm/kv_state.cc"
#include "src/runtime/vm/lm_support.cc"
#include "src/runtime/vm/tensor_cache_support.cc"
