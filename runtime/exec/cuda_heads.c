/* cuda_heads.c - the steps of rows between their linears and attention, as one; and what quantises behind it, head by head.
 *
 * Queries are turned, keys are turned and appended, values are appended: four short steps, of which each waits for what it loads. An
 * image made for a plan has a function for all of them (kernels/cuda/heads_cuda.cuh), whose units are heads of the cell, of each row.
 * Of several rows it is run only where blocks do that for the heads they attend with. Then each may also quantise what it made of
 * these, if that is whole blocks of columns: without a barrier of all blocks, and a phase that few have a part of. */
#include "runtime/exec/cuda_impl.h"

/* Is it the only step of its item, or with one more the first? */
static bool is_item(const plan_item *it, int32_t n_step)
{
    return it->n_step == n_step && !it->per_thread;
}

/* What the steps of an item do: the place of each in `h`, if they are some of the four. */
static bool find_part(const cuda_bucket *c, const plan_item *it, int32_t from, cuda_heads *h)
{
    const int32_t i = it->first;
    const kop op = c->rows[i]->op;
    if (op == KOP_rope && is_item(it, 1) && h->q < 0)
        h->q = i - from;
    else if (op == KOP_rope && is_item(it, 2) && c->rows[i + 1]->op == KOP_append && h->key < 0)
        h->keys = (h->key = i - from) + 1;
    else if (op == KOP_append && is_item(it, 1) && !c->args[i].in[0] && h->values < 0)
        h->values = i - from;
    else
        return false;
    return true;
}

/* Is the item one that attends, a row and a head of the cell at a time, with all positions? */
static bool attends_whole(const cuda_bucket *c, int32_t item)
{
    const plan_item *it = &c->plan->item[item];
    return item < c->plan->n_item && c->rows[it->first]->unit == KUNIT_QUERIES_FEW &&
           c->args[it->first].choice.attend.part == ATTEND_WHOLE && it->grain == 0;
}

/* Are both turned alike, whole heads, each a tile? */
static bool turns_alike(const cuda_bucket *c, int32_t of_q, int32_t of_key)
{
    const kargs *q = &c->args[of_q], *key = &c->args[of_key];
    return q->in[1] == key->in[1] && c->own[of_q].io[1] == c->own[of_key].io[1] &&
           q->size.rope.width == key->size.rope.width &&
           q->size.rope.pairs == key->size.rope.pairs && q->in[2] == key->in[2] &&
           q->scalar.rope.factor == key->scalar.rope.factor &&
           q->choice.rope.order == key->choice.rope.order &&
           2 * q->size.rope.pairs == q->size.rope.width && q->tile == q->size.rope.width &&
           key->tile == key->size.rope.width;
}

static bool is_of_rows(const plan_step *s)
{
    return s->rows == ROWS_T && s->per_row == 1;
}

/* Does a block alone see what the key's step makes, and is that what is appended? */
static bool key_is_own(const cuda_bucket *c, int32_t key)
{
    const plan_operand *made = &c->plan->step[key].out[0], *read = &c->plan->step[key + 1].in[0];
    return made->space == SPACE_TILE && read->space == SPACE_TILE && made->offset == read->offset &&
           c->plan->step[key].in[0].space != SPACE_TILE;
}

bool cuda_heads_of(const exec *e, const cuda_bucket *c, int32_t first, cuda_heads *out_h)
{
    const plan_item *item = &c->plan->item[first];
    const int32_t from = item->first, left = c->plan->n_item - first;
    cuda_heads h = {-1, -1, -1, -1};
    if (left < HEADS_ITEMS || (c->plan->n_tok_max > 1 && !attends_whole(c, first + HEADS_ITEMS)) ||
        (first > 0 && item[-1].phase == item->phase) ||
        (left > HEADS_ITEMS && item[HEADS_ITEMS].phase == item->phase))
        return false;
    for (int32_t i = 0; i < HEADS_ITEMS; i++)
        if (item[i].phase != item->phase || !find_part(c, &item[i], from, &h))
            return false;
    const kargs *q = &c->args[from + h.q], *key = &c->args[from + h.key];
    const plan_step *keys = &c->plan->step[from + h.keys],
                    *values = &c->plan->step[from + h.values];
    const kcell *cell = &e->cells[keys->cell];
    *out_h = h;
    return keys->cell == values->cell && !cell->latent &&
           turns_alike(c, from + h.q, from + h.key) && key_is_own(c, from + h.key) &&
           c->plan->step[from + h.q].in[0].space != SPACE_TILE &&
           values->in[1].space != SPACE_TILE && key->size.rope.heads == cell->heads &&
           q->size.rope.heads % cell->heads == 0 && key->size.rope.width == cell->k &&
           is_of_rows(&c->plan->step[from + h.q]) && is_of_rows(&c->plan->step[from + h.key]) &&
           kform_is_float(cell->tier[0].key) && kform_is_float(cell->tier[0].value);
}

int32_t cuda_heads_cols(const exec *e, const cuda_bucket *c, int32_t item)
{
    enum { WIDE = 256 }; /* what a warp quantises, of any form */
    const plan_item *it = &c->plan->item[item];
    const int32_t i = it->first;
    const kargs *k = &c->args[i], *a = k - 1;
    const plan_step *s = &c->plan->step[i], *from = s - 1;
    if (item == 0 || !is_item(it, 1) || !is_item(it - 1, 1) || c->rows[i]->op != KOP_quantize ||
        c->plan->n_tok_max == 1 || !attends_whole(c, item - 1))
        return 0;
    const kact act = (kact)k->choice.quantize.act;
    const kcell *cell = &e->cells[from->cell];
    const int64_t width = k->size.quantize.width, cols = width / cell->heads;
    const uintptr_t places = (uintptr_t)k->in[0] | (uintptr_t)k->out[0] | (uintptr_t)k->pitch[0] |
                             (uintptr_t)k->out_pitch[0];
    const bool reads = s->in[0].space == SPACE_ARENA && from->out[0].space == SPACE_ARENA &&
                       s->in[0].offset == from->out[0].offset && k->pitch[0] == a->out_pitch[0] &&
                       s->out[0].space == SPACE_ARENA;
    const bool fits = (act == ACT_Q8 || act == ACT_Q8K) && places % 16 == 0 && is_of_rows(s) &&
                      is_of_rows(from) && width == a->size.attend.heads * cell->v &&
                      cols * cell->heads == width && cols % WIDE == 0;
    return reads && fits ? (int32_t)cols : 0;
}

bool cuda_heads_are(const cuda_bucket *c, const cuda_phase *p)
{
    return c->packed && !c->apart && p->n_item == HEADS_ITEMS && p->n_step == HEADS_STEPS &&
           c->heads[p->step] >= 0;
}

bool cuda_rows_meet(const void *a, int64_t a_bytes, const void *b, int64_t b_bytes)
{
    return (uintptr_t)a < (uintptr_t)b + (uintptr_t)b_bytes &&
           (uintptr_t)b < (uintptr_t)a + (uintptr_t)a_bytes;
}

bool cuda_heads_may_repeat(const cuda_bucket *c, const cuda_phase *p)
{
    bool apart = cuda_heads_are(c, p);
    for (int32_t i = p->step; i < p->step + HEADS_STEPS && apart; i++) {
        const kargs *k = &c->args[i];
        apart = c->rows[i]->op != KOP_rope || c->own[i].tile >> K_IN_MAX & 1 ||
                !cuda_rows_meet(k->in[0], k->pitch[0], k->out[0], k->out_pitch[0]);
    }
    return apart;
}

/* The cell's heads are units of the first item; there are none of the others, nor has a further step of the first one anything to do.
 * Nothing reads these items but by their pack. */
void cuda_heads_pack(const exec *e, const cuda_bucket *c, bool follows, cuda_pack *to)
{
    const int32_t from = to->at.step;
    int32_t i = from;
    while (c->plan->step[i].cell < 0)
        i++;
    const int64_t heads = e->cells[c->plan->step[i].cell].heads;
    for (i = 0; i < HEADS_ITEMS; i++) {
        to->item[i].every = follows ? ITEM_FOLLOWS : 0;
        to->item[i].at = follows && i == 0;
        to->item[i].units = i == 0 ? heads : 0;
        to->item[i].grain = 0;
    }
    to->at.units = follows ? to->at.units : heads;
    to->step[0].shape = c->heads[from];
    for (i = 1; i < HEADS_STEPS; i++)
        to->step[i].shape = STEP_NONE;
}
