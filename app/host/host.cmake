# libwherry_host: everything above tokens for a host with its own tokenizer, templates, grammars and
# engine (see host_abi.h), such as Python's server. It is installed next to libwherry and contains nothing
# of the core but the defaults of its parameters.
wherry_sources(_host_sources "${CMAKE_CURRENT_SOURCE_DIR}" app/host)
add_library(wherry_host SHARED ${_host_sources}
  engine/sampling/params.cc engine/support/blake2b.cc)
set_target_properties(wherry_host PROPERTIES UNITY_BUILD ON
  CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
target_link_libraries(wherry_host PRIVATE wherry_requests)
if(APPLE)
  target_link_options(wherry_host PRIVATE LINKER:-dead_strip)
elseif(UNIX)  # the symbols of wherry_*, and what they need
  target_link_options(wherry_host PRIVATE LINKER:--gc-sections,-z,defs
    "LINKER:--version-script=${_exports}")
  set_target_properties(wherry_host PROPERTIES LINK_DEPENDS "${_exports}")
endif()
install(TARGETS wherry_host DESTINATION wherry)
