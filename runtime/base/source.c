/* source.c - reading a text whole, and finding lines and columns in it. */
#include "runtime/base/source.h"

#include "runtime/base/diag.h"
#include "runtime/base/file.h"
#include "runtime/base/mem.h"
#include "runtime/base/utf8.h"
#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

enum { READ_FIRST = 16384 };

static const char *next_line(const char *p, const char *end)
{
    const char *nl = p < end ? memchr(p, '\n', (size_t)(end - p)) : NULL;
    return nl ? nl + 1 : NULL;
}

source *source_from_text(arena *a, const char *name, str text)
{
    WEFT_ASSERT(text.n < UINT32_MAX);
    static _Atomic uint64_t newest;
    source *src = ARENA_NEW(a, source);
    src->serial = atomic_fetch_add_explicit(&newest, 1, memory_order_relaxed) + 1;
    src->name = arena_str(a, str_of(name)).p;
    src->text = arena_str(a, text);
    src->home = a;

    const char *end = src->text.p + src->text.n;
    for (const char *p = src->text.p; p; p = next_line(p, end))
        src->line_n++;
    src->line_at = ARENA_ARRAY(a, uint32_t, src->line_n);
    uint32_t i = 0;
    for (const char *p = src->text.p; p; p = next_line(p, end))
        src->line_at[i++] = (uint32_t)(p - src->text.p);
    return src;
}

/* Reads fd to its end. The size the file had when it was opened is only a first guess: it may grow,
 * and files such as those of /proc claim to be empty. */
static weft_status read_all(weft_diag *dg, arena *a, int fd, const char *name, size_t guess,
                            size_t bytes_max, source **out_src)
{
    weft_status status = WEFT_OK;
    char *text = NULL;
    size_t n = 0, cap = guess ? guess : READ_FIRST, got;
    do {
        /* One byte more than expected, so that the end of the file is not taken for the end of the buffer. */
        cap = cap > bytes_max ? bytes_max : cap;
        text = mem_realloc(text, cap + 1);
        status = file_read(dg, fd, name, text + n, cap + 1 - n, &got);
        if (status != WEFT_OK)
            goto done;
        n += got;
        if (n > bytes_max) {
            status = weft_fail(dg, W1101, WEFT_NOWHERE,
                               "%s has more than %zu bytes, and the limit is %zu", name, bytes_max,
                               bytes_max);
            goto done;
        }
        if (n <= cap)
            break;
        cap *= 2;
    } while (true);
    *out_src = source_from_text(a, name, (str){text, n});
done:
    mem_free(text);
    return status;
}

static size_t clamp_limit(size_t bytes_max)
{
    /* Offsets are 32 bits wide. */
    return bytes_max < UINT32_MAX - 1 ? bytes_max : UINT32_MAX - 1;
}

weft_status source_open(weft_diag *dg, arena *a, const char *path, size_t bytes_max,
                        source **out_src)
{
    int fd;
    uint64_t bytes;
    bytes_max = clamp_limit(bytes_max);
    WEFT_TRY(file_open(dg, path, &fd, &bytes));
    weft_status status;
    if (bytes > bytes_max)
        status =
            weft_fail(dg, W1101, WEFT_NOWHERE, "%s has %" PRIu64 " bytes, and the limit is %zu",
                      path, bytes, bytes_max);
    else
        status = read_all(dg, a, fd, path, (size_t)bytes, bytes_max, out_src);
    file_close(fd);
    return status;
}

weft_status source_read_stdin(weft_diag *dg, arena *a, size_t bytes_max, source **out_src)
{
    return read_all(dg, a, STDIN_FILENO, "<stdin>", 0, clamp_limit(bytes_max), out_src);
}

source_place source_find(const source *src, uint32_t offset)
{
    if (offset > src->text.n)
        offset = (uint32_t)src->text.n;
    uint32_t low = 0, high = src->line_n; /* the line is in [low, high) */
    while (high - low > 1) {
        uint32_t mid = low + (high - low) / 2;
        if (src->line_at[mid] <= offset)
            low = mid;
        else
            high = mid;
    }
    uint32_t begin = src->line_at[low];
    size_t end = low + 1 < src->line_n ? src->line_at[low + 1] - 1 : src->text.n;
    if (end > begin && src->text.p[end - 1] == '\r' && low + 1 < src->line_n)
        end--;
    source_place place = {
        .line = low + 1,
        .text = {src->text.p + begin, end - begin},
        .at = offset - begin,
    };
    if (place.at > place.text.n) /* within the line's end */
        place.at = (uint32_t)place.text.n;
    place.column = (uint32_t)utf8_count((str){place.text.p, place.at}) + 1;
    return place;
}
