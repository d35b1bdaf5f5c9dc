# wuffs, which decodes the image files of programs without Python: its single source file, out of a
# small package of PyPI that has it. Debian has none.
find_path(WHERRY_WUFFS wuffs-unsupported-snapshot.c NO_CMAKE_FIND_ROOT_PATH
          HINTS "$ENV{WHERRY_TOOLS}/wuffs" "$ENV{HOME}/.cache/wherry/tools/wuffs"
          DOC "Folder of wuffs's source; without it image files are refused")

# wherry_add_wuffs(): adds the library `wuffs` if it is here, and to WHERRY_APP_ROOMS the room of
# app/decode that calls it, or the one that refuses images.
function(wherry_add_wuffs)
  if(NOT WHERRY_WUFFS)
    message(STATUS "Programs without Python refuse images: no wuffs. Type: python -m wherry.tools wuffs")
    set(WHERRY_APP_ROOMS ${WHERRY_APP_ROOMS} app/decode app/decode/none PARENT_SCOPE)
    return()
  endif()
  set(_copy "${CMAKE_CURRENT_BINARY_DIR}/wuffs")
  configure_file("${WHERRY_WUFFS}/wuffs-unsupported-snapshot.c" "${_copy}/wuffs.h" COPYONLY)
  set(_modules "")
  foreach(_module ADLER32 BASE CRC32 DEFLATE GIF JPEG PNG ZLIB)
    string(APPEND _modules "#define WUFFS_CONFIG__MODULE__${_module}\n")
  endforeach()
  file(CONFIGURE OUTPUT "${_copy}/wuffs.cc" CONTENT
    "#define WUFFS_IMPLEMENTATION\n#define WUFFS_CONFIG__MODULES\n${_modules}#include \"wuffs.h\"\n")
  add_library(wuffs STATIC "${_copy}/wuffs.cc")
  set_target_properties(wuffs PROPERTIES UNITY_BUILD OFF)
  target_include_directories(wuffs SYSTEM PUBLIC "${_copy}")
  target_compile_options(wuffs PRIVATE -w -g0 -Os -ffunction-sections -fdata-sections -fvisibility=hidden)
  set(WHERRY_APP_ROOMS ${WHERRY_APP_ROOMS} app/decode app/decode/wuffs PARENT_SCOPE)
endfunction()
