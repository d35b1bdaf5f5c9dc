# The app for pages, wherry-app.wasm, and its grammars, wherry-grammar.wasm: whole modules, linked to
# no model. Included by ../core, whose compiler and libraries they share.
include("${_root}/app/rooms.cmake")
include("${_root}/cmake/xgrammar.cmake")
set(_rooms ${WHERRY_APP_ROOMS})
list(REMOVE_ITEM _rooms app/abi app/files app/grammar app/support)
wherry_sources(_app_sources "${_root}" ${_rooms})
# A page has neither folders nor threads nor an engine of its own.
list(FILTER _app_sources EXCLUDE REGEX "/chat/(app|folder|libraries|open)\\.cc$")
wherry_sources(_of_grammars "${_root}" app/grammar)
list(FILTER _of_grammars EXCLUDE REGEX "/grammars\\.cc$")
set(_app_sources ${_app_sources} ${_of_grammars})
# What runs for each token of a stream is compiled with inlining, which makes it twice as fast, and by
# a third larger.
set(_streams ${_app_sources})
list(FILTER _streams INCLUDE REGEX "/(chat|text|tools)/[^/]+$|/(code_points|json_text|value)\\.cc$")
list(REMOVE_ITEM _app_sources ${_streams})
add_library(app OBJECT ../app/page.cc ../app/exports.cc no_system.cc
  "${_engine}/sampling/params.cc" "${_engine}/support/blake2b.cc")
# Both modules link these, and the linker drops what a module does not call: the grammar module reads
# schemas, too, for %json in a Lark grammar.
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
  foreach(_name LICENSE NOTICE) # for who gives the module on
    configure_file("${WHERRY_XGRAMMAR}/${_name}" "${CMAKE_BINARY_DIR}/wherry-grammar.${_name}" COPYONLY)
  endforeach()
  target_compile_options(xgrammar PRIVATE -fwasm-exceptions)
  target_link_libraries(grammar PRIVATE xgrammar)
  set(_xgrammar "$<TARGET_FILE:xgrammar>")
endif()

find_program(WASM_OPT wasm-opt REQUIRED)
# wherry_link_module(NAME FILE...): wherry-NAME.wasm of the target NAME. The stack lies lowest: what runs
# over it traps, and writes over nothing.
function(wherry_link_module name)
  set(_wasm "${CMAKE_BINARY_DIR}/wherry-${name}.wasm")
  add_custom_command(OUTPUT "${_wasm}"
    COMMAND "${WASM_LD}" --no-entry --gc-sections --strip-all --stack-first -z stack-size=4194304
            -o "${_wasm}.linked" "$<TARGET_OBJECTS:${name}>" ${ARGN} ${_archives}
    # Binaryen makes a third less of it.
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
