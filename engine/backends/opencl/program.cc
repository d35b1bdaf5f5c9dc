#include "backends/opencl/program.h"

#include <tvm/ffi/error.h>

#include <cstdio>
#include <cstring>
#include <optional>

#include "backends/files.h"
#include "support/hash.h"

namespace wherry::opencl {

namespace {

// The header of a cached file: the length of the compiled text and the hash of the binary; the text
// and the binary follow. The whole text is compared, so a hash collision only costs time. A binary
// with another hash is damaged, and drivers crash on damaged binaries.
struct Header {
  uint64_t text_size;
  uint64_t binary_hash;
};

std::string name_of_file(const std::string& text) {
  char name[32];
  std::snprintf(name, sizeof name, "%016llx.clbin",
                static_cast<unsigned long long>(Hash().text(text).value()));
  return name;
}

std::optional<std::string> cached_binary(const std::string& text) {
  std::string all = backends::read_cached(name_of_file(text));
  Header header{};
  if (all.size() < sizeof header) return std::nullopt;
  std::memcpy(&header, all.data(), sizeof header);
  if (header.text_size != text.size()) return std::nullopt;
  if (all.compare(sizeof header, text.size(), text) != 0) return std::nullopt;
  std::string binary = all.substr(sizeof header + text.size());
  if (binary.empty() || Hash().text(binary).value() != header.binary_hash) return std::nullopt;
  return binary;
}

void keep_binary(const std::string& text, const std::string& binary) {
  if (binary.empty()) return;
  Header header{text.size(), Hash().text(binary).value()};
  std::string all(reinterpret_cast<const char*>(&header), sizeof header);
  backends::write_cached(name_of_file(text), all + text + binary);
}

std::string binary_of(Program program) {
  const Api& cl = Api::get();
  size_t size = 0;
  check(cl.GetProgramInfo(program, kProgramBinarySizes, sizeof size, &size, nullptr),
        "clGetProgramInfo");
  std::string binary(size, '\0');
  char* data = binary.data();
  if (size != 0) {
    check(cl.GetProgramInfo(program, kProgramBinaries, sizeof data, &data, nullptr),
          "clGetProgramInfo");
  }
  return binary;
}

std::string log_of(Program program, DeviceId device) {
  const Api& cl = Api::get();
  size_t size = 0;
  cl.GetProgramBuildInfo(program, device, kProgramBuildLog, 0, nullptr, &size);
  std::string log(size, '\0');
  cl.GetProgramBuildInfo(program, device, kProgramBuildLog, size, log.data(), nullptr);
  return log.substr(0, log.find('\0'));
}

// Loads a cached binary; returns null if the device rejects it, for example after an update of its
// driver.
Program from_binary(const OpenClDevice& device, const std::string& binary) {
  const Api& cl = Api::get();
  DeviceId id = device.id();
  size_t size = binary.size();
  auto data = reinterpret_cast<const unsigned char*>(binary.data());
  Int of_device = kSuccess, status = kSuccess;
  Program program =
      cl.CreateProgramWithBinary(device.context(), 1, &id, &size, &data, &of_device, &status);
  if (status != kSuccess) return nullptr;
  if (of_device == kSuccess && cl.BuildProgram(program, 1, &id, "", nullptr, nullptr) == kSuccess) {
    return program;
  }
  cl.ReleaseProgram(program);
  return nullptr;
}

Program from_source(const OpenClDevice& device, const std::string& name, const std::string& text) {
  const Api& cl = Api::get();
  const char* data = text.c_str();
  size_t size = text.size();
  DeviceId id = device.id();
  Int status = kSuccess;
  Program program = cl.CreateProgramWithSource(device.context(), 1, &data, &size, &status);
  check(status, "clCreateProgramWithSource");
  status = cl.BuildProgram(program, 1, &id, "", nullptr, nullptr);
  if (status != kSuccess) {
    std::string log = log_of(program, id);
    cl.ReleaseProgram(program);
    TVM_FFI_THROW(RuntimeError) << "the OpenCL compiler of " << device.text(kDeviceName)
                                << " refuses kernel " << name << ": " << name_of(status) << "\n"
                                << log;
  }
  return program;
}

// Removes TVM's check for half arithmetic from the source of devices without it. The check stops a
// compilation even if halves are only loaded with vload_half, which every device has; the device's
// compiler still rejects kernels that compute with halves.
std::string without_half_check(const std::string& source) {
  size_t begin = source.find("#ifdef cl_khr_fp16");
  size_t end = source.find("#endif", begin);
  if (begin == std::string::npos || end == std::string::npos) return source;
  return source.substr(0, begin) + source.substr(end + sizeof "#endif" - 1);
}

}  // namespace

Kernel build_kernel(const OpenClDevice& device, const std::string& name,
                    const std::string& source) {
  // Turns contraction to fused multiply-add off: every kernel must give the same bits for a row.
  std::string text = "// " + device.identity() + "\n#pragma OPENCL FP_CONTRACT OFF\n";
  text += device.has_extension("cl_khr_fp16") ? source : without_half_check(source);
  Program program = nullptr;
  if (auto binary = cached_binary(text)) program = from_binary(device, *binary);
  if (program == nullptr) {
    program = from_source(device, name, text);
    keep_binary(text, binary_of(program));
  }
  const Api& cl = Api::get();
  Int status = kSuccess;
  Kernel kernel = cl.CreateKernel(program, name.c_str(), &status);
  cl.ReleaseProgram(program);  // the kernel keeps a reference to the program
  check(status, ("clCreateKernel of " + name).c_str());
  return kernel;
}

}  // namespace wherry::opencl
