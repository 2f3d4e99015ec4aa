/* image.c - reading and writing the directory of an image. */
#include "runtime/program/image.h"

#include "runtime/base/checksum.h"
#include "runtime/program/image_bytes.h"
#include <inttypes.h>

static const char magic[8] = "WEFTIMG";
const char image_end_mark[IMAGE_END_BYTES] = {'W', 'e', 'f', 't', ' ', 'i', 'm', 'a',
                                              'g', 'e', ' ', 'e', 'n', 'd', '.', '\n'};

/* Places in the header and in a row of the directory. */
enum { AT_VERSION = 8, AT_COUNT = 12, AT_BYTES = 16, AT_SUM = 24, HEAD_USED = 32 };
enum {
    ROW_KIND = 24,
    ROW_EXTERNAL = 28,
    ROW_OFFSET = 32,
    ROW_BYTES = 40,
    ROW_SUM = 48,
    ROW_USED = 56
};

static weft_status damaged(weft_diag *dg, const char *name, const char *what)
{
    return weft_fail(dg, W1701, WEFT_NOWHERE, "%s: %s", name, what);
}

/* ---- reading ---- */

static uint64_t directory_sum(const unsigned char *data, size_t bytes)
{
    /* Of its own place as if it were 0. */
    unsigned char copy[IMAGE_HEAD_BYTES + IMAGE_PARTS_MAX * IMAGE_ROW_BYTES];
    WEFT_ASSERT(bytes <= sizeof copy);
    memcpy(copy, data, bytes);
    memset(copy + AT_SUM, 0, sizeof(uint64_t));
    return checksum(copy, bytes);
}

static bool name_fine(const unsigned char *row)
{
    size_t n = strnlen((const char *)row, IMAGE_NAME_MAX + 1);
    for (size_t i = 0; i < n; i++)
        if (row[i] < '!' || row[i] > '~')
            return false;
    return n <= IMAGE_NAME_MAX && image_all_zero(row + n, IMAGE_NAME_MAX + 1 - n);
}

/* Part i, where the parts before it end at *at. */
static bool read_row(image *im, int i, uint64_t *at)
{
    const unsigned char *row = im->data + IMAGE_HEAD_BYTES + (size_t)i * IMAGE_ROW_BYTES;
    image_part *p = &im->part[i];
    uint32_t kind = image_get32(row + ROW_KIND), external = image_get32(row + ROW_EXTERNAL);
    if (!name_fine(row) || kind >= IMAGE_KIND_COUNT || external > 1 ||
        (external && kind != IMAGE_WEIGHTS) ||
        !image_all_zero(row + ROW_USED, IMAGE_ROW_BYTES - ROW_USED))
        return false;
    *p = (image_part){.kind = (image_kind)kind,
                      .external = external,
                      .offset = image_get64(row + ROW_OFFSET),
                      .bytes = image_get64(row + ROW_BYTES),
                      .sum = image_get64(row + ROW_SUM)};
    memcpy(p->name, row, sizeof p->name);
    if (external)
        return p->offset == 0 && p->bytes <= INT64_MAX;
    uint64_t end = im->bytes - IMAGE_END_BYTES;
    if (p->offset != image_place(p->kind, *at) || p->offset > end || p->bytes > end - p->offset)
        return false;
    p->data = im->data + p->offset;
    *at = p->offset + p->bytes;
    return true;
}

weft_status image_open(weft_diag *dg, const char *name, const void *data, size_t bytes, image *out)
{
    const unsigned char *d = data;
    image im = {.data = d, .bytes = bytes};
    if (bytes < IMAGE_HEAD_BYTES + IMAGE_END_BYTES || memcmp(d, magic, sizeof magic) != 0)
        return damaged(dg, name, "what was attached to it is not there");
    if (image_get32(d + AT_VERSION) != IMAGE_VERSION)
        return weft_fail(dg, W1702, WEFT_NOWHERE,
                         "%s: what is attached has version %" PRIu32 ", this program reads %d",
                         name, image_get32(d + AT_VERSION), IMAGE_VERSION);
    uint64_t said = image_get64(d + AT_BYTES), n = image_get32(d + AT_COUNT);
    if (said != bytes ||
        memcmp(d + bytes - IMAGE_END_BYTES, image_end_mark, IMAGE_END_BYTES) != 0) {
        weft_status st = damaged(dg, name, "what is attached does not end where it should");
        weft_note(dg, "the file was cut or changed: it has to be copied or built again");
        return st;
    }
    if (n > IMAGE_PARTS_MAX || bytes < IMAGE_HEAD_BYTES + n * IMAGE_ROW_BYTES + IMAGE_END_BYTES)
        return damaged(dg, name, "its directory counts more parts than there can be");
    size_t head = IMAGE_HEAD_BYTES + (size_t)n * IMAGE_ROW_BYTES;
    im.sum = image_get64(d + AT_SUM);
    if (directory_sum(d, head) != im.sum ||
        !image_all_zero(d + HEAD_USED, IMAGE_HEAD_BYTES - HEAD_USED))
        return damaged(dg, name, "its directory has been changed");
    uint64_t at = head;
    for (im.n_part = 0; im.n_part < (int)n; im.n_part++)
        if (!read_row(&im, im.n_part, &at))
            return weft_fail(dg, W1701, WEFT_NOWHERE,
                             "%s: part %d of its directory is not well formed", name, im.n_part);
    if ((at + 15) / 16 * 16 + IMAGE_END_BYTES != bytes)
        return damaged(dg, name, "its parts end before it does");
    *out = im;
    return WEFT_OK;
}

weft_status image_check(weft_diag *dg, const char *name, const image_part *p)
{
    if (p->kind == IMAGE_WEIGHTS || checksum(p->data, p->bytes) == p->sum)
        return WEFT_OK;
    weft_status st =
        weft_fail(dg, W1701, WEFT_NOWHERE, "%s: its part '%s' has been changed", name, p->name);
    weft_note(dg, "the file has to be copied or built again");
    return st;
}

weft_status image_check_gaps(weft_diag *dg, const char *name, const image *im)
{
    uint64_t at = IMAGE_HEAD_BYTES + (uint64_t)im->n_part * IMAGE_ROW_BYTES;
    for (int i = 0; i <= im->n_part; i++) {
        const image_part *p = &im->part[i];
        if (i < im->n_part && p->external)
            continue;
        uint64_t to = i < im->n_part ? p->offset : im->bytes - IMAGE_END_BYTES;
        if (!image_all_zero(im->data + at, to - at))
            return damaged(dg, name, "bytes between its parts have been changed");
        at = i < im->n_part ? p->offset + p->bytes : at;
    }
    return WEFT_OK;
}

const image_part *image_find(const image *im, image_kind kind, const char *name)
{
    for (int i = 0; i < im->n_part; i++)
        if (im->part[i].kind == kind && (!name || strcmp(im->part[i].name, name) == 0))
            return &im->part[i];
    return NULL;
}

/* ---- writing ---- */

uint64_t image_place(image_kind kind, uint64_t at)
{
    uint64_t align = kind == IMAGE_WEIGHTS ? IMAGE_PAGE : IMAGE_ALIGN;
    return at > UINT64_MAX - align ? UINT64_MAX : (at + align - 1) / align * align;
}

void image_write_head(image_part *parts, int n, strbuf *out, uint64_t *out_bytes, uint64_t *out_sum)
{
    WEFT_ASSERT(n >= 0 && n <= IMAGE_PARTS_MAX);
    size_t head = IMAGE_HEAD_BYTES + (size_t)n * IMAGE_ROW_BYTES;
    uint64_t at = head;
    strbuf_reset(out);
    strbuf_fill(out, 0, head);
    for (int i = 0; i < n; i++) {
        image_part *p = &parts[i];
        char *row = out->p + IMAGE_HEAD_BYTES + (size_t)i * IMAGE_ROW_BYTES;
        p->offset = p->external ? 0 : image_place(p->kind, at);
        at = p->external ? at : p->offset + p->bytes;
        memcpy(row, p->name, sizeof p->name);
        image_put32(row + ROW_KIND, p->kind);
        image_put32(row + ROW_EXTERNAL, p->external);
        image_put64(row + ROW_OFFSET, p->offset);
        image_put64(row + ROW_BYTES, p->bytes);
        image_put64(row + ROW_SUM, p->sum);
    }
    *out_bytes = (at + 15) / 16 * 16 + IMAGE_END_BYTES;
    memcpy(out->p, magic, sizeof magic);
    image_put32(out->p + AT_VERSION, IMAGE_VERSION);
    image_put32(out->p + AT_COUNT, (uint32_t)n);
    image_put64(out->p + AT_BYTES, *out_bytes);
    *out_sum = directory_sum((const unsigned char *)out->p, head);
    image_put64(out->p + AT_SUM, *out_sum);
}
