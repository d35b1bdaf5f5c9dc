# xgrammar, for answers that are held to a schema or a grammar: sources out of its sdist, because its
# wheel has the library of a few systems alone. Python's own engine holds answers by llguidance, which is Rust.
set(WHERRY_XGRAMMAR_VERSION 0.2.8) # this one: what app/grammar says of a schema is said of it
find_path(WHERRY_XGRAMMAR include/xgrammar/compiler.h NO_CMAKE_FIND_ROOT_PATH
          HINTS "$ENV{WHERRY_TOOLS}/xgrammar" "$ENV{HOME}/.cache/wherry/tools/xgrammar"
          DOC "Folder of xgrammar's sources; without it answers are not held to anything")

# wherry_add_xgrammar(ROOT): adds the library `xgrammar` if it is here, and to WHERRY_APP_ROOMS the room
# of app/grammar that calls them, or the one that has nothing; with a warning, unless -DWHERRY_XGRAMMAR=
# leaves it out on purpose.
function(wherry_add_xgrammar root)
  set(_fix "python -m wherry.tools xgrammar")
  set(_version)
  if(EXISTS "${WHERRY_XGRAMMAR}/PKG-INFO")
    file(STRINGS "${WHERRY_XGRAMMAR}/PKG-INFO" _version REGEX "^Version: ")
  endif()
  if(NOT _version STREQUAL "Version: ${WHERRY_XGRAMMAR_VERSION}")
    if(NOT WHERRY_XGRAMMAR STREQUAL "")
      message(WARNING "This build refuses response_format, grammars and strict tools: it has no xgrammar "
        "${WHERRY_XGRAMMAR_VERSION} in WHERRY_XGRAMMAR=${WHERRY_XGRAMMAR}. Type: ${_fix}")
    endif()
    set(WHERRY_APP_ROOMS ${WHERRY_APP_ROOMS} ${WHERRY_WITHOUT_GRAMMAR} PARENT_SCOPE)
    return()
  endif()
  file(GLOB _sources "${WHERRY_XGRAMMAR}/cpp/*.cc" "${WHERRY_XGRAMMAR}/cpp/support/*.cc")
  list(FILTER _sources EXCLUDE REGEX "/(structural_tag|json_schema_converter)\\.cc$") # left_out.cc has their place
  add_library(xgrammar STATIC ${_sources})
  set_target_properties(xgrammar PROPERTIES UNITY_BUILD OFF) # files of its own have equal names
  target_include_directories(xgrammar SYSTEM PUBLIC "${WHERRY_XGRAMMAR}/include"
    "${WHERRY_XGRAMMAR}/3rdparty/dlpack/include")
  target_include_directories(xgrammar PRIVATE "${WHERRY_XGRAMMAR}/cpp" "${WHERRY_XGRAMMAR}/3rdparty/picojson")
  target_compile_definitions(xgrammar PRIVATE XGRAMMAR_LOG_CUSTOMIZE=1
    XGRAMMAR_ENABLE_CPPTRACE=0 XGRAMMAR_ENABLE_INTERNAL_CHECK=0)
  set(_hooks "${root}/app/grammar/xgrammar/hooks.h")
  set_source_files_properties(${_sources} PROPERTIES OBJECT_DEPENDS "${_hooks}")
  target_compile_options(xgrammar PRIVATE -w -g0 -Os -ffunction-sections -fdata-sections
    -fvisibility=hidden -fvisibility-inlines-hidden "SHELL:-include ${_hooks}")
  set_source_files_properties("${root}/app/grammar/xgrammar/left_out.cc" PROPERTIES
    INCLUDE_DIRECTORIES "${WHERRY_XGRAMMAR}/cpp;${WHERRY_XGRAMMAR}/3rdparty/picojson"
    COMPILE_DEFINITIONS "XGRAMMAR_LOG_CUSTOMIZE=1;XGRAMMAR_ENABLE_CPPTRACE=0"
    COMPILE_OPTIONS -w SKIP_UNITY_BUILD_INCLUSION ON)
  set(WHERRY_APP_ROOMS ${WHERRY_APP_ROOMS} ${WHERRY_WITH_GRAMMAR} PARENT_SCOPE)
endfunction()
