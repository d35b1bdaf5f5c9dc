# How libraries are made, in the place of CMake's rules for Windows (zig.cmake).
set(CMAKE_AR "${WHERRY_ZIG}")
set(CMAKE_CXX_ARCHIVE_CREATE "<CMAKE_AR> ar qcs <TARGET> <OBJECTS>")
set(CMAKE_CXX_ARCHIVE_APPEND "<CMAKE_AR> ar qs <TARGET> <OBJECTS>")
set(CMAKE_CXX_ARCHIVE_FINISH "")
set(CMAKE_SHARED_LIBRARY_PREFIX "") # wherry.dll, as src/wherry/machine/plugins.py looks for
string(JOIN " " CMAKE_CXX_CREATE_SHARED_LIBRARY
  "<CMAKE_CXX_COMPILER> -target x86_64-windows-gnu -shared -s -o <TARGET>"
  "<LINK_FLAGS> <OBJECTS> <LINK_LIBRARIES>")
