// Loads an app's library as Java does, with a stand-in for Java's side of JNI, for systems without
// a Java runtime. Prints the response to a request, and to stderr the references that were not
// released.
//
// bridge LIBRARY FOLDER REQUEST
//
// The test checks only that the bridge runs on the system; tests with a real Java check what it
// does.
#include <dlfcn.h>
#include <jni.h>

#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <future>
#include <map>
#include <string>

namespace {

// A Java object: its bytes, or an object without content.
struct Object {
  std::string bytes;
};

std::atomic<int> globals{0}, frames{0}, attached{0};
std::map<std::string, void*> natives;
std::promise<std::string> answer;
thread_local bool known = false;  // whether this thread is attached to Java
JNIEnv environment;
JavaVM machine;
Object owner;

Object* object(jobject any) { return reinterpret_cast<Object*>(any); }
template <typename T>
T handle(Object* any) {
  return reinterpret_cast<T>(any);
}

jmethodID method(JNIEnv*, jclass, const char* name, const char*) {
  return reinterpret_cast<jmethodID>(const_cast<char*>(name));
}

void call(JNIEnv*, jobject, jmethodID id, va_list arguments) {
  if (std::strcmp(reinterpret_cast<const char*>(id), "onChunk") != 0) std::abort();
  Object* json = object(va_arg(arguments, jobject));
  if (va_arg(arguments, int) != 0) answer.set_value(json->bytes);
}

jobject call_static(JNIEnv*, jclass, jmethodID, va_list arguments) {
  const int status = va_arg(arguments, int);
  std::fprintf(stderr, "%d: %s\n", status, object(va_arg(arguments, jobject))->bytes.c_str());
  return nullptr;  // Java would throw this exception
}

jint register_natives(JNIEnv*, jclass, const JNINativeMethod* methods, jint count) {
  for (jint i = 0; i < count; ++i) natives[methods[i].name] = methods[i].fnPtr;
  return JNI_OK;
}

void fill(JNINativeInterface_& to) {
  to.FindClass = [](JNIEnv*, const char*) { return handle<jclass>(&owner); };
  to.NewGlobalRef = [](JNIEnv*, jobject any) { return ++globals, any; };
  to.DeleteGlobalRef = [](JNIEnv*, jobject) { --globals; };
  to.GetMethodID = method;
  to.GetStaticMethodID = method;
  to.RegisterNatives = register_natives;
  to.PushLocalFrame = [](JNIEnv*, jint) -> jint { return ++frames, JNI_OK; };
  to.PopLocalFrame = [](JNIEnv*, jobject any) { return --frames, any; };
  to.ExceptionCheck = [](JNIEnv*) -> jboolean { return JNI_FALSE; };
  to.CallVoidMethodV = call;
  to.CallStaticObjectMethodV = call_static;
  to.GetArrayLength = [](JNIEnv*, jarray array) {
    return static_cast<jsize>(object(array)->bytes.size());
  };
  to.NewByteArray = [](JNIEnv*, jsize size) {
    return handle<jbyteArray>(new Object{std::string(static_cast<size_t>(size), '\0')});
  };
  to.GetByteArrayRegion = [](JNIEnv*, jbyteArray array, jsize from, jsize n, jbyte* out) {
    std::memcpy(out, object(array)->bytes.data() + from, static_cast<size_t>(n));
  };
  to.SetByteArrayRegion = [](JNIEnv*, jbyteArray array, jsize from, jsize n, const jbyte* in) {
    std::memcpy(object(array)->bytes.data() + from, in, static_cast<size_t>(n));
  };
}

void fill(JNIInvokeInterface_& to) {
  to.GetEnv = [](JavaVM*, void** out, jint) -> jint {
    *out = &environment;
    return known ? JNI_OK : JNI_EDETACHED;
  };
  to.AttachCurrentThreadAsDaemon = [](JavaVM*, void** out, void*) -> jint {
    *out = &environment;
    known = true;
    return ++attached, JNI_OK;
  };
  to.DetachCurrentThread = [](JavaVM*) -> jint { return --attached, JNI_OK; };
}

template <typename Function>
Function native(const char* name) {
  return reinterpret_cast<Function>(natives.at(name));
}

jbyteArray bytes(const char* text) { return handle<jbyteArray>(new Object{text}); }

}  // namespace

int main(int, char** arguments) {
  static JNINativeInterface_ functions{};
  static JNIInvokeInterface_ invoked{};
  fill(functions);
  fill(invoked);
  environment.functions = &functions;
  machine.functions = &invoked;
  known = true;
  void* library = dlopen(arguments[1], RTLD_NOW);
  if (library == nullptr) return std::fprintf(stderr, "%s\n", dlerror()), 1;
  using OnLoad = jint (*)(JavaVM*, void*);
  if (reinterpret_cast<OnLoad>(dlsym(library, "JNI_OnLoad"))(&machine, nullptr) < 0) return 1;
  const int globals_before = globals;

  const auto open = native<jlong (*)(JNIEnv*, jclass, jbyteArray, jbyteArray, jobject)>("open");
  const auto start = native<jlong (*)(JNIEnv*, jclass, jlong, jbyteArray, jobject)>("start");
  const auto close = native<void (*)(JNIEnv*, jclass, jlong)>("close");
  if (open(&environment, nullptr, bytes("/none"), bytes("{}"), nullptr) != 0) return 1;
  const jlong app = open(&environment, nullptr, bytes(arguments[2]), bytes(""), nullptr);
  if (app == 0) return 1;
  start(&environment, nullptr, app, bytes(arguments[3]), handle<jobject>(&owner));
  std::printf("%s\n", answer.get_future().get().c_str());
  close(&environment, nullptr, app);
  std::fprintf(stderr, "left: %d %d %d\n", globals - globals_before, frames.load(),
               attached.load());
  return 0;
}
