#import "foundation.h"

#import <objc/message.h>
#include <stdlib.h>
#include <string.h>

#include "metal.h"
#include "rules.h"

// The class of released objects. It has no methods, so that each message goes to `missing`.
@interface Released {
  Class isa;
}
@end
@implementation Released
@end

static id nothing(id self, SEL selector) {
  (void)self, (void)selector;
  return nil;
}

// Called by the run time for a message that the receiver has no method for.
static IMP missing(id receiver, SEL selector) {
  Class class = object_getClass(receiver);
  if (class == objc_getClass("Released")) {
    fake_broken("message %s to a released object", sel_getName(selector));
  } else {
    fake_broken("%s does not respond to %s", class_getName(class), sel_getName(selector));
  }
  return (IMP)nothing;
}

__attribute__((constructor)) static void start(void) { __objc_msg_forward2 = missing; }

static __thread NSAutoreleasePool* innermost;

@implementation NSObject
+ (id)alloc {
  NSObject* made = class_createInstance(self, 0);
  made->references = 1;
  fake_live(class_getName(self), 1);
  return made;
}
+ (id)new {
  return [[self alloc] init];
}
+ (Class)class {
  return self;
}
+ (id)retain {
  return self;
}
+ (void)release {
}
- (id)init {
  return self;
}
- (id)retain {
  __atomic_add_fetch(&references, 1, __ATOMIC_RELAXED);
  return self;
}
- (void)release {
  if (__atomic_sub_fetch(&references, 1, __ATOMIC_ACQ_REL) == 0) [self dealloc];
}
- (id)autorelease {
  if (innermost == nil) {
    fake_broken("%s is autoreleased, and the thread has no pool", class_getName(isa));
    return self;
  }
  NSAutoreleasePool* pool = innermost;
  if (pool->count == pool->room) {
    pool->room = pool->room * 2 + 8;
    pool->objects = realloc(pool->objects, pool->room * sizeof(id));
  }
  pool->objects[pool->count++] = self;
  return self;
}
- (void)dealloc {
  fake_live(class_getName(isa), -1);
  object_setClass(self, objc_getClass("Released"));
}
- (BOOL)respondsToSelector:(SEL)selector {
  return class_respondsToSelector(isa, selector);
}
@end

@implementation NSAutoreleasePool
- (id)init {
  outer = innermost;
  innermost = self;
  return self;
}
- (void)drain {
  if (innermost != self) fake_broken("a pool is drained that is not its thread's innermost");
  for (unsigned i = 0; i < count; ++i) [objects[i] release];
  free(objects);
  innermost = outer;
  [self release];
}
@end

@implementation NSString
+ (NSString*)stringWithUTF8String:(const char*)text {
  NSString* made = [self new];
  made->text = strdup(text);
  return [made autorelease];
}
- (const char*)UTF8String {
  return text;
}
- (void)dealloc {
  free(text);
  [super dealloc];
}
@end

@implementation NSError
+ (NSError*)errorWithText:(const char*)text code:(NSInteger)code {
  NSError* made = [self new];
  made->description = [[NSString stringWithUTF8String:text] retain];
  made->code = code;
  return [made autorelease];
}
- (NSString*)localizedDescription {
  return description;
}
- (NSInteger)code {
  return code;
}
- (void)dealloc {
  [description release];
  [super dealloc];
}
@end

@implementation NSArray
+ (NSArray*)arrayWithObject:(id)object {
  NSArray* made = [self new];
  made->object = [object retain];
  return [made autorelease];
}
- (id)object {
  return object;
}
- (void)dealloc {
  [object release];
  [super dealloc];
}
@end

@implementation NSURL
+ (NSURL*)fileURLWithPath:(NSString*)path {
  NSURL* made = [self new];
  made->path = [path retain];
  return [made autorelease];
}
- (NSString*)path {
  return path;
}
- (void)dealloc {
  [path release];
  [super dealloc];
}
@end

@implementation NSProcessInfo
+ (NSProcessInfo*)processInfo {
  return [[self new] autorelease];
}
- (NSString*)operatingSystemVersionString {
  return [NSString stringWithUTF8String:fake_metal_settings()->version];
}
@end
