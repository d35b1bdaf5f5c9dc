// Helpers for the Java Native Interface: bytes, references, threads, errors.
#ifndef WHERRY_MOBILE_ANDROID_JAVA_H_
#define WHERRY_MOBILE_ANDROID_JAVA_H_

#include <jni.h>

#include <cstdint>
#include <string>

namespace wherry::java {

// The classes and methods of dev.wherry that native code calls. They are looked up once, when the
// library is loaded, because native threads cannot find classes of the app.
struct Classes {
  jclass native = nullptr;       // global reference to the class dev.wherry.Native
  jmethodID failure = nullptr;   // method `static Throwable failure(int status, byte[] message)`
  jmethodID on_chunk = nullptr;  // method `ChunkListener.onChunk(byte[] json, boolean last)`
  // method `LoadListener.report(byte[] phase, long done, long total)`
  jmethodID keep_loading = nullptr;
  jmethodID fetch = nullptr;  // method `Fetcher.fetch(byte[] url, long from, long answer)`
};
const Classes& classes();
// Looks up the classes and methods; false: one is missing, and a Java exception names it.
bool find_classes(JavaVM* vm, JNIEnv* env);

// Returns this thread's JNI environment; attaches a native thread to Java until the thread ends.
// Null: the virtual machine is shutting down.
JNIEnv* environment();

// Frees the local references of a scope at its end, because a native thread never returns to Java,
// which would free them.
class Frame {
 public:
  explicit Frame(JNIEnv* env) : env_(env), open_(env->PushLocalFrame(kReferences) == JNI_OK) {}
  ~Frame() {
    if (open_) env_->PopLocalFrame(nullptr);
  }
  Frame(const Frame&) = delete;
  Frame& operator=(const Frame&) = delete;
  // Returns false if the JVM is out of memory; a Java exception is then pending.
  bool open() const { return open_; }

 private:
  static constexpr jint kReferences = 8;
  JNIEnv* env_;
  bool open_;
};

// Copies an array of UTF-8 bytes to a text; null becomes an empty text. Texts are passed as bytes,
// because JNI's own text functions use modified UTF-8.
std::string text_of(JNIEnv* env, jbyteArray bytes);
// Copies a text to a Java array; null, with a Java exception pending, if memory runs out.
jbyteArray bytes_of(JNIEnv* env, const char* text, size_t length);

// Reports progress to the LoadListener `context`; implements wherry_app_progress::report, on the
// caller's thread. A Java exception ends the load, whose caller throws it.
int report(void* context, const char* phase, int64_t done, int64_t total);

// Creates a WherryException for this wherry_status, which the calling JNI method throws.
void fail(JNIEnv* env, int status, const char* message);

}  // namespace wherry::java

#endif  // WHERRY_MOBILE_ANDROID_JAVA_H_
