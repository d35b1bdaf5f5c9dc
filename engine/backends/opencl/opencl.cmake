# libwherry_opencl: built where TVM's headers are, which the apache-tvm wheel brings.
execute_process(
  COMMAND "${Python_EXECUTABLE}" -c [[
import importlib.metadata, importlib.util, pathlib
spec = importlib.util.find_spec("tvm")
if spec:
    print(pathlib.Path(spec.origin).parent, importlib.metadata.version("apache-tvm"), sep=";")
]]
  OUTPUT_STRIP_TRAILING_WHITESPACE OUTPUT_VARIABLE _tvm)
set(_have_tvm OFF)
if(_tvm)
  list(GET _tvm 0 _tvm_folder)
  list(GET _tvm 1 _tvm_version)
  if(UNIX AND EXISTS "${_tvm_folder}/include/tvm/runtime/device_api.h")
    set(_have_tvm ON)
  endif()
endif()
option(WHERRY_OPENCL "Build the plugin for OpenCL devices" ${_have_tvm})

if(WHERRY_OPENCL)
  if(NOT _have_tvm)
    message(FATAL_ERROR "WHERRY_OPENCL needs the headers of apache-tvm in ${Python_EXECUTABLE}")
  endif()
  set(_here engine/backends/opencl)
  add_library(wherry_opencl SHARED
    ${_here}/api.cc
    ${_here}/device.cc
    ${_here}/module.cc
    ${_here}/plugin.cc
    ${_here}/program.cc
    ${_here}/source.cc)
  target_include_directories(wherry_opencl PRIVATE engine)
  target_include_directories(wherry_opencl SYSTEM PRIVATE "${_tvm_folder}/include")
  target_compile_definitions(wherry_opencl PRIVATE "WHERRY_TVM_VERSION=\"${_tvm_version}\"")
  # The run time's classes; OpenCL itself is looked up when the plugin is used.
  find_library(WHERRY_TVM_RUNTIME tvm_runtime PATHS "${_tvm_folder}/lib" NO_DEFAULT_PATH REQUIRED)
  target_link_libraries(wherry_opencl PRIVATE
    tvm_ffi::header tvm_ffi::shared "${WHERRY_TVM_RUNTIME}" ${CMAKE_DL_LIBS})
  set_target_properties(wherry_opencl PROPERTIES
    CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON
    INSTALL_RPATH "$ORIGIN/../tvm_ffi/lib:$ORIGIN/../tvm/lib")
  if(WHERRY_DEV_RPATH)
    set_target_properties(wherry_opencl PROPERTIES
      BUILD_RPATH "${_tvm_ffi_folder};${_tvm_folder}/lib")
  else()
    set_target_properties(wherry_opencl PROPERTIES BUILD_WITH_INSTALL_RPATH ON)
  endif()
  install(TARGETS wherry_opencl DESTINATION wherry)
endif()
