// What the classes of this folder record while a program uses them as Metal.
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

// Records that the program broke a rule of Metal's or Foundation's documentation.
void fake_broken(const char* format, ...) __attribute__((format(printf, 1, 2)));
// Counts an event, such as "commit".
void fake_count(const char* event);
// Counts objects of a class that live: step is 1 or -1.
void fake_live(const char* class_name, int step);

// For tests. Texts are valid until the next call.
const char* fake_metal_broken(void);   // the broken rules, one a line
const char* fake_metal_events(void);   // JSON: {"commit": 3, ...}
const char* fake_metal_objects(void);  // JSON: objects that live, {"MTLBuffer": 2, ...}

#ifdef __cplusplus
}
#endif
