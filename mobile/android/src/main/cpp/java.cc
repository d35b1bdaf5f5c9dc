#include "java.h"

#include <cstring>

namespace wherry::java {

namespace {

constexpr jint kVersion = JNI_VERSION_1_6;

JavaVM* machine = nullptr;
Classes loaded;

// Detaches a native thread from the Java virtual machine when the thread ends.
struct Attached {
  ~Attached() {
    if (env != nullptr) machine->DetachCurrentThread();
  }
  JNIEnv* env = nullptr;
};

jmethodID method(JNIEnv* env, const char* of, const char* name, const char* signature) {
  jclass owner = env->FindClass(of);
  return owner == nullptr ? nullptr : env->GetMethodID(owner, name, signature);
}

}  // namespace

const Classes& classes() { return loaded; }

bool find_classes(JavaVM* vm, JNIEnv* env) {
  machine = vm;
  Frame frame(env);
  if (!frame.open()) return false;
  jclass native = env->FindClass("dev/wherry/Native");
  if (native == nullptr) return false;
  loaded.native = static_cast<jclass>(env->NewGlobalRef(native));
  loaded.failure = env->GetStaticMethodID(native, "failure", "(I[B)Ljava/lang/Throwable;");
  if (loaded.failure == nullptr) return false;
  loaded.on_chunk = method(env, "dev/wherry/ChunkListener", "onChunk", "([BZ)V");
  if (loaded.on_chunk == nullptr) return false;
  loaded.keep_loading = method(env, "dev/wherry/LoadListener", "report", "([BJJ)Z");
  if (loaded.keep_loading == nullptr) return false;
  loaded.fetch = method(env, "dev/wherry/Fetcher", "fetch", "([BJJ)V");
  return loaded.native != nullptr && loaded.fetch != nullptr;
}

JNIEnv* environment() {
  void* env = nullptr;
  if (machine->GetEnv(&env, kVersion) == JNI_OK) return static_cast<JNIEnv*>(env);
  static thread_local Attached attached;
  JavaVMAttachArgs arguments{kVersion, const_cast<char*>("wherry"), nullptr};
#if defined(__ANDROID__)
  JNIEnv** place = &attached.env;
#else
  void** place = reinterpret_cast<void**>(&attached.env);
#endif
  // The thread is attached as a daemon, which does not keep a program from ending.
  if (machine->AttachCurrentThreadAsDaemon(place, &arguments) != JNI_OK) attached.env = nullptr;
  return attached.env;
}

std::string text_of(JNIEnv* env, jbyteArray bytes) {
  if (bytes == nullptr) return {};
  std::string text(static_cast<size_t>(env->GetArrayLength(bytes)), '\0');
  env->GetByteArrayRegion(bytes, 0, static_cast<jsize>(text.size()),
                          reinterpret_cast<jbyte*>(text.data()));
  return text;
}

jbyteArray bytes_of(JNIEnv* env, const char* text, size_t length) {
  jbyteArray bytes = env->NewByteArray(static_cast<jsize>(length));
  if (bytes != nullptr) {
    env->SetByteArrayRegion(bytes, 0, static_cast<jsize>(length),
                            reinterpret_cast<const jbyte*>(text));
  }
  return bytes;
}

int report(void* context, const char* phase, int64_t done, int64_t total) {
  JNIEnv* env = environment();
  Frame frame(env);
  if (!frame.open()) return 1;
  jbyteArray text = bytes_of(env, phase, std::strlen(phase));
  if (text == nullptr) return 1;
  jboolean more = env->CallBooleanMethod(static_cast<jobject>(context), classes().keep_loading,
                                         text, jlong{done}, jlong{total});
  return env->ExceptionCheck() || !more ? 1 : 0;
}

void fail(JNIEnv* env, int status, const char* message) {
  // a Java callback threw an exception, which says more than the status
  if (env->ExceptionCheck()) return;
  Frame frame(env);
  jbyteArray text = frame.open() ? bytes_of(env, message, std::strlen(message)) : nullptr;
  if (text == nullptr) return;
  jobject error =
      env->CallStaticObjectMethod(classes().native, classes().failure, jint{status}, text);
  if (error != nullptr && !env->ExceptionCheck()) env->Throw(static_cast<jthrowable>(error));
}

}  // namespace wherry::java
