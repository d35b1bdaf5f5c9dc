// dev.wherry.Native's part of wherry_app_download: Java's HTTP fetches, native code checks and
// keeps.
#ifndef WHERRY_MOBILE_ANDROID_DOWNLOAD_H_
#define WHERRY_MOBILE_ANDROID_DOWNLOAD_H_

#include <jni.h>

namespace wherry::java {

void download(JNIEnv* env, jclass, jbyteArray url, jbyteArray folder, jbyteArray options,
              jobject fetcher, jobject listener);
// What a Fetcher says of an answer, by its address; false: it is to give up the connection.
jboolean answer_status(JNIEnv* env, jclass, jlong answer, jint status);
jboolean answer_bytes(JNIEnv* env, jclass, jlong answer, jbyteArray bytes, jint n);
void answer_failed(JNIEnv* env, jclass, jlong answer, jbyteArray reason);

}  // namespace wherry::java

#endif  // WHERRY_MOBILE_ANDROID_DOWNLOAD_H_
