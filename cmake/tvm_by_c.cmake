# TVM's libraries are C++ of one compiler: of GCC on Linux, of Microsoft's on Windows. Where another
# one compiles the core, no exception may pass between the two, and only C functions are called.
# tvm-ffi's headers call a function directly if its caller is C++, too: `wherry_tvm_by_c(target)` puts
# headers before them that take its C entry, which returns errors. engine/support/tvm_calls.cc has the
# rest.
function(wherry_tvm_by_c target)
  get_target_property(_folders tvm_ffi::header INTERFACE_INCLUDE_DIRECTORIES)
  list(GET _folders 0 _folder)
  set(_out "${CMAKE_CURRENT_BINARY_DIR}/tvm_by_c")
  _wherry_replaced("${_folder}" "${_out}" function.h
    "this->cpp_call ? reinterpret_cast<FCall>(this->cpp_call) : CppCallDedirectToSafeCall"
    "CppCallDedirectToSafeCall"
    "this->cpp_call = reinterpret_cast<void*>(CppCall)" "this->cpp_call = nullptr"
    "reinterpret_cast<FCall>(self->cpp_call)(self, reinterpret_cast<const AnyView*>(args), num_args,"
    "CppCall(self, reinterpret_cast<const AnyView*>(args), num_args,")
  _wherry_replaced("${_folder}" "${_out}" memory.h "#ifdef _MSC_VER" "#ifdef _WIN32")
  target_include_directories(${target} BEFORE PUBLIC "${_out}")
  target_compile_definitions(${target} PRIVATE WHERRY_TVM_BY_C)
endfunction()

# Writes tvm/ffi/NAME into `out`, with each text replaced by the one after it.
function(_wherry_replaced folder out name)
  file(READ "${folder}/tvm/ffi/${name}" _text)
  while(ARGN)
    list(POP_FRONT ARGN _old _new)
    string(FIND "${_text}" "${_old}" _place)
    if(_place EQUAL -1)
      message(FATAL_ERROR "${folder}/tvm/ffi/${name} has no \"${_old}\" to be replaced")
    endif()
    string(REPLACE "${_old}" "${_new}" _text "${_text}")
  endwhile()
  file(CONFIGURE OUTPUT "${out}/tvm/ffi/${name}" CONTENT "${_text}" @ONLY)
endfunction()
