// The JNI functions of dev.wherry.Native: wherry_app.h for Java. A handle is the address of the
// app; Kotlin's MLCEngine ensures that no thread uses a closed one.
#include <jni.h>

#include <cstdint>
#include <memory>
#include <string>

#include "download.h"
#include "java.h"
#include "wherry_app.h"

namespace {

using namespace wherry::java;

wherry_app* app_of(jlong handle) {
  return reinterpret_cast<wherry_app*>(static_cast<intptr_t>(handle));
}

bool succeeded(JNIEnv* env, int status) {
  if (status == WHERRY_OK) return true;
  fail(env, status, wherry_app_last_error());
  return false;
}

jlong open(JNIEnv* env, jclass, jbyteArray folder, jbyteArray options, jobject listener) {
  wherry_app_progress progress{sizeof progress, listener, report};
  wherry_app* app = nullptr;
  int status = wherry_app_open(text_of(env, folder).c_str(), text_of(env, options).c_str(),
                               listener == nullptr ? nullptr : &progress, &app);
  return succeeded(env, status) ? static_cast<jlong>(reinterpret_cast<intptr_t>(app)) : 0;
}

// The listener to a request, freed with the request's last chunk.
struct Listener {
  Listener(JNIEnv* env, jobject object) : global(env->NewGlobalRef(object)) {}
  ~Listener() {
    JNIEnv* env = environment();
    if (env != nullptr) env->DeleteGlobalRef(global);
  }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  jobject global;
};

// Passes a chunk to its listener; implements wherry_app_on_chunk, on a thread of the app.
void on_chunk(void* context, const char* json, size_t length, int last) {
  std::unique_ptr<Listener> ended(last != 0 ? static_cast<Listener*>(context) : nullptr);
  JNIEnv* env = environment();
  if (env == nullptr) return;
  Frame frame(env);
  jbyteArray bytes = frame.open() ? bytes_of(env, json, length) : nullptr;
  if (bytes != nullptr) {
    env->CallVoidMethod(static_cast<Listener*>(context)->global, classes().on_chunk, bytes,
                        static_cast<jboolean>(last != 0));
  }
  // The listener catches all exceptions itself, so this one is its own failure, and no caller could
  // catch it.
  if (env->ExceptionCheck()) env->ExceptionClear();
}

jlong start(JNIEnv* env, jclass, jlong handle, jbyteArray request, jobject listener) {
  const std::string json = text_of(env, request);
  auto owned = std::make_unique<Listener>(env, listener);
  if (owned->global == nullptr) return 0;  // out of memory; a Java exception is already pending
  int64_t id = 0;
  // From here on the last chunk frees the listener, perhaps before this call returns.
  Listener* given = owned.release();
  int status = wherry_app_start(app_of(handle), json.data(), json.size(), on_chunk, given, &id);
  // after a failed call no chunks arrive, so this function frees the listener
  if (status != WHERRY_OK) owned.reset(given);
  return succeeded(env, status) ? static_cast<jlong>(id) : 0;
}

jboolean abort_request(JNIEnv* env, jclass, jlong handle, jlong id) {
  int status = wherry_app_abort(app_of(handle), id);
  if (status == WHERRY_NOT_FOUND) return JNI_FALSE;  // the request has ended already
  return succeeded(env, status) ? JNI_TRUE : JNI_FALSE;
}

jbyteArray stats(JNIEnv* env, jclass, jlong handle) {
  char* json = nullptr;
  if (!succeeded(env, wherry_app_stats(app_of(handle), &json))) return nullptr;
  jbyteArray bytes = bytes_of(env, json, std::char_traits<char>::length(json));
  wherry_app_free(json);
  return bytes;
}

void trim(JNIEnv* env, jclass, jlong handle) { succeeded(env, wherry_app_trim(app_of(handle))); }

void limit_threads(JNIEnv* env, jclass, jint most) {
  succeeded(env, wherry_app_limit_threads(most));
}

void close_app(JNIEnv*, jclass, jlong handle) { wherry_app_close(app_of(handle)); }

template <typename Function>
JNINativeMethod method(const char* name, const char* signature, Function* function) {
  return {const_cast<char*>(name), const_cast<char*>(signature), reinterpret_cast<void*>(function)};
}

}  // namespace

extern "C" JNIEXPORT jint JNICALL JNI_OnLoad(JavaVM* vm, void*) {
  void* env = nullptr;
  if (vm->GetEnv(&env, JNI_VERSION_1_6) != JNI_OK) return JNI_ERR;
  JNIEnv* java = static_cast<JNIEnv*>(env);
  if (!find_classes(vm, java)) return JNI_ERR;
  const JNINativeMethod methods[] = {
      method("open", "([B[BLdev/wherry/LoadListener;)J", open),
      method("start", "(J[BLdev/wherry/ChunkListener;)J", start),
      method("abort", "(JJ)Z", abort_request),
      method("stats", "(J)[B", stats),
      method("trim", "(J)V", trim),
      method("limitThreads", "(I)V", limit_threads),
      method("close", "(J)V", close_app),
      method("download", "([B[B[BLdev/wherry/Fetcher;Ldev/wherry/LoadListener;)V", download),
      method("answerStatus", "(JI)Z", answer_status),
      method("answerBytes", "(J[BI)Z", answer_bytes),
      method("answerFailed", "(J[B)V", answer_failed),
  };
  constexpr jint kMethods = sizeof methods / sizeof methods[0];
  if (java->RegisterNatives(classes().native, methods, kMethods) != JNI_OK) return JNI_ERR;
  return JNI_VERSION_1_6;
}
