// Links functions that a model's code may call, although the core itself may not call them: this
// function refers to them, is never called, and the last linker drops it.
#include <cmath>
#include <cstdint>
#include <cstring>

extern "C" {

// These functions belong to the compiler's runtime library.
uint16_t __truncsfhf2(float);
float __extendhfsf2(uint16_t);
uint16_t __gnu_f2h_ieee(float);
float __gnu_h2f_ieee(uint16_t);

const void* wherry_page_called(int i) {
  static const void* const kCalled[] = {
      reinterpret_cast<const void*>(&__truncsfhf2),
      reinterpret_cast<const void*>(&__extendhfsf2),
      reinterpret_cast<const void*>(&__gnu_f2h_ieee),
      reinterpret_cast<const void*>(&__gnu_h2f_ieee),
      reinterpret_cast<const void*>(&std::memcpy),
      reinterpret_cast<const void*>(&std::memmove),
      reinterpret_cast<const void*>(&std::memset),
      reinterpret_cast<const void*>(&fmaf),
      reinterpret_cast<const void*>(&fmodf),
      reinterpret_cast<const void*>(&expf),
      reinterpret_cast<const void*>(&exp2f),
      reinterpret_cast<const void*>(&logf),
      reinterpret_cast<const void*>(&log2f),
      reinterpret_cast<const void*>(&powf),
      reinterpret_cast<const void*>(&sinf),
      reinterpret_cast<const void*>(&cosf),
      reinterpret_cast<const void*>(&tanhf),
      reinterpret_cast<const void*>(&atanf),
      reinterpret_cast<const void*>(&erff),
      reinterpret_cast<const void*>(&roundf),
      reinterpret_cast<const void*>(&fmaxf),
      reinterpret_cast<const void*>(&fminf),
      reinterpret_cast<const void*>(static_cast<double (*)(double)>(&exp)),
      reinterpret_cast<const void*>(static_cast<double (*)(double)>(&log)),
      reinterpret_cast<const void*>(static_cast<double (*)(double, double)>(&pow)),
  };
  return kCalled[i];
}

}  // extern "C"
