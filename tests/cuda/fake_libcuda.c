/* fake_libcuda.c - the tests' driver as a library called libcuda.so.1, so that programs run on its card without knowing. What a
 * program did that a card would not allow, or did not give back, is said at its end, which has a status of its own then. */
#include "tests/cuda/fake_driver.c"

#include <stdlib.h>

/* By the names that cuda_driver.c looks for. */
#define CUDA_FN(name, suffix, args)                                                                \
    cu_result shown_##name args __asm__(#name suffix)                                              \
        __attribute__((alias("fake_" #name), visibility("default")));
#include "runtime/exec/cuda_driver.def"
#undef CUDA_FN

/* For the library of kernels that goes with it. */
const weft_cuda_image *fake_kernels_at(void) __attribute__((visibility("default")));
const weft_cuda_image *fake_kernels_at(void)
{
    return &fake_kernels;
}

/* What a test asks for by a variable, such as WEFT_FAKE_CARDS=0. */
static int asked(const char *name, int usual)
{
    const char *text = getenv(name);
    return text ? atoi(text) : usual;
}

__attribute__((constructor)) static void begin_card(void)
{
    fake_card c = fake_card_usual;
    c.card_bytes = (size_t)256 << 20;
    c.cards = asked("WEFT_FAKE_CARDS", c.cards);
    c.version = asked("WEFT_FAKE_VERSION", c.version);
    c.threads = asked("WEFT_FAKE_THREADS", c.threads);
    c.shared_bytes = (size_t)asked("WEFT_FAKE_SHARED", (int)c.shared_bytes);
    fake_reset(&c);
}

__attribute__((destructor)) static void end_card(void)
{
    enum { MISUSED = 99 };
    const char *misused = fake_misuse();
    if (!misused && !fake_holds_nothing())
        misused = "memory, a context, a stream, a module or a graph was not given back";
    if (!misused)
        return;
    fprintf(stderr, "the tests' card: %s\n", misused);
    _Exit(MISUSED);
}
