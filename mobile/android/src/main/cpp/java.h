// What Java's native interface makes long, once: bytes, references, threads, errors.
#ifndef WHERRY_MOBILE_ANDROID_JAVA_H_
#define WHERRY_MOBILE_ANDROID_JAVA_H_

#include <jni.h>

#include <cstdint>
#include <string>

namespace wherry::java {

// The classes and methods of dev.wherry that native code calls; found once, when the library is
// loaded, because threads of ours see no classes of the app.
struct Classes {
  jclass native = nullptr;           // dev.wherry.Native; a global reference
  jmethodID failure = nullptr;       // static Throwable failure(int status, byte[] message)
  jmethodID on_chunk = nullptr;      // ChunkListener.onChunk(byte[] json, boolean last)
  jmethodID keep_loading = nullptr;  // LoadListener.report(byte[] phase, long done, long total)
  jmethodID fetch = nullptr;         // Fetcher.fetch(byte[] url, long from, long answer)
};
const Classes& classes();
// False: a class or method is not there, and a Java exception says which.
bool find_classes(JavaVM* vm, JNIEnv* env);

// This thread's environment. A thread that Java does not know is made known to it until it ends.
// Null: the virtual machine is going down.
JNIEnv* environment();

// Local references made in a scope go with it: a thread of ours never returns to Java, which would
// free them.
class Frame {
 public:
  explicit Frame(JNIEnv* env) : env_(env), open_(env->PushLocalFrame(kReferences) == JNI_OK) {}
  ~Frame() {
    if (open_) env_->PopLocalFrame(nullptr);
  }
  Frame(const Frame&) = delete;
  Frame& operator=(const Frame&) = delete;
  // False: no memory, and a Java exception says so.
  bool open() const { return open_; }

 private:
  static constexpr jint kReferences = 8;
  JNIEnv* env_;
  bool open_;
};

// Texts cross as bytes in UTF-8: Java's own conversion is of another encoding, which has no
// characters beyond 16 bits. Null array: an empty text.
std::string text_of(JNIEnv* env, jbyteArray bytes);
// Null, and a Java exception, without memory.
jbyteArray bytes_of(JNIEnv* env, const char* text, size_t length);

// wherry_app_progress::report, whose context is a LoadListener, on the caller's thread. A Java
// exception ends the load; it is thrown by what was called.
int report(void* context, const char* phase, int64_t done, int64_t total);

// Leaves a WherryException of this status (wherry_status) to be thrown by the calling method.
void fail(JNIEnv* env, int status, const char* message);

}  // namespace wherry::java

#endif  // WHERRY_MOBILE_ANDROID_JAVA_H_
