#include "backends/metal/objc.h"

#include <tvm/ffi/error.h>

namespace wherry::metal {

Id class_of(const char* name) {
  Id object = objc_getClass(name);
  if (object == nullptr) TVM_FFI_THROW(RuntimeError) << "Metal: this system has no class " << name;
  return object;
}

Id retain(Id object) {
  static const Message<Id> retain("retain");
  return retain(object);
}

void release(Id object) {
  static const Message<void> release("release");
  release(object);
}

bool responds(Id object, Selector selector) {
  static const Message<Bool, Selector> responds("respondsToSelector:");
  return responds(object, selector) != 0;
}

Own make(const char* class_name) {
  static const Message<Id> make("new");
  return Own(make(class_of(class_name)));
}

AutoreleasePool::AutoreleasePool() {
  static const Message<Id> alloc("alloc"), init("init");
  static const Id pools = class_of("NSAutoreleasePool");
  pool_ = init(alloc(pools));
}

AutoreleasePool::~AutoreleasePool() {
  static const Message<void> drain("drain");
  drain(pool_);
}

Id string_of(const std::string& text) {
  static const Message<Id, const char*> make("stringWithUTF8String:");
  static const Id strings = class_of("NSString");
  return make(strings, text.c_str());
}

std::string text_of(Id string) {
  static const Message<const char*> utf8("UTF8String");
  const char* text = string == nullptr ? nullptr : utf8(string);
  return text == nullptr ? "" : text;
}

std::string system_version() {
  static const Message<Id> info("processInfo"), version("operatingSystemVersionString");
  return text_of(version(info(class_of("NSProcessInfo"))));
}

std::string text_of_error(Id error) {
  static const Message<Id> description("localizedDescription");
  return error == nullptr ? "no reason was given" : text_of(description(error));
}

}  // namespace wherry::metal
