# Plugins that drive devices, libwherry_<kind>: built where TVM's headers are, which the apache-tvm
# wheel brings, and the headers of the devices' API, if any are needed. They are classes of TVM's C++.
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
  if(UNIX AND NOT WHERRY_TVM_BY_C AND EXISTS "${_tvm_folder}/include/tvm/runtime/device_api.h")
    set(_have_tvm ON)
  endif()
endif()

# wherry_add_plugin(opencl api.cc ...): the sources are in the folder of that name.
function(wherry_add_plugin kind)
  if(NOT _have_tvm)
    string(TOUPPER "${kind}" _option)
    message(FATAL_ERROR
      "WHERRY_${_option} needs the headers of apache-tvm in ${Python_EXECUTABLE}")
  endif()
  list(TRANSFORM ARGN PREPEND "engine/backends/${kind}/" OUTPUT_VARIABLE _sources)
  set(_plugin wherry_${kind})
  add_library(${_plugin} SHARED
    engine/backends/blob.cc
    engine/backends/system_library.cc
    engine/backends/devices.cc
    engine/backends/files.cc
    engine/backends/parallel.cc
    engine/backends/plugin.cc
    ${_sources})
  set_target_properties(${_plugin} PROPERTIES UNITY_BUILD_BATCH_SIZE 0)  # one file, if any
  target_include_directories(${_plugin} PRIVATE engine)
  target_include_directories(${_plugin} SYSTEM PRIVATE "${_tvm_folder}/include")
  target_compile_definitions(${_plugin} PRIVATE "WHERRY_TVM_VERSION=\"${_tvm_version}\"")
  # The run time's classes; the device's own library is looked up when the plugin is used.
  find_library(WHERRY_TVM_RUNTIME tvm_runtime PATHS "${_tvm_folder}/lib" NO_DEFAULT_PATH REQUIRED)
  target_link_libraries(${_plugin} PRIVATE
    tvm_ffi::header tvm_ffi::shared "${WHERRY_TVM_RUNTIME}" Threads::Threads ${CMAKE_DL_LIBS})
  if(UNIX AND NOT APPLE)  # as for the core
    target_link_options(${_plugin} PRIVATE "LINKER:--version-script=${_exports}")
    set_target_properties(${_plugin} PROPERTIES LINK_DEPENDS "${_exports}")
  endif()
  set_target_properties(${_plugin} PROPERTIES
    CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON
    INSTALL_RPATH "${_origin}/../tvm_ffi/lib;${_origin}/../tvm/lib")
  if(WHERRY_DEV_RPATH)
    set_target_properties(${_plugin} PROPERTIES
      BUILD_RPATH "${_tvm_ffi_folder};${_tvm_folder}/lib")
  else()
    set_target_properties(${_plugin} PROPERTIES BUILD_WITH_INSTALL_RPATH ON)
  endif()
  install(TARGETS ${_plugin} DESTINATION wherry)
endfunction()

option(WHERRY_OPENCL "Build the plugin for OpenCL devices" ${_have_tvm})
if(WHERRY_OPENCL)
  wherry_add_plugin(opencl api.cc device.cc module.cc plugin.cc program.cc source.cc)
endif()

# Elsewhere than on Apple's systems this is for tests, which bring an Objective-C run time and classes
# of their own (tests/backends/metal).
set(WHERRY_METAL AUTO CACHE STRING
    "Build the plugin for Metal devices: ON, OFF, AUTO (on Apple's systems, and for tests)")
if(WHERRY_METAL STREQUAL "AUTO")
  set(WHERRY_METAL OFF)
  if(_have_tvm AND (APPLE OR WHERRY_TESTS))
    set(WHERRY_METAL ON)
  endif()
endif()
if(WHERRY_METAL)
  wherry_add_plugin(metal
    archive.cc device.cc kernels.cc memory.cc module.cc objc.cc pipelines.cc plugin.cc stream.cc)
  if(APPLE)
    target_link_libraries(wherry_metal PRIVATE "-framework Metal" "-framework Foundation" objc)
  endif()
endif()

# Vulkan's headers come with its SDK, or with a package: libvulkan-dev on Debian.
find_path(WHERRY_VULKAN_HEADERS vulkan/vulkan_core.h
  HINTS "$ENV{VULKAN_SDK}/include" "$ENV{VULKAN_SDK}/Include")
set(_have_vulkan OFF)
if(_have_tvm AND WHERRY_VULKAN_HEADERS)
  set(_have_vulkan ON)
endif()
set(WHERRY_VULKAN AUTO CACHE STRING "Build the plugin for Vulkan devices: ON, OFF, AUTO (if it can be)")
if(WHERRY_VULKAN STREQUAL "AUTO")  # looked at each time: headers may have come since
  set(WHERRY_VULKAN ${_have_vulkan})
endif()
if(WHERRY_VULKAN)
  if(NOT WHERRY_VULKAN_HEADERS)
    message(FATAL_ERROR
      "WHERRY_VULKAN needs vulkan/vulkan_core.h (Debian: apt-get install libvulkan-dev)")
  endif()
  wherry_add_plugin(vulkan
    api.cc device.cc kernels.cc memory.cc module.cc physical.cc pipelines.cc plugin.cc stream.cc)
  target_include_directories(wherry_vulkan SYSTEM PRIVATE "${WHERRY_VULKAN_HEADERS}")
elseif(_have_tvm)
  message(STATUS "No Vulkan headers: the plugin for Vulkan devices is not built "
    "(Debian: apt-get install libvulkan-dev)")
endif()
