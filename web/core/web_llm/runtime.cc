// TVM's run time as WebLLM's JavaScript wants it, of the wheel's sources: as ../wasm_runtime.cc,
// with its caches of parameters and its functions for language models; no RPC. WebGPU: gpu.cc.
#include "../wasm_runtime.cc"
// What WebLLM's JavaScript finds by name.
#include "src/runtime/timer.cc"
#include "src/runtime/vm/kv_state.cc"
#include "src/runtime/vm/lm_support.cc"
#include "src/runtime/vm/tensor_cache_support.cc"
