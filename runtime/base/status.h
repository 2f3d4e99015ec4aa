/* status.h - the one error type. A function that can fail on input returns weft_status, takes a
 * weft_diag first and leaves its out_ arguments untouched on failure. */
#ifndef WEFT_RUNTIME_BASE_STATUS_H
#define WEFT_RUNTIME_BASE_STATUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum {
    WEFT_OK = 0,
#define STATUS(name, text) WEFT_ERR_##name,
#include "runtime/base/status.def"
#undef STATUS
    WEFT_STATUS_COUNT
} weft_status;

#if defined(__GNUC__)
#define WEFT_MUST_USE __attribute__((warn_unused_result))
#define WEFT_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#define WEFT_NORETURN __attribute__((noreturn))
#else
#define WEFT_MUST_USE
#define WEFT_PRINTF(fmt, args)
#define WEFT_NORETURN
#endif

/* Pass a failure up unchanged. */
#define WEFT_TRY(expr)                                                                             \
    do {                                                                                           \
        weft_status try_status_ = (expr);                                                          \
        if (try_status_ != WEFT_OK)                                                                \
            return try_status_;                                                                    \
    } while (0)

/* States what the code itself guarantees; never reached by bytes from outside. */
#define WEFT_ASSERT(cond)                                                                          \
    do {                                                                                           \
        if (!(cond))                                                                               \
            weft_bug(__FILE__, __LINE__, #cond);                                                   \
    } while (0)

WEFT_NORETURN void weft_bug(const char *file, int line, const char *what);

/* The meaning column of status.def; "ok" for WEFT_OK. */
const char *weft_status_text(weft_status st);

#endif
