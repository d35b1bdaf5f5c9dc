# The rooms of the core; a file belongs to the build because it lies in one.
set(WHERRY_ROOMS abi cache cache/disk grammar model model/cuda model/graphs sampling scheduling
    speculation support weights)
# What apps need above tokens: on top of the core, which knows nothing of them.
file(GLOB_RECURSE _found RELATIVE "${CMAKE_CURRENT_LIST_DIR}" CONFIGURE_DEPENDS
     "${CMAKE_CURRENT_LIST_DIR}/app/*.cc")
set(WHERRY_APP_ROOMS "")
foreach(_source IN LISTS _found)
  get_filename_component(_room "${_source}" DIRECTORY)
  list(APPEND WHERRY_APP_ROOMS "${_room}")
endforeach()
list(REMOVE_DUPLICATES WHERRY_APP_ROOMS)
# Of these two there is one; see xgrammar.cmake.
set(WHERRY_WITH_GRAMMAR app/grammar/xgrammar)
set(WHERRY_WITHOUT_GRAMMAR app/grammar/none)
list(REMOVE_ITEM WHERRY_APP_ROOMS ${WHERRY_WITH_GRAMMAR} ${WHERRY_WITHOUT_GRAMMAR})

# wherry_sources(OUT ENGINE ROOM...): the sources of rooms, without tests.
function(wherry_sources out engine)
  list(TRANSFORM ARGN REPLACE "(.+)" "${engine}/\\1/*.cc" OUTPUT_VARIABLE _patterns)
  file(GLOB _found CONFIGURE_DEPENDS ${_patterns})
  list(FILTER _found EXCLUDE REGEX "_test\\.cc$")
  set(${out} ${_found} PARENT_SCOPE)
endfunction()
