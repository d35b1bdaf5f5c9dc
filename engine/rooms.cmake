# The rooms of the core; a file belongs to the build because it lies in one.
set(WHERRY_ROOMS abi cache cache/disk config matcher model sampling scheduling speculation support
    system tensors vm vm/cuda vm/graphs weights)

# wherry_sources(OUT FOLDER ROOM...): the sources of rooms, without tests.
function(wherry_sources out folder)
  list(TRANSFORM ARGN REPLACE "(.+)" "${folder}/\\1/*.cc" OUTPUT_VARIABLE _patterns)
  file(GLOB _found CONFIGURE_DEPENDS ${_patterns})
  list(FILTER _found EXCLUDE REGEX "_test\\.cc$")
  set(${out} ${_found} PARENT_SCOPE)
endfunction()
# wherry_unity_rooms(FOLDER SOURCE...): a unity build compiles a room of these sources as one file. The
# rooms' names are relative to FOLDER, because the order of files in a library follows from them.
function(wherry_unity_rooms folder)
  foreach(source IN LISTS ARGN)
    cmake_path(RELATIVE_PATH source BASE_DIRECTORY "${folder}" OUTPUT_VARIABLE _room)
    cmake_path(GET _room PARENT_PATH _room)
    set_source_files_properties("${source}" PROPERTIES UNITY_GROUP "${_room}")
  endforeach()
endfunction()
