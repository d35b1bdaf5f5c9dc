# How libraries are made, in the place of CMake's rules (zig.cmake).
set(CMAKE_AR "${WHERRY_ZIG}")
set(CMAKE_CXX_ARCHIVE_CREATE "<CMAKE_AR> ar qcs <TARGET> <OBJECTS>")
set(CMAKE_CXX_ARCHIVE_APPEND "<CMAKE_AR> ar qs <TARGET> <OBJECTS>")
set(CMAKE_CXX_ARCHIVE_FINISH "")
if(WIN32)
  set(CMAKE_SHARED_LIBRARY_PREFIX "") # wherry.dll, as src/wherry/machine/plugins.py looks for
  string(JOIN " " CMAKE_CXX_CREATE_SHARED_LIBRARY
    "<CMAKE_CXX_COMPILER> -target ${WHERRY_ZIG_TARGET} -shared -s -Wl,-Brepro -o <TARGET>"
    "<LINK_FLAGS> <OBJECTS> <LINK_LIBRARIES>")
endif()
