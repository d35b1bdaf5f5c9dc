# How libraries are made, in the place of CMake's rules for Darwin (zig.cmake).
set(CMAKE_AR "${WHERRY_ZIG}")
set(CMAKE_CXX_ARCHIVE_CREATE "<CMAKE_AR> ar --format=darwin qcs <TARGET> <OBJECTS>")
set(CMAKE_CXX_ARCHIVE_APPEND "<CMAKE_AR> ar --format=darwin qs <TARGET> <OBJECTS>")
set(CMAKE_CXX_ARCHIVE_FINISH "")
string(JOIN " " CMAKE_CXX_CREATE_SHARED_LIBRARY "\"${Python_EXECUTABLE}\""
  "\"${CMAKE_CURRENT_LIST_DIR}/link.py\" \"${WHERRY_ZIG}\" <TARGET> -target aarch64-macos.14.0 -Wl,-s"
  "<LINK_FLAGS> <SONAME_FLAG> <TARGET_INSTALLNAME_DIR><TARGET_SONAME> <OBJECTS> <LINK_LIBRARIES>")
