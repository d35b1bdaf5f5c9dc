# Builds two WebAssembly modules for web pages: the app layer, wherry-app.wasm, and its grammar
# compiler, wherry-grammar.wasm. Neither depends on a model. ../core includes this file, because the
# modules share its compiler and libraries.
include("${_root}/app/rooms.cmake")
include("${_root}/cmake/xgrammar.cmake")
set(_rooms ${WHERRY_APP_ROOMS})
list(REMOVE_ITEM _rooms app/abi app/files app/grammar app/load app/support)
wherry_sources(_app_sources "${_root}" ${_rooms})
wherry_sources(_of_grammars "${_root}" app/grammar)
list(FILTER _of_grammars EXCLUDE REGEX "/grammars\\.cc$")
set(_app_sources ${_app_sources} ${_of_grammars})
# The sources of code that runs for each token of a stream are compiled with inlining, which makes
# them twice as fast and a third larger.
set(_streams ${_app_sources})
list(FILTER _streams INCLUDE REGEX "/(chat|text|tools)/[^/]+$|/(code_points|json_scan|json_text|value)\\.cc$")
list(REMOVE_ITEM _app_sources ${_streams})
add_library(app OBJECT ../app/page.cc ../app/exports.cc no_system.cc
  "${_engine}/sampling/params.cc" "${_engine}/support/blake2b.cc")
# Both modules link these libraries, and the linker removes unused functions. The grammar module
# needs the schema reader for %json in Lark grammars.
add_library(app_rooms OBJECT ${_app_sources})
add_library(app_streams OBJECT ${_streams})
set(WHERRY_APP_ROOMS)
wherry_add_xgrammar("${_root}")
wherry_sources(_grammar_sources "${_root}" ${WHERRY_APP_ROOMS})
add_library(grammar OBJECT ${_grammar_sources} ../app/grammars.cc ../app/exports.cc no_system.cc
  "${_engine}/matcher/mask.cc")
set(_flags -fwasm-exceptions -ffunction-sections -fdata-sections -fvisibility=hidden
  -fvisibility-inlines-hidden)
foreach(_module app app_rooms app_streams grammar)
  set_target_properties(${_module} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  target_include_directories(${_module} PRIVATE "${_root}" "${_engine}" "${_engine}/include" ../app)
  target_compile_options(${_module} PRIVATE -Os -Wall -Wextra -Werror ${_flags})
endforeach()
target_compile_options(app_streams PRIVATE -finline-functions)
add_dependencies(app app_rooms app_streams)
add_dependencies(grammar app_rooms app_streams)
foreach(source IN LISTS _app_sources _streams)
  cmake_path(GET source PARENT_PATH _room)
  set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${_room})
endforeach()
set(_xgrammar)
if(TARGET xgrammar)
  foreach(_name LICENSE NOTICE) # redistribution of the module requires these files
    configure_file("${WHERRY_XGRAMMAR}/${_name}" "${CMAKE_BINARY_DIR}/wherry-grammar.${_name}" COPYONLY)
  endforeach()
  target_compile_options(xgrammar PRIVATE -fwasm-exceptions)
  target_link_libraries(grammar PRIVATE xgrammar)
  set(_xgrammar "$<TARGET_FILE:xgrammar>")
endif()

find_program(WASM_OPT wasm-opt REQUIRED)
# wherry_link_module(NAME FILE...) links wherry-NAME.wasm from the objects of the target NAME and
# the given files. The stack has the lowest addresses, so an overflow traps instead of overwriting
# data.
function(wherry_link_module name)
  set(_wasm "${CMAKE_BINARY_DIR}/wherry-${name}.wasm")
  add_custom_command(OUTPUT "${_wasm}"
    COMMAND "${WASM_LD}" --no-entry --gc-sections --strip-all --stack-first -z stack-size=4194304
            -o "${_wasm}.linked" "$<TARGET_OBJECTS:${name}>" ${ARGN} ${_archives}
    # Binaryen's optimizer reduces the size by a third.
    COMMAND "${WASM_OPT}" -Os --enable-exception-handling --enable-sign-ext --enable-bulk-memory
            --enable-mutable-globals --enable-nontrapping-float-to-int "${_wasm}.linked" -o "${_wasm}"
    DEPENDS ${name} "$<TARGET_OBJECTS:${name}>" ${ARGN}
    COMMAND_EXPAND_LISTS VERBATIM)
endfunction()
set(_rooms "$<TARGET_OBJECTS:app_rooms>" "$<TARGET_OBJECTS:app_streams>")
wherry_link_module(app ${_rooms})
wherry_link_module(grammar ${_rooms} ${_xgrammar})
add_custom_target(app_modules ALL
  DEPENDS "${CMAKE_BINARY_DIR}/wherry-app.wasm" "${CMAKE_BINARY_DIR}/wherry-grammar.wasm")
