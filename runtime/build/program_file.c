/* program_file.c - head, weights, then the head again: only when all weights were made are their sums known. */
#include "runtime/build/program_file.h"

#include "runtime/base/checksum.h"
#include "runtime/base/file.h"
#include "runtime/base/mem.h"
#include "runtime/build/elf_stamp.h"
#include "runtime/formats/out_file.h"
#include "runtime/program/image_bytes.h"
#include "runtime/program/program_model.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/* All that stands before the weights, in two parts: what the linker made, and the image up to them. */
typedef struct {
    strbuf elf, head;
    uint64_t image_bytes;
} beginning;

static void tensors_part(const program_file *f, strbuf *out)
{
    size_t n = f->weights->list.n;
    image_tensor *rows = mem_alloc((n + 1) * sizeof *rows);
    for (size_t i = 0; i < n; i++)
        rows[i] = f->weights->list.at[i].row;
    image_tensors_write(rows, n, f->identity, out);
    mem_free(rows);
}

static weft_status make_beginning(weft_diag *dg, const program_file *f, beginning *b,
                                  uint64_t *out_tensors_sum)
{
    image_part parts[IMAGE_PARTS_MAX];
    strbuf tensors = {0}, directory = {0};
    uint64_t sum;
    int n = f->n_part;
    WEFT_ASSERT(n + 2 <= IMAGE_PARTS_MAX);
    memcpy(parts, f->part, (size_t)n * sizeof *parts);
    tensors_part(f, &tensors);
    parts[n] = (image_part){.name = "tensors",
                            .kind = IMAGE_TENSORS,
                            .data = (const unsigned char *)tensors.p,
                            .bytes = tensors.n};
    for (int i = 0; i <= n; i++)
        parts[i].sum = checksum(parts[i].data, parts[i].bytes);
    *out_tensors_sum = parts[n].sum;
    parts[n + 1] = (image_part){.name = "weights",
                                .kind = IMAGE_WEIGHTS,
                                .external = f->external,
                                .bytes = f->weights->bytes};
    image_write_head(parts, n + 2, &directory, &b->image_bytes, &sum);

    strbuf_reset(&b->head);
    strbuf_put(&b->head, strbuf_view(&directory));
    for (int i = 0; i <= n; i++) {
        strbuf_fill(&b->head, 0, parts[i].offset - b->head.n);
        strbuf_put(&b->head, (str){(const char *)parts[i].data, parts[i].bytes});
    }
    if (!f->external)
        strbuf_fill(&b->head, 0, parts[n + 1].offset - b->head.n);
    strbuf_reset(&b->elf);
    strbuf_put(&b->elf, strbuf_view(f->elf));
    weft_status st = elf_stamp(dg, f->path, &b->elf, b->image_bytes, sum);
    strbuf_free(&tensors);
    strbuf_free(&directory);
    return st;
}

static weft_status put_weights(weft_diag *dg, const program_file *f, out_file *out)
{
    build_weights *w = f->weights;
    uint64_t at = 0;
    for (size_t i = 0; i < w->list.n; i++) {
        image_tensor *t = &w->list.at[i].row;
        if (f->stop && *f->stop)
            return weft_fail(dg, W1412, WEFT_NOWHERE, "cancelled");
        char *bytes = mem_try_aligned(PLAN_ALIGN, t->bytes ? (size_t)t->bytes : 1);
        if (!bytes)
            return diag_fail_memory(dg, (size_t)t->bytes);
        weft_status st = build_weights_make(dg, w, i, bytes);
        if (st == WEFT_OK) {
            t->sum = checksum(bytes, (size_t)t->bytes);
            st = out_file_put(dg, out, bytes, (size_t)t->bytes);
        }
        mem_free(bytes);
        WEFT_TRY(st);
        WEFT_TRY(out_file_pad(dg, out, IMAGE_ALIGN));
        at += t->bytes;
        if (f->report)
            f->report(f->ctx, at, w->bytes);
    }
    if (f->report)
        f->report(f->ctx, w->bytes, w->bytes);
    return WEFT_OK;
}

/* Bytes at the beginning of a file that is being written. */
static weft_status write_again(weft_diag *dg, const out_file *out, const char *path, str a, str b)
{
    int fd = open(out_file_part(out), O_WRONLY | O_CLOEXEC);
    bool fine = fd >= 0;
    const str both[] = {a, b};
    off_t at = 0;
    for (int i = 0; i < 2; i++)
        for (size_t n = 0; fine && n < both[i].n;) {
            ssize_t k = pwrite(fd, both[i].p + n, both[i].n - n, at);
            fine = k > 0 || (k < 0 && errno == EINTR);
            n += k > 0 ? (size_t)k : 0;
            at += k > 0 ? k : 0;
        }
    int error = errno;
    if (fd >= 0)
        close(fd);
    return fine ? WEFT_OK
                : weft_fail(dg, W1004, WEFT_NOWHERE, "cannot write %s: %s", path,
                            file_reason_of(error).text);
}

/* PATH.weights. */
static weft_status write_external(weft_diag *dg, program_file *f, out_file **out)
{
    strbuf path = {0};
    strbuf_add(&path, "%s.weights", f->path);
    weft_status st = out_file_create(dg, path.p, out);
    if (st == WEFT_OK)
        st = out_file_put(dg, *out, "", 1);
    if (st == WEFT_OK)
        st = out_file_pad(dg, *out, IMAGE_PAGE);
    if (st == WEFT_OK)
        st = put_weights(dg, f, *out);
    strbuf_free(&path);
    return st;
}

static weft_status finish_external(weft_diag *dg, const program_file *f, out_file *out,
                                   uint64_t sum)
{
    char head[64] = WEIGHTS_MAGIC;
    image_put32(head + WEIGHTS_AT_VERSION, IMAGE_VERSION);
    image_put64(head + WEIGHTS_AT_BYTES, f->weights->bytes);
    image_put64(head + WEIGHTS_AT_SUM, sum);
    return write_again(dg, out, f->path, (str){head, sizeof head}, (str){0});
}

static weft_status write_program(weft_diag *dg, program_file *f, beginning *b, out_file *out,
                                 out_file *apart)
{
    uint64_t sum;
    char zeros[16] = {0};
    WEFT_TRY(make_beginning(dg, f, b, &sum)); /* sums of weights are 0 yet, but places are right */
    WEFT_TRY(out_file_put(dg, out, b->elf.p, b->elf.n));
    WEFT_TRY(out_file_put(dg, out, b->head.p, b->head.n));
    if (!f->external)
        WEFT_TRY(put_weights(dg, f, out));
    uint64_t end = f->external ? b->head.n : b->head.n + f->weights->bytes;
    WEFT_TRY(out_file_put(dg, out, zeros, (size_t)(b->image_bytes - IMAGE_END_BYTES - end)));
    WEFT_TRY(out_file_put(dg, out, image_end_mark, IMAGE_END_BYTES));
    WEFT_TRY(make_beginning(dg, f, b, &sum));
    WEFT_TRY(out_file_flush(dg, out));
    WEFT_TRY(write_again(dg, out, f->path, strbuf_view(&b->elf), strbuf_view(&b->head)));
    if (apart) {
        WEFT_TRY(out_file_flush(dg, apart));
        WEFT_TRY(finish_external(dg, f, apart, sum));
        WEFT_TRY(out_file_finish(dg, apart));
    }
    mode_t mask = umask(0);
    umask(mask);
    if (!f->lib && chmod(out_file_part(out), 0777 & ~mask) != 0)
        return weft_fail(dg, W1004, WEFT_NOWHERE, "cannot make %s executable: %s", f->path,
                         file_reason_of(errno).text);
    return out_file_finish(dg, out);
}

weft_status program_file_write(weft_diag *dg, program_file *f)
{
    beginning b = {0};
    out_file *out = NULL, *apart = NULL;
    weft_status st = out_file_create(dg, f->path, &out);
    if (st == WEFT_OK && f->external)
        st = write_external(dg, f, &apart);
    if (st == WEFT_OK)
        st = write_program(dg, f, &b, out, apart);
    out_file_destroy(apart);
    out_file_destroy(out);
    strbuf_free(&b.elf);
    strbuf_free(&b.head);
    return st;
}
