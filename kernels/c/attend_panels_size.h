/* attend_panels_size.h - how attend_panels.h cuts its work into units, and its scratch; for the kernels and for
 * the table. */
#ifndef WEFT_KERNELS_C_ATTEND_PANELS_SIZE_H
#define WEFT_KERNELS_C_ATTEND_PANELS_SIZE_H

#include "kernels/kernels.h"
#include "kernels/page_form.h"

enum {
    ATTEND_KEYS = 64, /* positions computed together */
    ATTEND_HEADS =
        8, /* query heads of a unit at most: the rest of a head of the cell is another's */
    ATTEND_QUERIES = 64, /* vectors of a unit, about: so many rows that each brings its heads */
    /* From so many queries in a call on a unit may have more of them, as enough units are left; it should where it
     * converts the blocks it reads. Which of the two a kernel does, it and its row in kernels.def agree. */
    ATTEND_MANY = 32 * 128,
    ATTEND_MANY_READ = 64,
    ATTEND_MANY_COPIED = 128,
    ATTEND_PAD = 16, /* widths and counts of queries are padded to it, or to less */
    ATTEND_STRETCH =
        1024, /* positions that are computed by themselves, then merged: so many or 2, 4, .. times that */
    ATTEND_STRETCHES = 16,  /* of a row at most */
    ATTEND_CODES_MAX = 512, /* columns of keys and of values whose codes are multiplied */
};

typedef struct {
    int64_t group;   /* query heads to a head of the cell */
    int64_t heads;   /* of a unit */
    int64_t parts;   /* units to a head of the cell */
    int64_t rows;    /* of a unit */
    int64_t queries; /* of a unit, padded */
    int64_t k, v;    /* of a key and a value, padded */
    int64_t codes;   /* of a key as its codes are padded; 0: none are multiplied */
} attend_panels_size;

K_FN int64_t attend_pad(int64_t n)
{
    return (n + ATTEND_PAD - 1) / ATTEND_PAD * ATTEND_PAD;
}

/* Has the cell blocks whose codes may be multiplied (attend_codes.h)? Of one tier: are its pages such? */
static inline bool attend_tier_codes(const kcell *c, int tier)
{
    return !c->latent && c->page_tok % ATTEND_KEYS == 0 && !kform_is_float(c->tier[tier].key) &&
           !kform_is_float(c->tier[tier].value) && c->k <= ATTEND_CODES_MAX &&
           c->v <= ATTEND_CODES_MAX;
}

static inline bool attend_has_codes(const kcell *c)
{
    bool has = false;
    for (int i = 0; i < c->n_tier; i++)
        has = has || attend_tier_codes(c, i);
    return has;
}

static inline attend_panels_size attend_panels_size_of(const kargs *k, int64_t queries_many)
{
    attend_panels_size s;
    s.group = k->size.attend.heads / k->cell->heads;
    s.parts = (s.group + ATTEND_HEADS - 1) / ATTEND_HEADS;
    s.heads = (s.group + s.parts - 1) / s.parts;
    bool many = k->size.attend.rows * k->size.attend.heads >= ATTEND_MANY;
    int64_t queries = many ? queries_many : ATTEND_QUERIES;
    s.rows = s.heads < queries ? queries / s.heads : 1;
    s.queries = attend_pad(s.rows * s.heads);
    s.k = attend_pad(k->cell->k);
    s.v = attend_pad(k->cell->v);
    s.codes = attend_has_codes(k->cell) ? (k->cell->k + PAGE_PAD - 1) / PAGE_PAD * PAGE_PAD : 0;
    return s;
}

static inline int64_t attend_panels_units(const kargs *k, int64_t queries_many)
{
    attend_panels_size s = attend_panels_size_of(k, queries_many);
    int64_t units = (k->size.attend.rows + s.rows - 1) / s.rows * k->cell->heads * s.parts;
    return k->choice.attend.part == ATTEND_MERGE    ? k->size.attend.rows * k->size.attend.heads
           : k->choice.attend.part == ATTEND_STATES ? units * ATTEND_STRETCHES
                                                    : units;
}

/* The stretches of a row are so long that there are no more than ATTEND_STRETCHES. */
static inline int64_t attend_stretch(int64_t pos)
{
    int64_t len = ATTEND_STRETCH;
    while (pos / len >= ATTEND_STRETCHES)
        len *= 2;
    return len;
}

/* Floats of what is kept of a query's stretch: largest logit, sum of weights, and from ATTEND_PAD on the values'
 * sum; a row has these [H, ATTEND_STRETCHES]. */
K_FN int64_t attend_state_floats(int64_t v)
{
    return ATTEND_PAD + attend_pad(v);
}

/* Floats: of each query the vector (twice where codes are multiplied), the weights, the sums of a stretch and of all before it, and seven numbers; a
 * block of keys and values. */
static inline size_t attend_panels_bytes(const kargs *k, int64_t queries_many)
{
    attend_panels_size s = attend_panels_size_of(k, queries_many);
    int64_t floats =
        s.queries * (s.k + s.codes + ATTEND_KEYS + 2 * s.v + 7) + ATTEND_KEYS * (s.k + s.v);
    return (size_t)floats * sizeof(float);
}

#endif
