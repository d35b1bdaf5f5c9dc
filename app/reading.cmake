# The archive wherry_reading: what reads requests, images, templates, grammars and outputs, and uses no
# engine. Apps and hosts link it; the linker leaves out what a program does not use.
include(app/rooms.cmake)
wherry_sources(_reading_sources "${CMAKE_CURRENT_SOURCE_DIR}"
  app/data app/grammar app/grammar/schema app/image app/request app/template app/tools
  app/tools/formats app/value app/value/unicode)
add_library(wherry_reading STATIC ${_reading_sources})
set_target_properties(wherry_reading PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP
  CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
if(WIN32)  # its linker takes whole objects, and asks for all that they need
  set_target_properties(wherry_reading PROPERTIES UNITY_BUILD OFF)
endif()
wherry_unity_rooms("${CMAKE_CURRENT_SOURCE_DIR}" ${_reading_sources})
target_include_directories(wherry_reading PUBLIC
  "${CMAKE_CURRENT_SOURCE_DIR}" engine engine/include app/include)
if(NOT MSVC)
  target_compile_options(wherry_reading PRIVATE -ffunction-sections -fdata-sections)
endif()
if(WHERRY_TOOLS)
  add_library(wherry_readers SHARED
    app/testing/images.cc app/testing/readers.cc engine/support/blake2b.cc)
  target_link_libraries(wherry_readers PRIVATE wherry_reading)
  set_target_properties(wherry_readers PROPERTIES
    CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  if(UNIX AND NOT APPLE)
    target_link_options(wherry_readers PRIVATE LINKER:--gc-sections,-z,defs)
  endif()
endif()
