/* image_io.h - numbers and texts to bytes and back, with one function for both ways, so that what is written is what is read.
 * Private to this folder.
 *
 *     static void step_io(image_io *x, step *s) { io_u8(x, &s->kind); io_text(x, &s->text, MAX); }
 *
 * Reading never passes the end and never fails at once: what is wrong is remembered, numbers are 0 and texts empty from
 * there on, and io_done says so. Texts that are read are views of the bytes. */
#ifndef WEFT_RUNTIME_TEXT_IMAGE_IO_H
#define WEFT_RUNTIME_TEXT_IMAGE_IO_H

#include "runtime/base/arena.h"
#include "runtime/base/diag.h"
#include "runtime/base/str.h"

typedef struct {
    strbuf *out; /* NULL: reading */
    size_t base; /* writing: where the image begins in out */
    str in;
    size_t at;
    const char *part;  /* that is being read, for messages */
    const char *fault; /* NULL: all is well so far */
    size_t fault_at;
} image_io;

static inline bool io_reads(const image_io *x)
{
    return !x->out;
}

/* Remember what is wrong, unless something was before; nothing more is read. */
void io_fault(image_io *x, const char *fault);
static inline void io_check(image_io *x, bool fine, const char *fault)
{
    if (!fine)
        io_fault(x, fault);
}

void io_raw(image_io *x, void *p, size_t n);
void io_u8(image_io *x, uint8_t *v);
void io_bool(image_io *x, bool *v);
void io_u32(image_io *x, uint32_t *v);
void io_i32(image_io *x, int32_t *v, int32_t lo, int32_t hi); /* a fault outside of lo to hi */
void io_size(image_io *x, size_t *v, size_t max);
/* UTF-8, of at most n_max bytes. */
void io_text(image_io *x, str *s, size_t n_max);
/* Any bytes. */
void io_blob(image_io *x, str *s);
/* How many items follow, of at least item_bytes each: no more than there are bytes for. */
size_t io_count(image_io *x, size_t n, size_t item_bytes, size_t n_max);
/* A table of n items of item_bytes, at a multiple of 16 bytes from the beginning. Reading: a view, or a copy in a where the
 * bytes lie at an odd address; NULL where something is wrong. */
const void *io_table(image_io *x, arena *a, const void *table, size_t n, size_t item_bytes);
/* Four letters and a version. */
void io_head(image_io *x, const char magic[4], uint32_t version);

/* After the last item. Reading: a failure with `code` if anything was wrong, or bytes are left; both name the image. */
weft_status io_done(weft_diag *dg, const image_io *x, weft_code code, const char *name,
                    const char *what) WEFT_MUST_USE;

#endif
