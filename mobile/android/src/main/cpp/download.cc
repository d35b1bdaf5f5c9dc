#include "download.h"

#include <cstdint>
#include <string>
#include <vector>

#include "java.h"
#include "wherry_app.h"

namespace wherry::java {

namespace {

wherry_app_answer* answer_of(jlong address) {
  return reinterpret_cast<wherry_app_answer*>(static_cast<intptr_t>(address));
}

// Fetches a file; implements wherry_app_fetcher::fetch, on the thread of the download.
void fetch(void* context, const char* url, int64_t from, wherry_app_answer* answer) {
  JNIEnv* env = environment();
  Frame frame(env);
  jbyteArray text =
      frame.open() ? bytes_of(env, url, std::char_traits<char>::length(url)) : nullptr;
  if (text != nullptr) {
    env->CallVoidMethod(static_cast<jobject>(context), classes().fetch, text, jlong{from},
                        static_cast<jlong>(reinterpret_cast<intptr_t>(answer)));
  }
  // The Java method catches its own exceptions, so this one is an error of the virtual machine.
  if (!env->ExceptionCheck()) return;
  env->ExceptionClear();
  wherry_app_answer_failed(answer, "the app has no memory for it");
}

}  // namespace

void download(JNIEnv* env, jclass, jbyteArray url, jbyteArray folder, jbyteArray options,
              jobject fetcher, jobject listener) {
  const wherry_app_fetcher given{sizeof given, fetcher, fetch};
  const wherry_app_progress progress{sizeof progress, listener, report};
  const int status = wherry_app_download(text_of(env, url).c_str(), text_of(env, folder).c_str(),
                                         text_of(env, options).c_str(), &given, &progress);
  if (status != WHERRY_OK) fail(env, status, wherry_app_last_error());
}

jboolean answer_status(JNIEnv*, jclass, jlong answer, jint status) {
  return wherry_app_answer_status(answer_of(answer), status) == 0 ? JNI_TRUE : JNI_FALSE;
}

jboolean answer_bytes(JNIEnv* env, jclass, jlong answer, jbyteArray bytes, jint n) {
  std::vector<jbyte> copy(static_cast<size_t>(n));
  env->GetByteArrayRegion(bytes, 0, n, copy.data());
  const int status = wherry_app_answer_bytes(answer_of(answer), copy.data(), copy.size());
  return status == 0 ? JNI_TRUE : JNI_FALSE;
}

void answer_failed(JNIEnv* env, jclass, jlong answer, jbyteArray reason) {
  wherry_app_answer_failed(answer_of(answer), text_of(env, reason).c_str());
}

}  // namespace wherry::java
