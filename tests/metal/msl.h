/* msl.h - the Metal shading language for clang's C++17. metalc.py puts it before every shader.
 *
 * It is compiled twice. With MSL_CHECK address spaces are types, so that mixing them is an error, and nothing is run; without
 * it they are empty words, and the shader runs on fibres (shader.h). What Metal's compiler takes and this does not: see
 * README.md, "The subset". */
#ifndef WEFT_TESTS_METAL_MSL_H
#define WEFT_TESTS_METAL_MSL_H

#include <limits>
#include <stddef.h>
#include <stdint.h>
#include <type_traits>
#include <utility>

#include "tests/metal/shader.h"

#pragma clang diagnostic ignored "-Wuser-defined-literals"
#pragma clang diagnostic ignored "-Wreserved-user-defined-literal"

#ifdef MSL_CHECK
#define device __attribute__((address_space(1)))
#define constant const __attribute__((address_space(2)))
#define threadgroup __attribute__((address_space(3)))
#define MSL_SHARED static threadgroup
#else
#define device
#define constant const
#define threadgroup
#define MSL_SHARED static __attribute__((section("msl_shared"), used))
#endif
#define thread
#define kernel
#define METAL_FUNC inline __attribute__((always_inline))

/* What the shim does with memory of its own is not the shader's: it is left out of race mode. Functions in which lanes meet
 * must stay one call each. */
#define MSL_OWN __attribute__((no_sanitize("thread"), noinline))
#define MSL_MEET __attribute__((no_sanitize("thread"), noinline, convergent))
#define MSL_LINE const char *file = __builtin_FILE(), int line = __builtin_LINE()

#include "tests/metal/msl_types.h"
#include "tests/metal/msl_math.h"
#include "tests/metal/msl_simd.h"
#include "tests/metal/msl_matrix.h"
#include "tests/metal/msl_atomic.h"
#include "tests/metal/msl_entry.h"

#endif
