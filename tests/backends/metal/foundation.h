// Classes of Foundation that programs of Metal use, on GCC's Objective-C run time, which has none.
#pragma once

#import <objc/objc.h>
#import <objc/runtime.h>
#include <stdint.h>

typedef unsigned long NSUInteger;
typedef long NSInteger;

// The root class. It counts references, and the objects of each class that live. A released object
// keeps its memory, and each later message to it breaks a rule.
@interface NSObject {
  Class isa;
  long references;
}
+ (id)alloc;
+ (id)new;
+ (Class)class;
+ (id)retain;
+ (void)release;
- (id)init;
- (id)retain;
- (void)release;
- (id)autorelease;
- (void)dealloc;
- (BOOL)respondsToSelector:(SEL)selector;
@end

@interface NSAutoreleasePool : NSObject {
 @public
  NSAutoreleasePool* outer;
  id* objects;
  unsigned count, room;
}
- (void)drain;
@end

@interface NSString : NSObject {
  char* text;
}
+ (NSString*)stringWithUTF8String:(const char*)text;
- (const char*)UTF8String;
@end

@interface NSError : NSObject {
  NSString* description;
  NSInteger code;
}
+ (NSError*)errorWithText:(const char*)text code:(NSInteger)code;
- (NSString*)localizedDescription;
- (NSInteger)code;
@end

@interface NSArray : NSObject {
  id object;
}
+ (NSArray*)arrayWithObject:(id)object;
- (id)object;
@end

@interface NSURL : NSObject {
  NSString* path;
}
+ (NSURL*)fileURLWithPath:(NSString*)path;
- (NSString*)path;
@end

@interface NSProcessInfo : NSObject
+ (NSProcessInfo*)processInfo;
- (NSString*)operatingSystemVersionString;
@end
