// What tests choose about the GPU of this folder.
#pragma once

typedef struct {
  unsigned long max_buffer;   // maxBufferLength
  unsigned long working_set;  // recommendedMaxWorkingSetSize, and what can be allocated
  long family;                // the newest of Apple's families that it supports
  unsigned long max_threads;  // of a group, for kernels compiled without a wish
  int archives;               // whether there are binary archives
  int none;                   // whether there is no device
  const char* version;        // of the operating system
  const char* failure;        // the next command buffer fails with this text
  long failure_code;
} FakeMetalSettings;

FakeMetalSettings* fake_metal_settings(void);
