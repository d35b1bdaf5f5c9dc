# The rooms of what apps need above tokens: every folder here that has sources. Paths are relative to
# the folder that has app/, as in #include.
get_filename_component(_root "${CMAKE_CURRENT_LIST_DIR}/.." ABSOLUTE)
file(GLOB_RECURSE _found RELATIVE "${_root}" CONFIGURE_DEPENDS "${CMAKE_CURRENT_LIST_DIR}/*.cc")
set(WHERRY_APP_ROOMS "")
foreach(_source IN LISTS _found)
  get_filename_component(_room "${_source}" DIRECTORY)
  list(APPEND WHERRY_APP_ROOMS "${_room}")
endforeach()
list(REMOVE_DUPLICATES WHERRY_APP_ROOMS)
# Programs and libraries of their own.
list(REMOVE_ITEM WHERRY_APP_ROOMS app/host app/lite app/programs app/testing)
# Of these two there is one; see xgrammar.cmake.
set(WHERRY_WITH_GRAMMAR app/grammar/xgrammar)
set(WHERRY_WITHOUT_GRAMMAR app/grammar/none)
list(REMOVE_ITEM WHERRY_APP_ROOMS ${WHERRY_WITH_GRAMMAR} ${WHERRY_WITHOUT_GRAMMAR})
# And of these; see wuffs.cmake.
list(REMOVE_ITEM WHERRY_APP_ROOMS app/decode app/decode/wuffs app/decode/none)
