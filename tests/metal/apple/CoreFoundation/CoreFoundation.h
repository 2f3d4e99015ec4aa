/* Stand-in for <CoreFoundation/CoreFoundation.h>. */
#pragma once
#include <math.h>
#include <stdint.h>

typedef double CFTimeInterval;
typedef const struct __CFString *CFStringRef;
#ifdef __cplusplus
extern "C"
#endif
    CFStringRef
    __CFStringMakeConstantString(const char *);
