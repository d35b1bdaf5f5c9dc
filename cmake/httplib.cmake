# cpp-httplib, for `wherry-lite serve`: one header, or the header and the source that its split.py
# makes of it. Debian's package is a shared library of the machine's own CPU, and older than the
# limits of headers and bodies that a server wants.
set(WHERRY_HTTPLIB_VERSION 0.58.0) # the least; tests have this one
find_path(WHERRY_HTTPLIB httplib.h NO_CMAKE_FIND_ROOT_PATH
          HINTS "$ENV{WHERRY_TOOLS}/httplib" "$ENV{HOME}/.cache/wherry/tools/httplib"
          DOC "Folder of cpp-httplib; without it wherry-lite has no `serve`")

# Adds the library `httplib` if it is here.
function(wherry_add_httplib)
  set(_fix "python -m wherry.tools httplib")
  if(NOT WHERRY_HTTPLIB)
    message(STATUS "wherry-lite without `serve`: no cpp-httplib. Type: ${_fix}")
    return()
  endif()
  file(STRINGS "${WHERRY_HTTPLIB}/httplib.h" _line REGEX "define CPPHTTPLIB_VERSION \"")
  string(REGEX MATCH "[0-9.]+" _version "${_line}")
  if(_version VERSION_LESS WHERRY_HTTPLIB_VERSION)
    message(STATUS "wherry-lite without `serve`: ${WHERRY_HTTPLIB}/httplib.h is ${_version}. Type: ${_fix}")
    return()
  endif()
  # A separate folder, because the header's own folder may contain other headers of this machine.
  set(_copy "${CMAKE_CURRENT_BINARY_DIR}/httplib")
  set(_source "${_copy}/none.cc")
  file(CONFIGURE OUTPUT "${_source}" CONTENT "#include <httplib.h>\n")
  configure_file("${WHERRY_HTTPLIB}/httplib.h" "${_copy}/httplib.h" COPYONLY)
  if(EXISTS "${WHERRY_HTTPLIB}/httplib.cpp")
    configure_file("${WHERRY_HTTPLIB}/httplib.cpp" "${_copy}/httplib.cpp" COPYONLY)
    set(_source "${_copy}/httplib.cpp")
  endif()
  add_library(httplib STATIC "${_source}")
  target_include_directories(httplib SYSTEM PUBLIC "${_copy}")
  target_compile_options(httplib PRIVATE -w -Os -ffunction-sections -fdata-sections -fvisibility=hidden)
endfunction()
