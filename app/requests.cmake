# The archive wherry_requests: requests over any engine, tokenizer, template and grammar. Apps and hosts
# link it; the linker leaves out what a program does not use.
include(app/rooms.cmake)
set(_request_rooms ${WHERRY_APP_ROOMS})
list(FILTER _request_rooms INCLUDE REGEX "^app/(chat|vectors|text)(/|$)")
wherry_sources(_request_sources "${CMAKE_CURRENT_SOURCE_DIR}" ${_request_rooms})
list(REMOVE_ITEM _request_sources ${_reading_sources})
add_library(wherry_requests STATIC ${_request_sources})
set_target_properties(wherry_requests PROPERTIES UNITY_BUILD_MODE GROUP
  CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
if(WIN32)  # its linker takes whole objects, and asks for all that they need
  set_target_properties(wherry_requests PROPERTIES UNITY_BUILD OFF)
endif()
wherry_unity_rooms("${CMAKE_CURRENT_SOURCE_DIR}" ${_request_sources})
if(NOT MSVC)
  target_compile_options(wherry_requests PRIVATE -ffunction-sections -fdata-sections)
endif()
target_link_libraries(wherry_requests PUBLIC wherry_reading)
