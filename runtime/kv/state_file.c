/* state_file.c - the head of a file, and rows through a buffer. */
#include "runtime/kv/state_file.h"

#include "runtime/base/mem.h"
#include "runtime/kv/chunk_file.h"
#include "runtime/kv/state_parts.h"
#include <inttypes.h>
#include <string.h>

static const chunk_kind kind = {"WEFTSEQ\n", STATE_FILE_VERSION, "a file of state"};

enum { BUFFER_BYTES = 1 << 16, TABLES_MAX = 1 << 12, LAYOUT_MAX = 1 << 24 };

static weft_status check_seq(weft_diag *dg, const state *st, int64_t seq)
{
    if (state_has(st, seq))
        return WEFT_OK;
    return weft_fail(dg, W1403, WEFT_NOWHERE, "there is no sequence %" PRId64 " to save or load",
                     seq);
}

static weft_status add_bytes(void *ctx, weft_diag *dg, char *at, size_t bytes)
{
    (void)dg, (void)at;
    *(uint64_t *)ctx += bytes;
    return WEFT_OK;
}

/* Bytes of all rows. */
static uint64_t rows_bytes(const state *st, const state_span *spans, int64_t length)
{
    uint64_t sum = 0;
    weft_status status = state_parts_each(NULL, st, -1, spans, length, add_bytes, &sum);
    WEFT_ASSERT(status == WEFT_OK);
    return sum;
}

/* ---- saving ---- */

typedef struct {
    const state *st;
    chunk_writer *w;
    const state_copies *copy;
    unsigned char buffer[BUFFER_BYTES];
} saver;

static weft_status save_part(void *ctx, weft_diag *dg, char *at, size_t bytes)
{
    saver *s = ctx;
    while (bytes > 0) {
        size_t n = bytes < sizeof s->buffer ? bytes : sizeof s->buffer;
        WEFT_TRY(s->copy->out(s->copy->ctx, dg, s->buffer, at, n));
        WEFT_TRY(chunk_writer_put(dg, s->w, s->buffer, n));
        at += n;
        bytes -= n;
    }
    return WEFT_OK;
}

/* What is to be written but for the rows. */
typedef struct {
    int64_t length, n_next; /* tokens that the sequence holds, and those that come next */
    const int32_t *ids;
    strbuf layout;
    state_span *spans; /* [n_table] */
    uint64_t n_table;
} contents;

static contents contents_of(const state *st, int64_t seq, const int32_t *ids, int64_t n_next)
{
    contents c = {.length = state_length(st, seq),
                  .n_next = n_next,
                  .ids = ids,
                  .n_table = (uint64_t)state_tables(st)};
    state_describe(st, &c.layout);
    c.spans = mem_alloc(mem_product(c.n_table + 1, sizeof *c.spans));
    for (uint64_t i = 0; i < c.n_table; i++)
        c.spans[i] = state_span_of(st, (int32_t)i, seq);
    return c;
}

static void contents_free(contents *c)
{
    strbuf_free(&c->layout);
    mem_free(c->spans);
}

static size_t ids_bytes(const contents *c)
{
    return (size_t)(c->length + c->n_next) * sizeof *c->ids;
}

static uint64_t contents_bytes(const contents *c)
{
    return 7 * sizeof(uint64_t) + c->layout.n + ids_bytes(c) + c->n_table * sizeof *c->spans;
}

static weft_status put_u64(weft_diag *dg, chunk_writer *w, uint64_t x)
{
    return chunk_writer_put(dg, w, &x, sizeof x);
}

static weft_status put_contents(weft_diag *dg, chunk_writer *w, const contents *c,
                                const state_owner *who)
{
    _Static_assert(sizeof(state_span) == 3 * sizeof(uint64_t), "a span has no gaps");
    WEFT_TRY(put_u64(dg, w, who->model.lo));
    WEFT_TRY(put_u64(dg, w, who->model.hi));
    WEFT_TRY(put_u64(dg, w, who->adapters));
    WEFT_TRY(put_u64(dg, w, c->layout.n));
    WEFT_TRY(chunk_writer_put(dg, w, c->layout.p, c->layout.n));
    WEFT_TRY(put_u64(dg, w, (uint64_t)c->length));
    WEFT_TRY(put_u64(dg, w, (uint64_t)c->n_next));
    WEFT_TRY(chunk_writer_put(dg, w, c->ids, ids_bytes(c)));
    WEFT_TRY(put_u64(dg, w, c->n_table));
    return chunk_writer_put(dg, w, c->spans, c->n_table * sizeof *c->spans);
}

static weft_status save(weft_diag *dg, const char *path, const state *st, int64_t seq,
                        const contents *c, const state_owner *who, saver *s)
{
    uint64_t bytes = contents_bytes(c) + rows_bytes(st, c->spans, c->length);
    WEFT_TRY(chunk_writer_create(dg, path, &kind, bytes, &s->w));
    WEFT_TRY(put_contents(dg, s->w, c, who));
    WEFT_TRY(state_parts_each(dg, st, seq, c->spans, c->length, save_part, s));
    return chunk_writer_finish(dg, s->w);
}

weft_status state_file_save(weft_diag *dg, const char *path, const state *st, int64_t seq,
                            const int32_t *ids, int64_t n_next, const state_owner *who,
                            const state_copies *copy)
{
    WEFT_ASSERT(n_next >= 0 && n_next <= STATE_FILE_NEXT_MAX);
    WEFT_TRY(check_seq(dg, st, seq));
    saver *s = mem_alloc(sizeof *s);
    s->st = st;
    s->w = NULL;
    s->copy = copy;
    contents c = contents_of(st, seq, ids, n_next);
    weft_status status = save(dg, path, st, seq, &c, who, s);
    chunk_writer_destroy(s->w);
    contents_free(&c);
    mem_free(s);
    return status;
}

/* ---- opening ---- */

struct state_file {
    chunk_reader *r;
    const state_copies *copy;
    contents c;
    int32_t *ids;
    unsigned char buffer[BUFFER_BYTES];
};

/* The next number, which counts things of `item` bytes that follow. */
static weft_status get_count(weft_diag *dg, state_file *f, const char *what, uint64_t item,
                             uint64_t most, uint64_t *out)
{
    uint64_t n;
    WEFT_TRY(chunk_reader_get(dg, f->r, &n, sizeof n));
    if (n > most || n > chunk_reader_left(f->r) / item)
        return weft_fail(dg, W1006, WEFT_NOWHERE, "%s: it cannot have %" PRIu64 " %s",
                         chunk_reader_path(f->r), n, what);
    *out = n;
    return WEFT_OK;
}

static weft_status check_owner(weft_diag *dg, state_file *f, const state_owner *who)
{
    uint64_t is[3];
    const char *path = chunk_reader_path(f->r);
    WEFT_TRY(chunk_reader_get(dg, f->r, is, sizeof is));
    if (is[0] != who->model.lo || is[1] != who->model.hi)
        return weft_fail(dg, W1416, WEFT_NOWHERE,
                         "%s holds state of another model: its weights are %016" PRIx64
                         "%016" PRIx64 ", those of this one %016" PRIx64 "%016" PRIx64,
                         path, is[1], is[0], who->model.hi, who->model.lo);
    if (is[2] != who->adapters)
        return weft_fail(dg, W1418, WEFT_NOWHERE,
                         "%s holds state that was computed with %s adapters, set %016" PRIx64
                         "; the sequence has %s, set %016" PRIx64,
                         path, is[2] ? "other" : "no", is[2], who->adapters ? "some" : "none",
                         who->adapters);
    return WEFT_OK;
}

/* The first line of a text, which loses it. */
static str next_line(str *text)
{
    size_t n = 0;
    while (n < text->n && text->p[n] != '\n')
        n++;
    str line = {text->p, n};
    n += n < text->n;
    *text = (str){text->p + n, text->n - n};
    return line;
}

/* The line that both texts differ in. */
static weft_status fail_layout(weft_diag *dg, const char *path, str file, str session)
{
    str a = {0}, b = {0};
    while (file.n > 0 || session.n > 0) {
        a = next_line(&file);
        b = next_line(&session);
        if (!str_eq(a, b))
            break;
    }
    return weft_fail(dg, W1419, WEFT_NOWHERE,
                     "%s holds state of another layout: " STR_FMT "; the session has " STR_FMT,
                     path, STR_ARG(a.n ? a : STR("no further cell")),
                     STR_ARG(b.n ? b : STR("no further cell")));
}

static weft_status check_layout(weft_diag *dg, state_file *f, const state *st)
{
    uint64_t n;
    strbuf want = {0};
    WEFT_TRY(get_count(dg, f, "bytes that say what its cells are", 1, LAYOUT_MAX, &n));
    char *text = mem_alloc((size_t)n + 1);
    weft_status status = chunk_reader_get(dg, f->r, text, (size_t)n);
    state_describe(st, &want);
    if (status == WEFT_OK && !str_eq((str){text, (size_t)n}, strbuf_view(&want)))
        status =
            fail_layout(dg, chunk_reader_path(f->r), (str){text, (size_t)n}, strbuf_view(&want));
    strbuf_free(&want);
    mem_free(text);
    return status;
}

static weft_status get_ids(weft_diag *dg, state_file *f, const state *st, int64_t n_vocab)
{
    uint64_t n, next;
    WEFT_TRY(get_count(dg, f, "tokens", sizeof *f->ids, INT32_MAX, &n));
    WEFT_TRY(get_count(dg, f, "next tokens", sizeof *f->ids, STATE_FILE_NEXT_MAX, &next));
    if ((int64_t)n > state_context(st))
        return weft_fail(dg, W1404, WEFT_NOWHERE,
                         "%s holds %" PRIu64 " tokens; a sequence of this session holds %" PRId64,
                         chunk_reader_path(f->r), n, state_context(st));
    f->ids = mem_alloc(mem_product((size_t)n + STATE_FILE_NEXT_MAX, sizeof *f->ids));
    f->c.length = (int64_t)n;
    f->c.n_next = (int64_t)next;
    WEFT_TRY(chunk_reader_get(dg, f->r, f->ids, ids_bytes(&f->c)));
    for (uint64_t i = 0; i < n + next; i++)
        if (f->ids[i] < 0 || (n_vocab > 0 && f->ids[i] >= n_vocab))
            return weft_fail(
                dg, W1006, WEFT_NOWHERE,
                "%s: token %" PRIu64 " is %" PRId32 "; the model has tokens 0 to %" PRId64,
                chunk_reader_path(f->r), i, f->ids[i], (n_vocab ? n_vocab : INT32_MAX) - 1);
    return WEFT_OK;
}

static weft_status get_spans(weft_diag *dg, state_file *f, state *st)
{
    uint64_t n;
    WEFT_TRY(get_count(dg, f, "tables of pages", sizeof *f->c.spans, TABLES_MAX, &n));
    f->c.spans = mem_alloc(mem_product((size_t)n + 1, sizeof *f->c.spans));
    f->c.n_table = n;
    WEFT_TRY(chunk_reader_get(dg, f->r, f->c.spans, (size_t)n * sizeof *f->c.spans));
    if (n != (uint64_t)state_tables(st) || !state_spans_fit(st, f->c.spans, f->c.length))
        return weft_fail(dg, W1006, WEFT_NOWHERE,
                         "%s: no sequence of %" PRId64 " tokens has the pages that it says",
                         chunk_reader_path(f->r), f->c.length);
    uint64_t rows = rows_bytes(st, f->c.spans, f->c.length), left = chunk_reader_left(f->r);
    if (rows != left)
        return weft_fail(dg, W1006, WEFT_NOWHERE,
                         "%s: its pages have %" PRIu64 " bytes, and %" PRIu64 " follow",
                         chunk_reader_path(f->r), rows, left);
    return WEFT_OK;
}

static weft_status check_file(weft_diag *dg, state_file *f, const char *path, state *st,
                              const state_owner *who)
{
    WEFT_TRY(chunk_reader_open(dg, path, &kind, &f->r));
    WEFT_TRY(check_owner(dg, f, who));
    WEFT_TRY(check_layout(dg, f, st));
    WEFT_TRY(get_ids(dg, f, st, who->n_vocab));
    return get_spans(dg, f, st);
}

weft_status state_file_open(weft_diag *dg, const char *path, state *st, const state_owner *who,
                            state_file **out_f)
{
    state_file *f = mem_alloc(sizeof *f);
    f->r = NULL;
    f->ids = NULL;
    f->c = (contents){0};
    weft_status status = check_file(dg, f, path, st, who);
    if (status == WEFT_OK)
        *out_f = f;
    else
        state_file_close(f);
    return status;
}

void state_file_close(state_file *f)
{
    if (!f)
        return;
    chunk_reader_close(f->r);
    contents_free(&f->c);
    mem_free(f->ids);
    mem_free(f);
}

const int32_t *state_file_ids(const state_file *f, int64_t *out_n, int64_t *out_next)
{
    *out_n = f->c.length;
    *out_next = f->c.n_next;
    return f->ids;
}

/* ---- loading ---- */

bool state_file_room(const state_file *f, const state *st, int64_t seq)
{
    return !state_has(st, seq) || state_spans_room(st, f->c.spans, seq);
}

static weft_status load_part(void *ctx, weft_diag *dg, char *at, size_t bytes)
{
    state_file *f = ctx;
    while (bytes > 0) {
        size_t n = bytes < sizeof f->buffer ? bytes : sizeof f->buffer;
        WEFT_TRY(chunk_reader_get(dg, f->r, f->buffer, n));
        WEFT_TRY(f->copy->in(f->copy->ctx, dg, at, f->buffer, n));
        at += n;
        bytes -= n;
    }
    return WEFT_OK;
}

weft_status state_file_load(weft_diag *dg, state_file *f, state *st, int64_t seq,
                            const state_copies *copy)
{
    WEFT_TRY(check_seq(dg, st, seq));
    if (!state_file_room(f, st, seq))
        return weft_fail(dg, W1401, WEFT_NOWHERE,
                         "%s holds %" PRId64 " tokens; there are not enough free pages for them",
                         chunk_reader_path(f->r), f->c.length);
    f->copy = copy;
    state_place(st, seq, f->c.spans, f->c.length);
    weft_status status = state_parts_each(dg, st, seq, f->c.spans, f->c.length, load_part, f);
    if (status != WEFT_OK) /* what came is not to be trusted */
        WEFT_TRY(state_truncate(dg, st, seq, 0));
    return status;
}
