/* fuzz_plan.c - strangers' plan files: read, proven, and run if they are let through.
 *
 * Bytes that begin with w are a plan file. Others are changes to one that is made here from
 * plan.graph: the first byte chooses which, then every four bytes replace a number of it (which one:
 * two bytes; what by: two bytes). Either way length and checksum are made right again, so that what has to hold
 * is the reading and the proof. A plan that is let through runs on weights of noise. */
#include "compiler/plan_file.h"
#include "compiler/plan_make.h"
#include "runtime/base/vec.h"
#include "runtime/exec/session.h"
#include "tests/formats/gguf_bytes.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { CONTEXT = 32, ROWS_MAX = 16, EDITS_MAX = 64, PLANS = 4 };

static const gguf_row tensors[] = {
    {"embd", DT_Q8_0, 2, {32, 29}},
    {"attn_norm.0", DT_F32, 1, {32}},
    {"ffn_norm.0", DT_F16, 1, {32}},
    {"o.0", DT_BF16, 2, {32, 24}},
    {"attn_norm.1", DT_F32, 1, {32}},
    {"ffn_norm.1", DT_F16, 1, {32}},
    {"o.1", DT_BF16, 2, {32, 24}},
    {"q.0", DT_F16, 2, {32, 24}},
    {"k.0", DT_F16, 2, {32, 12}},
    {"v.0", DT_F16, 2, {32, 12}},
    {"qkv.1", DT_F16, 2, {32, 48}},
    {"q_bias", DT_F16, 1, {48}},
    {"sinks", DT_F16, 1, {4}},
    {"scale", DT_BF16, 1, {32}},
    {"gate_up", DT_F32, 2, {32, 40}},
    {"down", DT_F32, 2, {20, 32}},
    {"router", DT_F32, 2, {32, 3}},
    {"exp_up.0", DT_Q8_0, 2, {32, 20}},
    {"exp_up.1", DT_Q8_0, 2, {32, 20}},
    {"exp_up.2", DT_Q8_0, 2, {32, 20}},
    {"exp_down", DT_F16, 3, {20, 32, 3}},
    {"exp_bias", DT_F16, 2, {32, 3}},
};

/* Made once: a process runs many inputs. */
typedef struct {
    strbuf gguf;
    model_file *mf;
    strbuf plan[PLANS];
} stage;

static void must(weft_status st, weft_diag *dg)
{
    if (st == WEFT_OK)
        return;
    diag_print(dg, stderr, false);
    abort();
}

static void make_checkpoint(stage *s, weft_diag *dg)
{
    size_t n = sizeof tensors / sizeof *tensors;
    put_head(&s->gguf, 3, n, 1);
    put_key_str(&s->gguf, "general.architecture", "toy");
    put_noise(&s->gguf, put_rows(&s->gguf, tensors, n), 1);
    must(model_file_open_memory(dg, s->gguf.p, s->gguf.n, "toy.gguf", &s->mf), dg);
}

static const stage *stage_get(void)
{
    static stage s;
    if (s.mf)
        return &s;
    weft_diag *dg = diag_create();
    arena *a = arena_create();
    source *src;
    graph *g;
    make_checkpoint(&s, dg);
    must(source_open(dg, a, WEFT_SOURCE_DIR "/tests/fuzz/plan.graph", 1 << 20, &src), dg);
    must(graph_parse(dg, src, &g), dg);
    for (int i = 0; i < PLANS; i++) {
        target t = {.be = i & 1 ? backend_cpu_find("c") : backend_reference(),
                    .n_ctx = CONTEXT,
                    .n_seq = i & 2 ? 3 : 1,
                    .n_tok_max = i & 2 ? 5 : 1,
                    .kv = i & 2 ? DT_F16 : DT_F32,
                    .may_fork = i & 2};
        plan *p;
        must(plan_make(dg, g, &t, NULL, a, &p), dg);
        plan_write(p, model_file_hash(s.mf), &s.plan[i]);
    }
    graph_destroy(g);
    arena_destroy(a);
    diag_destroy(dg);
    return &s;
}

/* ---- changes ---- */

typedef struct {
    size_t begin, end; /* of a number in the file */
    uint16_t what;
} edit;

enum { HEAD = 40 }; /* of the file, which is made right */

static size_t number_end(str file, size_t at)
{
    while (at < file.n && file.p[at] & 0x80)
        at++;
    return at < file.n ? at + 1 : file.n;
}

/* Where number `which` is, counted over its end again. Texts and floats look like numbers here. */
static edit find_number(str file, size_t n_number, size_t which, uint16_t what)
{
    size_t at = HEAD;
    for (size_t left = which % n_number; left > 0; left--)
        at = number_end(file, at);
    return (edit){.begin = at, .end = number_end(file, at), .what = what};
}

static size_t count_numbers(str file)
{
    size_t n = 0;
    for (size_t at = HEAD; at < file.n; at = number_end(file, at))
        n++;
    return n;
}

static int64_t number_of(str s)
{
    uint64_t x = 0;
    for (size_t i = 0; i < s.n && i < 9; i++)
        x |= (uint64_t)(s.p[i] & 0x7f) << 7 * i;
    return (int64_t)(x >> 1 ^ (x & 1 ? UINT64_MAX : 0));
}

static void put_number(strbuf *out, int64_t n)
{
    uint64_t x = (uint64_t)n << 1 ^ (n < 0 ? UINT64_MAX : 0);
    for (; x >= 0x80; x >>= 7)
        strbuf_putc(out, (char)((x & 0x7f) | 0x80));
    strbuf_putc(out, (char)x);
}

static void put_changed(strbuf *out, str old, uint16_t what)
{
    static const int64_t fixed[] = {0,
                                    1,
                                    2,
                                    3,
                                    4,
                                    7,
                                    31,
                                    64,
                                    4096,
                                    INT32_MAX,
                                    UINT32_MAX,
                                    INT64_MAX,
                                    INT64_MIN,
                                    -1,
                                    INT64_MAX / 4,
                                    (int64_t)1 << 31};
    int64_t x = number_of(old), by = what >> 3;
    switch (what & 7) {
    case 0:
        x = fixed[by & 15];
        break;
    case 1:
        x = (int64_t)((uint64_t)x + (uint64_t)by);
        break;
    case 2:
        x = (int64_t)((uint64_t)x - (uint64_t)by);
        break;
    case 3:
        x = (int64_t)((uint64_t)x * (uint64_t)(by + 2));
        break;
    case 4:
        x /= by + 2;
        break;
    case 5:
        x = by;
        break;
    case 6:
        x = by * 64;
        break;
    default:
        return; /* it is left out */
    }
    put_number(out, x);
}

static int by_place(const void *a, const void *b)
{
    const edit *x = a, *y = b;
    return x->begin < y->begin ? -1 : x->begin > y->begin;
}

static void change(str base, const uint8_t *data, size_t size, strbuf *out)
{
    edit edits[EDITS_MAX];
    size_t n = 0, at = 0, n_number = count_numbers(base);
    for (size_t i = 0; i + 4 <= size && n < EDITS_MAX; i += 4)
        edits[n++] = find_number(base, n_number, (size_t)data[i] | (size_t)data[i + 1] << 8,
                                 (uint16_t)(data[i + 2] | data[i + 3] << 8));
    qsort(edits, n, sizeof *edits, by_place);
    for (size_t i = 0; i < n; i++) {
        if (edits[i].begin < at || edits[i].begin == edits[i].end)
            continue;
        strbuf_put(out, (str){base.p + at, edits[i].begin - at});
        put_changed(out, (str){base.p + edits[i].begin, edits[i].end - edits[i].begin},
                    edits[i].what);
        at = edits[i].end;
    }
    strbuf_put(out, (str){base.p + at, base.n - at});
}

/* ---- running ---- */

static void run(const stage *s, const plan *p)
{
    weft_diag *dg = diag_create();
    session *run = NULL;
    /* What is let through may still ask for more than a test should take. */
    session_options opt = {.n_ctx = CONTEXT, .n_seq = 3, .bytes_max = 64 << 20};
    if (session_create(dg, p, model_file_source(s->mf), &opt, &run) == WEFT_OK) {
        batch_row rows[ROWS_MAX];
        int32_t pos[3] = {0};
        for (int call = 0; call < 4; call++) {
            int64_t n = p->n_tok_max < ROWS_MAX ? p->n_tok_max : ROWS_MAX;
            for (int64_t i = 0; i < n; i++) {
                int seq = (int)(i + call) % 3;
                rows[i] = (batch_row){.id = (int32_t)(7 * i + call) % 29,
                                      .pos = pos[seq],
                                      .seq = seq,
                                      .out = i % 2 == 0};
                pos[seq]++;
            }
            if (session_eval(dg, run, rows, n) != WEFT_OK)
                break;
        }
    }
    session_destroy(run);
    diag_destroy(dg);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const stage *s = stage_get();
    strbuf text = {0};
    if (size == 0)
        return 0;
    if (data[0] == 'w')
        strbuf_put(&text, (str){(const char *)data, size});
    else
        change(strbuf_view(&s->plan[data[0] % PLANS]), data + 1, size - 1, &text);
    plan_file_seal(text.p, text.n);
    weft_diag *dg = diag_create();
    arena *a = arena_create();
    plan *p = NULL;
    weft_status st = plan_read(dg, "fuzz.plan", strbuf_view(&text), model_file_hash(s->mf), a, &p);
    if ((st == WEFT_OK) != (diag_errors(dg) == 0))
        abort(); /* a failure without a message, or a message without a failure */
    if (st == WEFT_OK) {
        strbuf_reset(&text);
        plan_text(p, 1, false, &text);
        run(s, p);
    }
    arena_destroy(a);
    diag_destroy(dg);
    strbuf_free(&text);
    return 0;
}
