/* check_lora.c - cases for lora_down and lora_up: rows with mixes of several slots, of one and of none, slots of less than
 * the full rank and without the site, all kinds of sites, rows of a call and rows asked for.
 *
 * Bound: as of a contraction (check_contract.c), of at most n numbers after each other in a lane. */
#include "tests/kernels/check.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include "kernels/lora_rows.h"

static const float U = 0x1p-24f;

enum { SLOTS = 11, MIXES = 9, SITES = 2, SITE = 1 };

typedef struct {
    lora_kind kind;
    int64_t rows, vectors, x_vectors, out, in, rank, parts;
    int32_t of;
} lora_case;

static const lora_case cases[] = {
    {LORA_LINEAR, 1, 1, 1, 1, 1, 1, 1, LORA_OF_ALL},
    {LORA_LINEAR, 1, 1, 1, 96, 64, 16, 1, LORA_OF_ALL},
    {LORA_LINEAR, 7, 1, 1, 33, 31, 5, 1, LORA_OF_ALL},
    {LORA_LINEAR, 16, 1, 1, 130, 100, 8, 1, LORA_OF_ASKED},
    {LORA_LINEAR, 3, 1, 1, 20, 48, 7, 1, LORA_OF_SEQS},
    {LORA_LINEAR, 131, 1, 1, 40, 17, 3, 1, LORA_OF_ALL},
    {LORA_LINEAR, 4, 3, 3, 40, 17, 4, 1, LORA_OF_ALL},
    {LORA_EXPERTS, 5, 2, 1, 48, 40, 6, 4, LORA_OF_ALL},
    {LORA_EXPERTS, 9, 3, 3, 50, 32, 4, 5, LORA_OF_ASKED},
    {LORA_HEAD_LINEAR, 6, 4, 4, 24, 16, 5, 4, LORA_OF_ALL},
    {LORA_EMBED, 9, 1, 1, 64, 100, 9, 1, LORA_OF_ALL},
    {LORA_LINEAR, 2, 1, 1, 2048, 2048, 16, 1, LORA_OF_ALL},
};
enum { N_CASE = sizeof cases / sizeof cases[0] };

/* Slots of every rank, mixes of none to K_MIX_MAX of them. */
static klora *adapters_make(check *c, int64_t rank)
{
    size_t bytes = klora_bytes(SLOTS, SITES, MIXES);
    klora *l = check_alloc(c, bytes, 0);
    memset(l, 0, bytes);
    *l = (klora){.n_slot = SLOTS, .n_site = SITES, .n_mix = MIXES};
    for (int32_t s = 0; s < SLOTS; s++) {
        klora_ranks(l, SITE)[s] = (int32_t)(s % 4 == 3 ? 0 : s % 4 == 2 ? 1 + rank / 2 : rank);
        if (klora_ranks(l, SITE)[s] > rank)
            klora_ranks(l, SITE)[s] = (int32_t)rank;
        klora_ranks(l, 0)[s] = 99;
    }
    for (int m = 1; m < MIXES; m++) {
        kmix *mix = &klora_mixes(l)[m];
        for (int32_t s = (int32_t)check_below(c, 3); s < SLOTS && mix->n < m && mix->n < K_MIX_MAX;
             s += 1 + (int32_t)check_below(c, 2)) {
            mix->slot[mix->n] = s;
            mix->scale[mix->n++] = check_number(c);
        }
    }
    return l;
}

static kbatch *rows_make(check *c, const lora_case *s, klora *l)
{
    int64_t n_tok = s->of == LORA_OF_ALL ? s->rows : 2 * s->rows;
    kbatch *b = check_batch(c, &(kbatch){.n_tok = n_tok, .n_out = s->rows, .n_seq = s->rows});
    bool seen[SLOTS] = {false};
    for (int64_t i = 0; i < n_tok; i++) {
        kbatch_room(b, KBATCH_SLOT)[i] = (int32_t)check_below(c, MIXES);
        if (n_tok == 1)
            kbatch_room(b, KBATCH_SLOT)[i] = 2;
        const kmix *m = klora_mix(l, kbatch_at(b, KBATCH_SLOT)[i]);
        for (int k = 0; k < m->n; k++)
            seen[m->slot[k]] = true;
    }
    for (int64_t i = 0; i < s->rows; i++)
        kbatch_room(b, KBATCH_OUT)[i] = kbatch_room(b, KBATCH_FIRST)[i] = (int32_t)(2 * i + 1);
    for (int32_t i = 0; i < SLOTS; i++)
        if (seen[i])
            klora_used(l)[l->n_used++] = i;
    return b;
}

/* All but the operand that is multiplied; false: there are fewer cases. */
static bool lora_make(check *c, int i, check_case *out, lora_case *s)
{
    if (i >= N_CASE)
        return false;
    *s = cases[i];
    kargs *k = &out->ref;
    klora *l = adapters_make(c, s->rank);
    k->lora = l;
    k->batch = rows_make(c, s, l);
    lora_shape shape = {s->kind, s->in, s->out, s->parts, s->rank};
    k->in[1] = check_numbers(c, SLOTS * lora_slot_floats(&shape));
    k->in[2] = s->kind == LORA_EMBED     ? check_ids(c, s->rows, s->in)
               : s->kind == LORA_EXPERTS ? check_ids(c, s->rows * s->vectors, s->parts)
                                         : NULL;
    k->size =
        (ksizes){.lora = {s->rows, s->vectors, s->x_vectors, s->out, s->in, s->rank, s->parts}};
    k->choice = (kchoices){.lora = {(int32_t)s->kind, s->of, SITE}};
    snprintf(out->shape, sizeof out->shape, "%d rows, kind %d, %d x %d, rank %d", (int)s->rows,
             (int)s->kind, (int)s->out, (int)s->in, (int)s->rank);
    return true;
}

static float *bounds(check *c, int64_t n, float x)
{
    float *b = check_numbers(c, n);
    for (int64_t i = 0; i < n; i++)
        b[i] = x;
    return b;
}

static bool down_make(check *c, const kernel_row *row, int i, check_case *out)
{
    lora_case s;
    (void)row;
    if (!lora_make(c, i, out, &s))
        return false;
    if (s.kind != LORA_EMBED)
        out->ref.in[0] = check_numbers(c, s.rows * s.x_vectors * s.in);
    out->ref.pitch[0] = s.in * 4;
    out->k = out->ref;
    int64_t rows = s.rows * s.vectors, width = K_MIX_MAX * s.rank;
    float most = ((float)s.in / 16 + 16) * U * (float)s.in;
    out->out[0] = (check_out){.type = DT_F32,
                              .rows = rows,
                              .width = width,
                              .bound = bounds(c, rows * width, most),
                              .fixed_pitch = true}; /* what no mix reaches stays as it is */
    return true;
}

static bool up_make(check *c, const kernel_row *row, int i, check_case *out)
{
    lora_case s;
    (void)row;
    if (!lora_make(c, i, out, &s))
        return false;
    int64_t rows = s.rows * s.vectors, width = K_MIX_MAX * s.rank, pitch = (width + 3) * 4;
    const float *h = check_numbers(c, rows * width);
    out->ref.in[0] = h;
    out->ref.pitch[0] = width * 4;
    out->k = out->ref;
    char *apart = check_alloc(c, (size_t)(rows * pitch), 0);
    for (int64_t r = 0; r < rows; r++)
        memcpy(apart + r * pitch, h + r * width, (size_t)width * 4);
    check_unused_gaps(c, apart, rows, pitch, width * 4);
    out->k.in[0] = apart;
    out->k.pitch[0] = pitch;
    float most = ((float)s.rank + 16) * U * (float)width;
    out->out[0] = (check_out){
        .type = DT_F32, .rows = rows, .width = s.out, .bound = bounds(c, rows * s.out, most)};
    out->cols = s.out;
    out->grain = 1;
    return true;
}

const check_op check_ops_lora[] = {
    {KOP_lora_down, down_make, NULL},
    {KOP_lora_up, up_make, NULL},
    {0},
};
