/* adapters.c - slots filled from matrices, mixes as a table, and the slots that a call uses. */
#include "runtime/exec/adapters.h"

#include "runtime/base/intmath.h"
#include "runtime/base/mem.h"
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

/* The slots of one plan. */
typedef struct {
    const plan *p;
    device *dev;
    void *memory;           /* of the device: all slots */
    klora *lora;            /* mixes: none, one for each slot alone, one for each sequence */
    const plan_site **site; /* [n_site]: by name */
} place;

struct adapters {
    int32_t n_place;
    place place[PLAN_PARTS_MAX]; /* alike but for ranks, which are of their sites */
    int64_t n_slot, n_seq;
    uint64_t *hash; /* [n_slot]: of what it holds */
    bool *has;      /* [n_slot] */
    bool *seen;     /* [n_slot]: scratch of a call */
    arena *home;
};

static int by_name(const void *a, const void *b)
{
    return strcmp((*(const plan_site *const *)a)->name, (*(const plan_site *const *)b)->name);
}

static place place_create(const adapter_home *h, int64_t n_mix, arena *home)
{
    const plan *p = h->p;
    const size_t bytes = klora_bytes(p->lora_slots, p->n_site, n_mix);
    place x = {.p = p, .dev = h->dev, .lora = arena_alloc(home, bytes)};
    memset(x.lora, 0, bytes);
    *x.lora = (klora){.n_slot = p->lora_slots, .n_site = p->n_site, .n_mix = n_mix, .version = 1};
    for (int32_t i = 0; i < p->lora_slots; i++)
        klora_mixes(x.lora)[1 + i] = (kmix){.n = 1, .slot = {i}, .scale = {1}};
    x.site = ARENA_ARRAY(home, const plan_site *, (size_t)p->n_site + 1);
    for (int32_t i = 0; i < p->n_site; i++)
        x.site[i] = &p->site[i];
    qsort(x.site, (size_t)p->n_site, sizeof *x.site, by_name);
    return x;
}

adapters *adapters_create(const adapter_home *from, int32_t n, int64_t n_seq)
{
    arena *home = arena_create();
    adapters *a = ARENA_NEW(home, adapters);
    *a = (adapters){.n_place = n, .n_slot = from->p->lora_slots, .n_seq = n_seq, .home = home};
    for (int32_t i = 0; i < n; i++) {
        WEFT_ASSERT(from[i].p->lora_slots == a->n_slot);
        a->place[i] = place_create(&from[i], 1 + a->n_slot + n_seq, home);
    }
    a->hash = ARENA_ARRAY(home, uint64_t, (size_t)a->n_slot);
    a->has = ARENA_ARRAY(home, bool, (size_t)a->n_slot);
    a->seen = ARENA_ARRAY(home, bool, (size_t)a->n_slot);
    return a;
}

weft_status adapters_bind(weft_diag *dg, adapters *a)
{
    for (int32_t i = 0; i < a->n_place; i++) {
        place *x = &a->place[i];
        WEFT_TRY(x->dev->kind->alloc(dg, x->dev, x->p->adapter_bytes, &x->memory));
    }
    return WEFT_OK;
}

void adapters_destroy(adapters *a)
{
    if (!a)
        return;
    for (int32_t i = 0; i < a->n_place; i++)
        a->place[i].dev->kind->free(a->place[i].dev, a->place[i].memory);
    arena_destroy(a->home); /* a itself with it */
}

size_t adapters_bytes(const adapters *a, int32_t i)
{
    return a->place[i].p->adapter_bytes;
}

size_t adapters_table_bytes(const adapters *a)
{
    return arena_held(a->home);
}

const klora *adapters_view(const adapters *a, int32_t i)
{
    return a->place[i].lora;
}

const void *adapters_memory(const adapters *a, int32_t i)
{
    return a->place[i].memory;
}

bool adapters_has(const adapters *a, int32_t slot)
{
    return slot >= 1 && slot <= a->n_slot && a->has[slot - 1];
}

/* The mix of a sequence, which is the same in all places. */
static const kmix *mix_of_seq(const adapters *a, int64_t seq)
{
    WEFT_ASSERT(seq >= 0 && seq < a->n_seq);
    return klora_mix(a->place[0].lora, 1 + a->n_slot + seq);
}

static void mix_set(adapters *a, int64_t seq, kmix m)
{
    WEFT_ASSERT(seq >= 0 && seq < a->n_seq);
    for (int32_t i = 0; i < a->n_place; i++)
        klora_mixes(a->place[i].lora)[1 + a->n_slot + seq] = m;
}

/* ---- loading ---- */

/* That the slot is there and no sequence uses it. */
static weft_status check_slot(weft_diag *dg, const adapters *a, int32_t slot)
{
    if (slot < 1 || slot > a->n_slot)
        return weft_fail(dg, W1407, WEFT_NOWHERE,
                         "there is no adapter slot %" PRId32 "; they are numbered 1 to %" PRId64,
                         slot, a->n_slot);
    for (int64_t seq = 0; seq < a->n_seq; seq++) {
        const kmix *m = mix_of_seq(a, seq);
        for (int i = 0; i < m->n; i++)
            if (m->slot[i] == slot - 1)
                return weft_fail(dg, W1417, WEFT_NOWHERE,
                                 "the adapter in slot %" PRId32 " is in use by sequence %" PRId64,
                                 slot, seq);
    }
    return WEFT_OK;
}

static void empty_slot(adapters *a, int32_t slot)
{
    for (int32_t i = 0; i < a->n_place; i++) {
        klora *l = a->place[i].lora;
        for (int64_t site = 0; site < l->n_site; site++)
            klora_ranks(l, site)[slot - 1] = 0;
        l->version++;
    }
    a->has[slot - 1] = false;
    a->hash[slot - 1] = 0;
}

weft_status adapters_unload(weft_diag *dg, adapters *a, int32_t slot)
{
    WEFT_TRY(check_slot(dg, a, slot));
    empty_slot(a, slot);
    return WEFT_OK;
}

/* Does a part of an adapter belong to a site, which may be a part of its weight's rows? */
static bool part_is_of(const adapter_part *m, const plan_site *s)
{
    return strcmp(m->weight, s->name) == 0 && m->in == s->in && s->first <= m->out &&
           s->out <= m->out - s->first && (m->index < 0 ? s->parts == 1 : m->index < s->parts);
}

/* The first of the sites of a weight, which follow each other; n_site: it has none. */
static int32_t first_site(const place *x, const char *weight)
{
    int32_t low = 0, high = x->p->n_site;
    while (low < high) {
        int32_t mid = low + (high - low) / 2;
        if (strcmp(x->site[mid]->name, weight) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

/* Does a place have a site for it? Else *out_other is one of another shape, if there is one. */
static bool place_takes(const place *x, const adapter_part *m, const plan_site **out_other)
{
    for (int32_t i = first_site(x, m->weight);
         i < x->p->n_site && strcmp(m->weight, x->site[i]->name) == 0; i++) {
        if (part_is_of(m, x->site[i]))
            return true;
        *out_other = x->site[i];
    }
    return false;
}

/* What plans have is another shape than the adapter's, or none has it. */
static weft_status check_part(weft_diag *dg, const adapters *a, const adapter_source *src,
                              const adapter_part *m)
{
    const plan_site *other = NULL;
    const int64_t most = a->place[0].p->lora_rank;
    if (m->rank < 1 || m->rank > most)
        return weft_fail(dg, W0702, WEFT_NOWHERE,
                         "%s: %s has rank %" PRId64 ", the session's slots have room for %" PRId64,
                         src->name, m->weight, m->rank, most);
    if (!isfinite(m->scale))
        return weft_fail(dg, W0702, WEFT_NOWHERE, "%s: the scale of %s is no number", src->name,
                         m->weight);
    for (int32_t i = 0; i < a->n_place; i++)
        if (place_takes(&a->place[i], m, &other))
            return WEFT_OK;
    if (!other)
        return WEFT_OK; /* nothing that was asked for needs it */
    return weft_fail(dg, W0702, WEFT_NOWHERE,
                     "%s: %s is for a matrix [%" PRId64 ", %" PRId64 "], the model's is [%" PRId64
                     ", %" PRId64 "]",
                     src->name, m->weight, m->out, m->in, other->first + other->out, other->in);
}

/* A and B of one part of a site as slots have them. */
static void fill_part(const adapter_part *m, const plan_site *site, const lora_shape *s, float *to)
{
    float *b = to + lora_a_floats(s);
    memset(to, 0, (size_t)(lora_a_floats(s) + lora_b_floats(s)) * sizeof *to);
    if (!m)
        return;
    for (int64_t r = 0; r < m->rank; r++)
        for (int64_t i = 0; i < s->in; i++)
            to[lora_a_index(s, r, i)] = m->a[r * s->in + i];
    for (int64_t c = 0; c < s->out; c++)
        for (int64_t r = 0; r < m->rank; r++)
            b[lora_b_index(s, c, r)] = (float)(m->scale * m->b[(site->first + c) * m->rank + r]);
}

/* An adapter on its way into a slot. Its parts are sorted, because of experts there are many thousands. */
typedef struct {
    adapters *a;
    int32_t slot;
    const adapter_part *
        *part; /* [n_part]: by weight, then index; of equal ones the first comes first */
    size_t n_part;
    float *buffer; /* for one part of a site */
} loading;

static int by_place(const void *a, const void *b)
{
    const adapter_part *x = *(const adapter_part *const *)a, *y = *(const adapter_part *const *)b;
    int order = strcmp(x->weight, y->weight);
    if (order == 0)
        order = (x->index > y->index) - (x->index < y->index);
    return order ? order : (x > y) - (x < y);
}

/* Where the parts of a weight begin. */
static size_t first_part(const loading *l, const char *weight)
{
    size_t low = 0, high = l->n_part;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (strcmp(l->part[mid]->weight, weight) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

/* All parts of a site, if the adapter has any of them. */
static weft_status load_site(weft_diag *dg, const loading *l, const place *x, int32_t id)
{
    const plan_site *site = &x->p->site[id];
    lora_shape s = plan_site_shape(x->p, site);
    size_t part_bytes = site->slot_bytes / (size_t)site->parts;
    size_t at = first_part(l, site->name), end = at;
    int64_t rank = 0;
    for (; end < l->n_part && strcmp(l->part[end]->weight, site->name) == 0; end++)
        if (part_is_of(l->part[end], site) && l->part[end]->rank > rank)
            rank = l->part[end]->rank;
    for (int64_t part = 0; part < site->parts && rank > 0; part++) {
        while (at < end &&
               (!part_is_of(l->part[at], site) || (site->parts > 1 && l->part[at]->index < part)))
            at++;
        bool has = at < end && (site->parts == 1 || l->part[at]->index == part);
        fill_part(has ? l->part[at] : NULL, site, &s, l->buffer);
        char *to = (char *)x->memory + site->offset + (size_t)(l->slot - 1) * site->slot_bytes +
                   (size_t)part * part_bytes;
        WEFT_TRY(x->dev->kind->copy_in(dg, x->dev, to, l->buffer, part_bytes));
    }
    klora_ranks(x->lora, id)[l->slot - 1] = (int32_t)rank;
    return WEFT_OK;
}

static size_t part_bytes_max(const adapters *a)
{
    size_t most = 1;
    for (int32_t k = 0; k < a->n_place; k++) {
        const plan *p = a->place[k].p;
        for (int32_t i = 0; i < p->n_site; i++)
            most = size_max(most, p->site[i].slot_bytes / (size_t)p->site[i].parts);
    }
    return most;
}

static weft_status load_sites(weft_diag *dg, const loading *l, const adapter_source *src)
{
    adapters *a = l->a;
    for (size_t i = 0; i < src->n_part; i++)
        l->part[i] = &src->part[i];
    if (src->n_part > 0)
        qsort(l->part, src->n_part, sizeof *l->part, by_place);
    empty_slot(a, l->slot);
    for (int32_t k = 0; k < a->n_place; k++)
        for (int32_t i = 0; i < a->place[k].p->n_site; i++)
            WEFT_TRY(load_site(dg, l, &a->place[k], i));
    a->has[l->slot - 1] = true;
    a->hash[l->slot - 1] = src->hash;
    return WEFT_OK;
}

weft_status adapters_load(weft_diag *dg, adapters *a, int32_t slot, const adapter_source *src)
{
    WEFT_TRY(check_slot(dg, a, slot));
    for (size_t i = 0; i < src->n_part; i++)
        WEFT_TRY(check_part(dg, a, src, &src->part[i]));
    loading l = {.a = a,
                 .slot = slot,
                 .n_part = src->n_part,
                 .part = mem_try_alloc((src->n_part + 1) * sizeof *l.part),
                 .buffer = mem_try_aligned(PLAN_ALIGN, part_bytes_max(a))};
    weft_status status =
        l.part && l.buffer ? load_sites(dg, &l, src)
                           : weft_fail(dg, W1110, WEFT_NOWHERE, "no memory to load %s", src->name);
    if (status != WEFT_OK && l.part && l.buffer)
        empty_slot(a, slot);
    mem_free(l.buffer);
    mem_free(l.part);
    return status;
}

/* ---- mixes ---- */

/* Add a slot to a mix, in its place; false: there is no room. */
static bool mix_add(kmix *m, int32_t slot, float scale)
{
    int at = 0;
    while (at < m->n && m->slot[at] < slot)
        at++;
    if (at < m->n && m->slot[at] == slot) {
        m->scale[at] += scale;
        return true;
    }
    if (m->n == K_MIX_MAX)
        return false;
    for (int i = m->n++; i > at; i--) {
        m->slot[i] = m->slot[i - 1];
        m->scale[i] = m->scale[i - 1];
    }
    m->slot[at] = slot;
    m->scale[at] = scale;
    return true;
}

weft_status adapters_attach(weft_diag *dg, adapters *a, int64_t seq, const adapter_use *use,
                            size_t n)
{
    kmix m = {0};
    for (size_t i = 0; i < n; i++) {
        if (use[i].slot < 1 || use[i].slot > a->n_slot)
            return weft_fail(dg, W1407, WEFT_NOWHERE,
                             "there is no adapter slot %" PRId32
                             "; they are numbered 1 to %" PRId64,
                             use[i].slot, a->n_slot);
        if (!a->has[use[i].slot - 1])
            return weft_fail(dg, W1407, WEFT_NOWHERE, "adapter slot %" PRId32 " is empty",
                             use[i].slot);
        if (!mix_add(&m, use[i].slot - 1, use[i].scale))
            return weft_fail(dg, W1406, WEFT_NOWHERE,
                             "a mix of more than the %d adapters that are possible", K_MIX_MAX);
    }
    for (int i = 0; i < m.n; i++) /* sums of them too */
        if (!isfinite(m.scale[i]))
            return weft_fail(dg, W1406, WEFT_NOWHERE,
                             "the scale of adapter slot %" PRId32 " is no number", m.slot[i] + 1);
    mix_set(a, seq, m);
    return WEFT_OK;
}

void adapters_share(adapters *a, int64_t from, int64_t to)
{
    mix_set(a, to, *mix_of_seq(a, from));
}

uint64_t adapters_key(const adapters *a, int64_t seq)
{
    const kmix *m = mix_of_seq(a, seq);
    uint64_t key = 0;
    for (int i = 0; i < m->n; i++) {
        uint32_t scale;
        memcpy(&scale, &m->scale[i], sizeof scale);
        /* Whatever order slots have: the same adapters may be loaded into others elsewhere. */
        uint64_t h = (a->hash[m->slot[i]] ^ scale * UINT64_C(0x9E3779B97F4A7C15)) *
                     UINT64_C(0xD6E8FEB86659FD93);
        key += (h ^ h >> 32) | 1;
    }
    return key;
}

int32_t adapters_mix(const adapters *a, int64_t seq, int32_t slot)
{
    if (slot > 0)
        return slot;
    return mix_of_seq(a, seq)->n > 0 ? (int32_t)(1 + a->n_slot + seq) : 0;
}

/* Have a place's list be of the slots that were seen. */
static void use_seen(const adapters *a, klora *l)
{
    int32_t *used = klora_used(l);
    int64_t n = 0;
    bool changed = false;
    for (int32_t slot = 0; slot < l->n_slot; slot++) {
        if (!a->seen[slot])
            continue;
        changed = changed || n >= l->n_used || used[n] != slot;
        used[n++] = slot;
    }
    if (changed || n != l->n_used) {
        l->n_used = n;
        l->version++;
    }
}

void adapters_take_rows(adapters *a, const kbatch *b)
{
    memset(a->seen, 0, (size_t)a->n_slot * sizeof *a->seen);
    for (int64_t row = 0; row < b->n_tok; row++) {
        const kmix *m = klora_mix(a->place[0].lora, kbatch_at(b, KBATCH_SLOT)[row]);
        for (int i = 0; i < m->n; i++)
            a->seen[m->slot[i]] = true;
    }
    for (int32_t i = 0; i < a->n_place; i++)
        use_seen(a, a->place[i].lora);
}
