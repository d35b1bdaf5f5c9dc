# Plugins of GPUs inside the library. They open the system's drivers when a model is loaded, so that
# machines without one run everything else; models.cc refers to them.
set(WHERRY_DRIVERS "" CACHE STRING "Plugins to compile in: metal;opencl;vulkan, or none")
set(WHERRY_VULKAN_HEADERS "" CACHE PATH "Folder of vulkan/vulkan_core.h; empty: the compiler's own")

if(WHERRY_DRIVERS)
  set(_backends "${_engine}/backends")
  file(GLOB _driver_sources CONFIGURE_DEPENDS "${_backends}/*.cc")
  foreach(_kind IN LISTS WHERRY_DRIVERS)
    file(GLOB _own CONFIGURE_DEPENDS "${_backends}/${_kind}/*.cc")
    list(APPEND _driver_sources ${_own})
  endforeach()
  add_library(drivers OBJECT ${_driver_sources})
  wherry_compiled(drivers)
  target_compile_definitions(drivers PRIVATE WHERRY_TVM_VERSION="") # its run time is in here
  target_compile_options(drivers PRIVATE -Wall -Wextra -Os)
  if(WHERRY_VULKAN_HEADERS)
    # Links to Vulkan's headers alone: the folder may have those of this machine's C library, too.
    foreach(_folder vulkan vk_video)
      if(EXISTS "${WHERRY_VULKAN_HEADERS}/${_folder}")
        file(MAKE_DIRECTORY "${CMAKE_BINARY_DIR}/vulkan_headers")
        file(CREATE_LINK "${WHERRY_VULKAN_HEADERS}/${_folder}"
          "${CMAKE_BINARY_DIR}/vulkan_headers/${_folder}" SYMBOLIC)
      endif()
    endforeach()
    target_include_directories(drivers SYSTEM PRIVATE "${CMAKE_BINARY_DIR}/vulkan_headers")
  endif()
endif()
