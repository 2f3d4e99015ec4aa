/* Stand-in for <objc/runtime.h>: what Metal-cpp names. objc.cpp has the functions. */
#pragma once
#include <math.h> /* INFINITY, which Metal-cpp takes from somewhere */
#include <stddef.h>
#include <stdint.h>

typedef struct objc_class *Class;
struct objc_object {
    Class isa;
};
typedef struct objc_object *id;
typedef struct objc_selector *SEL;
typedef struct objc_object Protocol;
typedef bool BOOL;

#ifdef __cplusplus
extern "C" {
#endif
SEL sel_registerName(const char *name);
const char *sel_getName(SEL selector);
Protocol *objc_getProtocol(const char *name);
Class objc_lookUpClass(const char *name);
Class objc_getClass(const char *name);
#ifdef __cplusplus
}
#endif
