// Objective-C's run time, called from C++ without Apple's headers: any clang compiles this for
// Apple's systems, and tests run it on another run time.
//
// A method is a C function with the receiver and the selector as its first arguments. objc_msgSend
// finds that function and jumps to it, so a call must have the prototype of the method (Apple,
// "Objective-C Runtime", objc_msgSend).
#ifndef WHERRY_ENGINE_BACKENDS_METAL_OBJC_H_
#define WHERRY_ENGINE_BACKENDS_METAL_OBJC_H_

#include <string>
#include <utility>

extern "C" {
struct objc_object;
struct objc_selector;
void objc_msgSend(void);
objc_object* objc_getClass(const char* name);
objc_selector* sel_registerName(const char* name);
}

namespace wherry::metal {

using Id = objc_object*;
using Selector = objc_selector*;
using UInt = unsigned long;  // NSUInteger
using Int = long;            // NSInteger
using Bool = signed char;    // BOOL: 0 is NO

// A method's selector and prototype.
template <typename Result, typename... Arguments>
class Message {
 public:
  explicit Message(const char* name) : selector_(sel_registerName(name)) {}

  Result operator()(Id receiver, Arguments... arguments) const {
    using Method = Result (*)(Id, Selector, Arguments...);
    return reinterpret_cast<Method>(objc_msgSend)(receiver, selector_, arguments...);
  }
  Selector selector() const { return selector_; }

 private:
  Selector selector_;
};

// Returns a class. Throws a RuntimeError of tvm-ffi if this system lacks it.
Id class_of(const char* name);

Id retain(Id object);
void release(Id object);
bool responds(Id object, Selector selector);

// A reference to an object, which is released with it. Methods that start with "new" or "alloc"
// return an object that the caller owns; `retained` is for the results of others.
class Own {
 public:
  Own() = default;
  explicit Own(Id owned) : object_(owned) {}
  static Own retained(Id object) { return Own(retain(object)); }
  Own(Own&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Own& operator=(Own&& other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Own() {
    if (object_ != nullptr) release(object_);
  }

  Id get() const { return object_; }
  explicit operator bool() const { return object_ != nullptr; }
  void reset() { Own().swap(*this); }
  void swap(Own& other) { std::swap(object_, other.object_); }

 private:
  Id object_ = nullptr;
};

// Makes an object by the class's `new`.
Own make(const char* class_name);

// While it lives, objects that methods return without handing over are kept; threads of C++ have no
// pool of their own.
class AutoreleasePool {
 public:
  AutoreleasePool();
  ~AutoreleasePool();
  AutoreleasePool(const AutoreleasePool&) = delete;
  AutoreleasePool& operator=(const AutoreleasePool&) = delete;

 private:
  Id pool_;
};

// Convert between UTF-8 and NSString; `string_of` returns an object of the current pool.
Id string_of(const std::string& text);
std::string text_of(Id string);

// Returns the version of the operating system: "Version 17.4 (Build 21E219)". Needs a pool.
std::string system_version();

// Returns an NSError's description; "no reason was given" for null.
std::string text_of_error(Id error);

}  // namespace wherry::metal

#endif  // WHERRY_ENGINE_BACKENDS_METAL_OBJC_H_
