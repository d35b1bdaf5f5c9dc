# WHERRY_JNI_HEADERS: the folder of jni.h, for Android the NDK's, else of the JDK that JAVA_HOME names,
# or whose javac is found.
if(ANDROID)
  find_path(WHERRY_JNI_HEADERS jni.h)
else()
  find_program(WHERRY_JAVAC javac)
  set(_jdk "")
  if(WHERRY_JAVAC)
    file(REAL_PATH "${WHERRY_JAVAC}" _jdk)
    cmake_path(GET _jdk PARENT_PATH _jdk)
    cmake_path(GET _jdk PARENT_PATH _jdk)
  endif()
  # A toolchain for another system looks for headers in that system's folder alone; these are not
  # of a system.
  find_path(WHERRY_JNI_HEADERS jni.h HINTS ENV JAVA_HOME PATHS "${_jdk}" PATH_SUFFIXES include
    NO_CMAKE_FIND_ROOT_PATH)
endif()
