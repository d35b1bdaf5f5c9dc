// Implements CUDA graph capture and replay. A step is captured on a separate stream, and replayed
// on the stream that the runtime uses for everything else, so that commands stay in order.
#include <utility>

#include "support/error.h"
#include "vm/cuda/cuda_context.h"
#include "vm/cuda/cuda_driver.h"
#include "vm/graphs/capture.h"

#ifdef WHERRY_HAS_CUDA
#include <tvm/ffi/extra/c_env_api.h>
#endif

namespace wherry {

#ifdef WHERRY_HAS_CUDA
namespace {

constexpr unsigned kNonBlocking = 1;  // stream flag: not synchronized with other streams
constexpr int kThreadLocal = 1;  // capture mode: invalid calls fail in the capturing thread alone

// Makes TVM launch this thread's kernels on the given stream for the object's lifetime.
class CurrentStream {
 public:
  CurrentStream(DLDevice device, void* stream) : device_(device) {
    TVM_FFI_CHECK_SAFE_CALL(
        TVMFFIEnvSetStream(device_.device_type, device_.device_id, stream, &before_));
  }
  ~CurrentStream() { TVMFFIEnvSetStream(device_.device_type, device_.device_id, before_, nullptr); }

 private:
  const DLDevice device_;
  TVMFFIStreamHandle before_ = nullptr;
};

class CudaGraph final : public CapturedGraph {
 public:
  // Takes ownership of the executable graph.
  CudaGraph(const CudaDriver& driver, DLDevice device, void* context, void* executable)
      : driver_(driver), device_(device), context_(context), executable_(executable) {}
  // Frees the graph; if a replay is running, the driver frees it after that replay.
  ~CudaGraph() override {
    CurrentContext current(driver_, context_);
    driver_.destroy_executable(executable_);
  }

  // Replays the graph from any thread. The context may not be current yet, if no array was copied
  // before.
  void replay() override {
    CurrentContext current(driver_, context_);
    void* stream = TVMFFIEnvGetStream(device_.device_type, device_.device_id);
    driver_.check(driver_.launch(executable_, stream), "cuGraphLaunch");
  }

 private:
  const CudaDriver& driver_;
  const DLDevice device_;
  void* const context_;
  void* const executable_;
};

class CudaCapturer final : public Capturer {
 public:
  CudaCapturer(const CudaDriver& driver, DLDevice device) : driver_(driver), device_(device) {}
  ~CudaCapturer() override {
    if (stream_ == nullptr) return;
    CurrentContext current(driver_, context_);
    driver_.destroy_stream(stream_);
  }

  std::unique_ptr<CapturedGraph> capture(const std::function<void()>& call) override {
    prepare();
    void* graph = captured(call);
    void* executable = nullptr;
    int status = driver_.instantiate(&executable, graph, 0);
    driver_.destroy_graph(graph);
    driver_.check(status, "cuGraphInstantiateWithFlags");
    return std::make_unique<CudaGraph>(driver_, device_, context_, executable);
  }

 private:
  // Copying the step's arrays has already made the runtime's context current in this thread.
  void prepare() {
    if (stream_ != nullptr) return;
    driver_.check(driver_.get_context(&context_), "cuCtxGetCurrent");
    driver_.check(driver_.create_stream(&stream_, kNonBlocking), "cuStreamCreate");
  }

  void* captured(const std::function<void()>& call) {
    CurrentStream current(device_, stream_);
    driver_.check(driver_.begin_capture(stream_, kThreadLocal), "cuStreamBeginCapture");
    void* graph = nullptr;
    try {
      call();
    } catch (...) {
      if (driver_.end_capture(stream_, &graph) == 0) driver_.destroy_graph(graph);
      throw;
    }
    driver_.check(driver_.end_capture(stream_, &graph), "cuStreamEndCapture");
    return graph;
  }

  const CudaDriver& driver_;
  const DLDevice device_;
  void* context_ = nullptr;
  void* stream_ = nullptr;
};

}  // namespace

std::unique_ptr<Capturer> open_capturer(DLDevice device) {
  if (device.device_type != kDLCUDA) return nullptr;
  const CudaDriver* driver = cuda_driver();
  if (driver == nullptr) return nullptr;
  return std::make_unique<CudaCapturer>(*driver, device);
}
#else
std::unique_ptr<Capturer> open_capturer(DLDevice) { return nullptr; }
#endif

}  // namespace wherry
