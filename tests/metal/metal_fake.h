/* metal_fake.h - the Metal of the tests: what tests set, ask and plant. metal_fake.hpp is the inside.
 *
 * A device that checks the rules of Metal's API as Apple's validation layer does, and runs shaders compiled as C++ (metalc.py). What
 * is committed runs when somebody waits for it, or asks for the second time whether it is over. A rule that is broken is
 * said on stderr and ends the process; a test can collect what is said instead. What shaders do wrong is the error of their
 * command buffer. */
#ifndef WEFT_TESTS_METAL_METAL_FAKE_H
#define WEFT_TESTS_METAL_METAL_FAKE_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* name, value that it has, meaning. WEFT_FAKE_METAL in the environment sets some: "race=1 family=6". */
#define METAL_FAKE_SETTINGS(SETTING)                                                               \
    SETTING(devices, 1, "GPUs that there are")                                                     \
    SETTING(family, 9, "of Apple's GPUs")                                                          \
    SETTING(working_set, INT64_C(16) << 30, "bytes that can be resident")                          \
    SETTING(buffer_max, INT64_C(8) << 30, "bytes of a buffer")                                     \
    SETTING(threads_max, 1024, "threads of a threadgroup that pipelines allow")                    \
    SETTING(race, 0, "1: race mode")                                                               \
    SETTING(order, -1, "of threads, threadgroups and dispatches; -1: another one each time")       \
    SETTING(residency_sets, 1, "0: the system has none")                                           \
    SETTING(refuse, 0, "this allocation from now on is refused, and all after it")                 \
    SETTING(lost, 0, "the GPU is lost in this command buffer from now on")                         \
    SETTING(broken_shader, 0, "1: shaders do not compile; 2: pipelines cannot be made")            \
    SETTING(without_line, 0, "this line of phase.metal is left out, to see who misses it")         \
    SETTING(no_queue, 0, "1: there are no command queues")

void metal_fake_set(const char *name, int64_t value);
int64_t metal_fake_get(const char *name);

/* From now on rules that are broken are collected, not fatal. told: what was said since it was last asked, "" if nothing. */
void metal_fake_collect(void);
const char *metal_fake_told(void);

/* What was done since the process began. */
typedef struct {
    int64_t buffers, buffer_bytes,
        buffer_bytes_most; /* that are there now, and the most that were, with the device's own memory */
    int64_t wrapped, wrapped_bytes; /* that are there now, of memory of the host */
    int64_t heaps, heap_bytes;
    int64_t libraries, pipelines, command_buffers, encoders, dispatches, barriers; /* ever */
    int64_t objects;      /* alive, of any class */
    int64_t without_pool; /* handed out with no pool to release them */
} metal_fake_count;
void metal_fake_counts(metal_fake_count *out);

#ifdef __cplusplus
}
#endif

#endif
