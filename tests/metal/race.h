/* race.h - who touched which memory last: what lanes.c tells race.c, and what race.c asks. */
#ifndef WEFT_TESTS_METAL_RACE_H
#define WEFT_TESTS_METAL_RACE_H

#include "tests/metal/lanes.h"

/* Adds a line to what is wrong with this dispatch; where code is not NULL, the shader's file and line behind it. */
void lanes_report(const void *code, const char *format, ...) __attribute__((format(printf, 2, 3)));
bool lanes_reports_full(void); /* no more is said */
/* The shader's file and line of an address of its code. */
const char *lanes_place(const void *code, char *text, size_t bytes);

void race_dispatch(const lanes_dispatch *d, const char *arena, size_t arena_bytes);
void race_group(uint32_t group, int lanes);
void race_group_barrier(int flags); /* mem_flags */
void race_simd_barrier(int simdgroup, int flags);
void race_end(void);

#endif
