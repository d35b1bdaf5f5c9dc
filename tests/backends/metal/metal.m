// Classes that answer as Metal's protocols do, on a GPU that clang and an emulator stand in for.
//
// Committed command buffers run as late as Metal allows: when one waits for them. A program that
// reads too early finds what was there before, NaNs in new memory. What Apple's documentation (and
// Metal's validation layer) forbids is recorded, see rules.h.
#include "metal.h"

#import "foundation.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels.h"
#include "rules.h"

enum { kBuffers = 31, kGuard = 64, kMostCommandBuffers = 64, kMostBytes = 4096 };
enum { kCommitted = 2, kCompleted = 4, kError = 5 };
enum { kFailOnArchiveMiss = 4 };

static FakeMetalSettings settings = {
    .max_buffer = 1ul << 30,
    .working_set = 4ul << 30,
    .family = 1007,
    .max_threads = 1024,
    .archives = 1,
    .version = "Version 16.0 (of the tests)",
};
FakeMetalSettings* fake_metal_settings(void) { return &settings; }

// For programs that cannot call the function above.
__attribute__((constructor)) static void read_environment(void) {
  const char* family = getenv("WHERRY_FAKE_METAL_FAMILY");
  if (family != NULL) settings.family = atol(family);
}

static pthread_mutex_t gpu = PTHREAD_MUTEX_INITIALIZER;
static unsigned long allocated;

static void fail(NSError** error, NSInteger code, const char* text) {
  if (error != NULL) *error = [NSError errorWithText:text code:code];
}

typedef struct {
  NSUInteger width, height, depth;
} Size;

// What responds to all of a protocol's methods without effect would hide mistakes, so classes have
// the methods alone that the plugin may send.
@interface FakeBuffer : NSObject {
 @public
  unsigned char* bytes;
  NSUInteger length;
}
- (void*)contents;
@end

@interface FakeFunction : NSObject {
 @public
  const struct FakeKernel* kernel;
}
@end

@interface FakeLibrary : NSObject {
 @public
  const struct FakeKernel* kernel;
}
- (FakeFunction*)newFunctionWithName:(NSString*)name;
@end

@interface MTLCompileOptions : NSObject {
 @public
  BOOL safe;
}
- (void)setFastMathEnabled:(BOOL)enabled;
@end

@interface MTLComputePipelineDescriptor : NSObject {
 @public
  FakeFunction* function;
  NSString* label;
  NSArray* archives;
  NSUInteger threads;
}
@end

@interface FakePipeline : NSObject {
 @public
  const struct FakeKernel* kernel;
  NSUInteger threads;
}
- (NSUInteger)maxTotalThreadsPerThreadgroup;
@end

@interface MTLBinaryArchiveDescriptor : NSObject {
 @public
  NSURL* url;
}
- (void)setUrl:(NSURL*)url;
@end

@interface FakeArchive : NSObject {
 @public
  char* names;  // of functions, each between newlines
}
@end

@class FakeQueue;

typedef struct {
  FakePipeline* pipeline;  // nil: a copy from buffers[0] to buffers[1]
  FakeBuffer* buffers[kBuffers];
  NSUInteger offsets[kBuffers], size;
  unsigned char* numbers;
  Size groups, threads;
} Command;

@interface FakeCommandBuffer : NSObject {
 @public
  FakeQueue* queue;
  NSUInteger status;
  NSError* error;
  id encoder;  // the open one, not retained
  Command* commands;
  unsigned count;
}
- (Command*)add;
- (void)run;
@end

@interface FakeQueue : NSObject {
 @public
  FakeCommandBuffer* committed[kMostCommandBuffers];
  unsigned count;
}
- (void)runUpTo:(FakeCommandBuffer*)last;
@end

@interface FakeEncoder : NSObject {
 @public
  FakeCommandBuffer* commands;
  BOOL ended;
}
- (BOOL)open:(const char*)method;
@end

@interface FakeComputeEncoder : FakeEncoder {
  FakePipeline* pipeline;
  FakeBuffer* buffers[kBuffers];
  NSUInteger offsets[kBuffers], bytes[kBuffers];
  unsigned char numbers[kMostBytes];
}
@end

@interface FakeBlitEncoder : FakeEncoder
@end

@implementation FakeBuffer
- (void*)contents {
  return bytes;
}
- (BOOL)intact {
  for (unsigned i = 0; i < kGuard; ++i) {
    if (bytes[length + i] != 0xa5) return NO;
  }
  return YES;
}
- (void)dealloc {
  if (![self intact]) fake_broken("a buffer of %lu bytes was written beyond its end", length);
  __atomic_sub_fetch(&allocated, length, __ATOMIC_RELAXED);
  memset(bytes, 0xff, length);
  free(bytes);
  [super dealloc];
}
@end

@implementation FakeFunction
@end

@implementation FakeLibrary
- (FakeFunction*)newFunctionWithName:(NSString*)name {
  if (strcmp([name UTF8String], fake_kernel_name(kernel)) != 0) return nil;
  FakeFunction* made = [FakeFunction new];
  made->kernel = kernel;
  return made;
}
@end

@implementation MTLCompileOptions
- (void)setFastMathEnabled:(BOOL)enabled {
  safe = !enabled;
}
@end

@implementation MTLComputePipelineDescriptor
- (void)setComputeFunction:(FakeFunction*)given {
  [given retain];
  [function release];
  function = given;
}
- (void)setLabel:(NSString*)given {
  [given retain];
  [label release];
  label = given;
}
- (void)setBinaryArchives:(NSArray*)given {
  [given retain];
  [archives release];
  archives = given;
}
- (void)setMaxTotalThreadsPerThreadgroup:(NSUInteger)given {
  threads = given;
}
- (void)dealloc {
  [function release];
  [label release];
  [archives release];
  [super dealloc];
}
@end

@implementation FakePipeline
- (NSUInteger)maxTotalThreadsPerThreadgroup {
  return threads;
}
@end

@implementation MTLBinaryArchiveDescriptor
- (void)setUrl:(NSURL*)given {
  [given retain];
  [url release];
  url = given;
}
- (void)dealloc {
  [url release];
  [super dealloc];
}
@end

@implementation FakeArchive
- (BOOL)has:(const char*)name {
  char line[300];
  snprintf(line, sizeof line, "\n%s\n", name);
  return strstr(names, line) != NULL;
}
- (void)add:(const char*)name {
  size_t size = strlen(names) + strlen(name) + 2;
  names = realloc(names, size);
  strcat(strcat(names, name), "\n");
}
- (BOOL)addComputePipelineFunctionsWithDescriptor:(MTLComputePipelineDescriptor*)descriptor
                                            error:(NSError**)error {
  (void)error;
  [self add:fake_kernel_name(descriptor->function->kernel)];
  return YES;
}
- (BOOL)serializeToURL:(NSURL*)url error:(NSError**)error {
  FILE* file = fopen([[url path] UTF8String], "w");
  if (file == NULL) {
    fail(error, 1, "the archive cannot be written");
    return NO;
  }
  fprintf(file, "archive%s", names);
  fclose(file);
  fake_count("serialize");
  return YES;
}
- (void)dealloc {
  free(names);
  [super dealloc];
}
@end

@implementation FakeCommandBuffer
- (Command*)add {
  if ((count & (count - 1)) == 0) {
    commands = realloc(commands, (count == 0 ? 1 : 2 * count) * sizeof(Command));
  }
  memset(&commands[count], 0, sizeof(Command));
  return &commands[count++];
}
- (id)open:(FakeEncoder*)made {
  if (status >= kCommitted) fake_broken("an encoder is made of a committed command buffer");
  if (encoder != nil) fake_broken("an encoder is made while another one is open");
  made->commands = [self retain];
  encoder = made;
  return [made autorelease];
}
- (id)computeCommandEncoder {
  fake_count("compute encoder");
  return [self open:[FakeComputeEncoder new]];
}
- (id)blitCommandEncoder {
  fake_count("blit encoder");
  return [self open:[FakeBlitEncoder new]];
}
- (void)commit {
  fake_count("commit");
  if (encoder != nil) fake_broken("a command buffer is committed with an open encoder");
  if (status >= kCommitted) fake_broken("a command buffer is committed twice");
  status = kCommitted;
  pthread_mutex_lock(&gpu);
  queue->committed[queue->count++] = [self retain];
  pthread_mutex_unlock(&gpu);
}
- (void)waitUntilCompleted {
  fake_count("wait");
  if (status < kCommitted) fake_broken("waits for a command buffer that is not committed");
  pthread_mutex_lock(&gpu);
  [queue runUpTo:self];
  pthread_mutex_unlock(&gpu);
}
- (NSUInteger)status {
  return status;
}
- (NSError*)error {
  return error;
}
- (void)run:(const Command*)command {
  void* bytes[kBuffers];
  for (unsigned i = 0; i < kBuffers; ++i) {
    FakeBuffer* buffer = command->buffers[i];
    bytes[i] = buffer == nil ? NULL : buffer->bytes + command->offsets[i];
  }
  if (command->pipeline == nil) {
    memcpy(bytes[1], bytes[0], command->size);
    return;
  }
  const Size *groups = &command->groups, *threads = &command->threads;
  const unsigned extents[] = {groups->width,  groups->height,  groups->depth,
                              threads->width, threads->height, threads->depth};
  char* problem = fake_run(command->pipeline->kernel, bytes, command->numbers, extents);
  if (problem != NULL) fake_broken("%s", problem);
  free(problem);
  for (unsigned i = 0; i < kBuffers; ++i) {
    if (command->buffers[i] != nil && ![command->buffers[i] intact]) {
      fake_broken("kernel %s writes beyond the end of its buffer %u",
                  fake_kernel_name(command->pipeline->kernel), i);
    }
  }
}
- (void)run {
  if (settings.failure != NULL) {
    NSAutoreleasePool* pool = [NSAutoreleasePool new];
    error = [[NSError errorWithText:settings.failure code:settings.failure_code] retain];
    settings.failure = NULL;
    status = kError;
    [pool drain];
    return;
  }
  for (unsigned i = 0; i < count; ++i) [self run:&commands[i]];
  status = kCompleted;
}
- (void)dealloc {
  for (unsigned i = 0; i < count; ++i) {
    for (unsigned b = 0; b < kBuffers; ++b) [commands[i].buffers[b] release];
    [commands[i].pipeline release];
    free(commands[i].numbers);
  }
  free(commands);
  [error release];
  [queue release];
  [super dealloc];
}
@end

@implementation FakeQueue
- (id)commandBuffer {
  fake_count("command buffer");
  pthread_mutex_lock(&gpu);
  // Metal's own waits here for one to end.
  if (count == kMostCommandBuffers) [self runUpTo:committed[0]];
  pthread_mutex_unlock(&gpu);
  FakeCommandBuffer* made = [FakeCommandBuffer new];
  made->queue = [self retain];
  return [made autorelease];
}
- (void)runUpTo:(FakeCommandBuffer*)last {
  while (last->status == kCommitted) {
    FakeCommandBuffer* first = committed[0];
    [first run];
    memmove(committed, committed + 1, --count * sizeof(id));
    [first release];
  }
}
@end

@implementation FakeEncoder
- (BOOL)open:(const char*)method {
  if (!ended) return YES;
  fake_broken("%s after endEncoding", method);
  return NO;
}
- (void)endEncoding {
  if (![self open:"endEncoding"]) return;
  ended = YES;
  commands->encoder = nil;
}
- (void)dealloc {
  if (!ended) fake_broken("an encoder is released without endEncoding");
  [commands release];
  [super dealloc];
}
@end

@implementation FakeComputeEncoder
- (void)setComputePipelineState:(FakePipeline*)given {
  if (![self open:"setComputePipelineState:"]) return;
  [given retain];
  [pipeline release];
  pipeline = given;
}
- (void)setBuffer:(FakeBuffer*)buffer offset:(NSUInteger)offset atIndex:(NSUInteger)index {
  if (![self open:"setBuffer:offset:atIndex:"]) return;
  if (index >= kBuffers || buffer == nil || offset % 4 != 0 || offset >= buffer->length) {
    fake_broken("setBuffer: at index %lu with offset %lu", index, offset);
    return;
  }
  [buffer retain];
  [buffers[index] release];
  buffers[index] = buffer;
  offsets[index] = offset;
  bytes[index] = 0;
}
- (void)setBytes:(const void*)from length:(NSUInteger)length atIndex:(NSUInteger)index {
  if (![self open:"setBytes:length:atIndex:"]) return;
  if (index >= kBuffers || length == 0 || length > kMostBytes) {
    fake_broken("setBytes: of %lu bytes at index %lu", length, index);
    return;
  }
  memcpy(numbers, from, length);
  [buffers[index] release];
  buffers[index] = nil;
  bytes[index] = length;
}
// Metal keeps what is bound for the next dispatch; here a kernel has to get all anew.
- (BOOL)bound {
  const struct FakeKernel* kernel = pipeline->kernel;
  NSUInteger expected = fake_kernel_buffers(kernel), size = fake_kernel_number_bytes(kernel);
  BOOL all = YES;
  for (NSUInteger i = 0; i < expected; ++i) {
    if (buffers[i] != nil) continue;
    fake_broken("kernel %s has no buffer at index %lu", fake_kernel_name(kernel), i);
    all = NO;
  }
  if (size > 0 && bytes[expected] < size) {
    fake_broken("kernel %s has %lu of %lu bytes at index %lu", fake_kernel_name(kernel),
                bytes[expected], size, expected);
    all = NO;
  }
  return all;
}
- (void)dispatchThreadgroups:(Size)groups threadsPerThreadgroup:(Size)threads {
  if (![self open:"dispatchThreadgroups:"]) return;
  fake_count("dispatch");
  if (pipeline == nil) {
    fake_broken("a dispatch without a pipeline");
    return;
  }
  const NSUInteger all = threads.width * threads.height * threads.depth;
  if (all == 0 || all > pipeline->threads || groups.width * groups.height * groups.depth == 0) {
    fake_broken("kernel %s: %lu threads a group, of %lu that its pipeline allows",
                fake_kernel_name(pipeline->kernel), all, pipeline->threads);
    return;
  }
  if (![self bound]) return;
  Command* command = [commands add];
  command->pipeline = [pipeline retain];
  command->groups = groups;
  command->threads = threads;
  memcpy(command->buffers, buffers, sizeof buffers);  // with their references
  memcpy(command->offsets, offsets, sizeof offsets);
  memset(buffers, 0, sizeof buffers);
  memset(bytes, 0, sizeof bytes);
  command->numbers = malloc(kMostBytes);
  memcpy(command->numbers, numbers, kMostBytes);
}
- (void)dealloc {
  for (unsigned i = 0; i < kBuffers; ++i) [buffers[i] release];
  [pipeline release];
  [super dealloc];
}
@end

@implementation FakeBlitEncoder
- (void)copyFromBuffer:(FakeBuffer*)from
          sourceOffset:(NSUInteger)fromOffset
              toBuffer:(FakeBuffer*)to
     destinationOffset:(NSUInteger)toOffset
                  size:(NSUInteger)size {
  if (![self open:"copyFromBuffer:"]) return;
  fake_count("copy");
  BOOL inside = fromOffset + size <= from->length && toOffset + size <= to->length;
  BOOL overlap = from == to && fromOffset < toOffset + size && toOffset < fromOffset + size;
  if (size == 0 || (fromOffset | toOffset | size) % 4 != 0 || !inside || overlap) {
    fake_broken("a copy of %lu bytes from %lu to %lu, of buffers of %lu and %lu", size, fromOffset,
                toOffset, from->length, to->length);
    return;
  }
  Command* command = [commands add];
  command->buffers[0] = [from retain];
  command->buffers[1] = [to retain];
  command->offsets[0] = fromOffset;
  command->offsets[1] = toOffset;
  command->size = size;
}
@end

@interface FakeDevice : NSObject
@end

@implementation FakeDevice
- (NSString*)name {
  return [NSString stringWithUTF8String:"Emulated Apple GPU"];
}
- (uint64_t)recommendedMaxWorkingSetSize {
  return settings.working_set;
}
- (NSUInteger)currentAllocatedSize {
  return allocated;
}
- (NSUInteger)maxBufferLength {
  return settings.max_buffer;
}
- (NSUInteger)maxThreadgroupMemoryLength {
  return 32768;
}
- (BOOL)supportsFamily:(NSInteger)family {
  return family <= settings.family;
}
- (FakeQueue*)newCommandQueue {
  return [FakeQueue new];
}
- (FakeBuffer*)newBufferWithLength:(NSUInteger)length options:(NSUInteger)options {
  if (options != 0) fake_broken("a buffer with options %lu, which the host cannot read", options);
  if (length == 0 || length > settings.max_buffer) {
    fake_broken("a buffer of %lu bytes", length);
    return nil;
  }
  if (allocated + length > settings.working_set) return nil;
  __atomic_add_fetch(&allocated, length, __ATOMIC_RELAXED);
  FakeBuffer* made = [FakeBuffer new];
  made->length = length;
  made->bytes = malloc(length + kGuard);
  memset(made->bytes, 0xff, length);  // NaNs, to find reads of unwritten memory
  memset(made->bytes + length, 0xa5, kGuard);
  return made;
}
- (FakeLibrary*)newLibraryWithSource:(NSString*)source
                             options:(MTLCompileOptions*)options
                               error:(NSError**)error {
  fake_count(options->safe ? "compile" : "compile with fast math");
  char* problem = NULL;
  const struct FakeKernel* kernel = fake_compile([source UTF8String], &problem);
  if (kernel == NULL) {
    fail(error, 3, problem);
    free(problem);
    return nil;
  }
  FakeLibrary* made = [FakeLibrary new];
  made->kernel = kernel;
  return made;
}
- (FakePipeline*)newComputePipelineStateWithDescriptor:(MTLComputePipelineDescriptor*)descriptor
                                               options:(NSUInteger)options
                                            reflection:(void**)reflection
                                                 error:(NSError**)error {
  if (reflection != NULL) fake_broken("nobody reads a pipeline's reflection");
  const struct FakeKernel* kernel = descriptor->function->kernel;
  FakeArchive* archive = (FakeArchive*)[descriptor->archives object];
  if (archive != nil && [archive has:fake_kernel_name(kernel)]) {
    fake_count("archived pipeline");
  } else if (options & kFailOnArchiveMiss) {
    fail(error, 2, "the archive lacks the function");
    return nil;
  } else {
    fake_count("pipeline");
  }
  if (descriptor->threads > 1024) {
    fail(error, 3, "no group has more than 1024 threads");
    return nil;
  }
  FakePipeline* made = [FakePipeline new];
  made->kernel = kernel;
  made->threads = descriptor->threads == 0 ? settings.max_threads : descriptor->threads;
  return made;
}
- (FakeArchive*)newBinaryArchiveWithDescriptor:(MTLBinaryArchiveDescriptor*)descriptor
                                         error:(NSError**)error {
  if (!settings.archives) {
    fail(error, 1, "there are no archives in the simulator");
    return nil;
  }
  FakeArchive* made = [FakeArchive new];
  made->names = strdup("\n");
  if (descriptor->url == nil) return made;
  FILE* file = fopen([[descriptor->url path] UTF8String], "r");
  char line[300];
  BOOL whole = file != NULL && fgets(line, sizeof line, file) && strcmp(line, "archive\n") == 0;
  while (whole && fgets(line, sizeof line, file)) {
    line[strcspn(line, "\n")] = 0;
    [made add:line];
  }
  if (file != NULL) fclose(file);
  if (whole) return made;
  fake_broken("%s is no archive, of which drivers crash", [[descriptor->url path] UTF8String]);
  [made release];
  return nil;
}
@end

id MTLCreateSystemDefaultDevice(void) { return settings.none ? nil : [FakeDevice new]; }
