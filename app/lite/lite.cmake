# wherry_add_lite(): the program wherry-lite, with `serve` where the library `httplib` is.
# The caller links the core and app/.
function(wherry_add_lite)
  file(GLOB _sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/*.cc")
  set(_other no_serve)
  if(NOT TARGET httplib)
    set(_other "serve|http|idle|socket")
  endif()
  list(FILTER _sources EXCLUDE REGEX "/(${_other})\\.cc$")
  add_executable(wherry_lite ${_sources})
  set_target_properties(wherry_lite PROPERTIES OUTPUT_NAME wherry-lite)
  cmake_path(SET _root NORMALIZE "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/../..")
  target_include_directories(wherry_lite PRIVATE
    "${_root}" "${_root}/app/include" "${_root}/engine" "${_root}/engine/include")
  if(TARGET httplib)
    target_link_libraries(wherry_lite PRIVATE httplib)
  endif()
endfunction()
