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
