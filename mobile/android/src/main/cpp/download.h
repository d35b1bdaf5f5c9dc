// The downloads of dev.wherry.Native: Java's HTTP client fetches the files, and wherry_app_download
// checks and stores them.
#ifndef WHERRY_MOBILE_ANDROID_DOWNLOAD_H_
#define WHERRY_MOBILE_ANDROID_DOWNLOAD_H_

#include <jni.h>

namespace wherry::java {

void download(JNIEnv* env, jclass, jbyteArray url, jbyteArray folder, jbyteArray options,
              jobject fetcher, jobject listener);
// Passes the HTTP status of an answer, given by its address; false: the Fetcher must close the
// connection.
jboolean answer_status(JNIEnv* env, jclass, jlong answer, jint status);
jboolean answer_bytes(JNIEnv* env, jclass, jlong answer, jbyteArray bytes, jint n);
void answer_failed(JNIEnv* env, jclass, jlong answer, jbyteArray reason);

}  // namespace wherry::java

#endif  // WHERRY_MOBILE_ANDROID_DOWNLOAD_H_
