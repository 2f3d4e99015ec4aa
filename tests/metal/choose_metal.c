/* choose_metal.c - weft_choose and weft_tokens of kernels/metal in the place of those of CUDA, for tests/cuda/test_choose.c: what the
 * two are given differs in form alone. */
#include "kernels/metal/metal_phase.h"
#include "tests/cuda/emulated.h"
#include "tests/metal/lanes.h"

#include <stdio.h>
#include <string.h>

static uint64_t address(const void *p)
{
    return (uint64_t)(uintptr_t)p;
}

/* False: what was wrong, in error [FIBRE_ERROR_MAX]. */
static bool run(const char *kernel, void *argument, size_t bytes, int groups, int threads,
                char *error)
{
    static const shader_library *library;
    static unsigned turn;
    static char wrong[LANES_ERROR_MAX];
    if (!library)
        library = lanes_open(METAL_SHADERS, wrong);
    lanes_dispatch d = {.library = library,
                        .kernel = kernel,
                        .groups = {(uint32_t)groups},
                        .threads = {(uint32_t)threads},
                        .order = (fibre_order)(turn++ % FIBRES_ORDERS)};
    d.buffer[METAL_BUFFER_RUN] = (lanes_binding){argument, bytes};
    d.shared_bytes[METAL_THREADGROUP_SHARED] = METAL_SHARED_MAX;
    const bool good = library && lanes_run(&d, wrong);
    if (!good)
        snprintf(error, FIBRE_ERROR_MAX, "%.*s", FIBRE_ERROR_MAX - 1, wrong);
    return good;
}

bool emulated_choose(const cuda_choice *a, int rows, int threads, char *error)
{
    metal_choice m = {.logits = address(a->logits),
                      .how = address(a->how ? a->how : a->how_few),
                      .before = address(a->before),
                      .chosen = address(a->chosen),
                      .width = (int32_t)a->width,
                      .turn = a->turn};
    if (!run("weft_choose", &m, sizeof m, rows, threads, error))
        return false;
    memcpy(a->host, a->chosen, (size_t)rows * sizeof *a->host);
    return true;
}

/* The likeliest is a threadgroup's too. */
bool emulated_best(const cuda_choice *a, int rows, int threads, char *error)
{
    return emulated_choose(a, rows, threads, error);
}

bool emulated_tokens(const cuda_tokens *a, int threads, char *error)
{
    metal_tokens m = {.token = address(a->token),
                      .from = address(a->from ? a->from : a->from_few),
                      .before = address(a->before),
                      .n = a->n};
    return run("weft_tokens", &m, sizeof m, 1, threads, error);
}
