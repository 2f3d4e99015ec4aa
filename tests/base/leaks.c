/* leaks.c - the leak check of the address sanitizer only where there may be a leak.
 *
 * On aarch64 it looks at 2^28 places of the address space a dozen times, four seconds for each process. A suite that ends with as
 * many bytes allocated as it began with has lost none. The buffers of standard streams, which the C library keeps, are no loss. */
#include <stdio.h>

/* Of the sanitizer, whose headers GCC does not have all of. */
size_t __sanitizer_get_current_allocated_bytes(void);
__attribute__((visibility("default"))) int __lsan_is_turned_off(void);

static size_t at_first;

__attribute__((constructor)) static void count_first(void)
{
    at_first = __sanitizer_get_current_allocated_bytes();
}

static size_t buffer_bytes(const FILE *f)
{
    size_t n = (size_t)(f->_IO_buf_end - f->_IO_buf_base);
    return n > 1 ? n : 0; /* one byte is in the stream itself */
}

/* The sanitizer asks at the end: not 0 is no check. */
int __lsan_is_turned_off(void)
{
    size_t kept = buffer_bytes(stdin) + buffer_bytes(stdout) + buffer_bytes(stderr);
    return __sanitizer_get_current_allocated_bytes() == at_first + kept;
}
