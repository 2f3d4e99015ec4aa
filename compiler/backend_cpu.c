/* backend_cpu.c - the processor as a back end: kernels/kernels.def, as far as a level may use it. */
#include "compiler/backend.h"

#include "runtime/base/cpu.h"
#include <stdlib.h>

typedef struct {
    backend be;
    kvariant best; /* no kernel is of a later variant; of VARIANT_ref all are */
    bool
        foreign; /* to plan with, for a processor that has what the level needs; else for this one */
} cpu_backend;

static kvariant best_of(const backend *be)
{
    return ((const cpu_backend *)be)->best;
}

static klevel level_of(const backend *be)
{
    return ((const cpu_backend *)be)->foreign ? klevel_of(best_of(be)) : klevel_here(best_of(be));
}

/* ---- kernels ---- */

static void describe(const kernel_row *row, plan_kernel *out)
{
    *out = (plan_kernel){.name = row->symbol,
                         .op = row->op,
                         .type = row->type,
                         .layout = row->layout,
                         .act = row->act,
                         .unit = row->unit,
                         .reference = row->variant == VARIANT_ref,
                         .row = kernel_index(row)};
}

static bool cpu_select(const backend *be, const kernel_want *w, plan_kernel *out)
{
    const kernel_row *row =
        kernel_select_at(level_of(be), w->op, w->type, w->layout, w->rows, w->exact);
    if (row)
        describe(row, out);
    return row != NULL;
}

static bool cpu_find(const backend *be, const char *name, plan_kernel *out)
{
    const kernel_row *row = kernel_by_symbol(name);
    if (!row || row->variant > best_of(be) || !klevel_has(level_of(be), row->variant))
        return false;
    describe(row, out);
    return true;
}

static klayout cpu_layout(const backend *be, kop op, dtype type, bool exact)
{
    return kernel_layout_at(level_of(be), op, type, exact);
}

static bool cpu_reads(const backend *be, kop op, dtype type, klayout layout, bool exact)
{
    return kernel_reads_at(level_of(be), op, type, layout, exact);
}

static size_t cpu_scratch(const backend *be, const plan_kernel *k, const kargs *args)
{
    int n;
    (void)be;
    return kernel_scratch(&kernel_rows(&n)[k->row], args);
}

static int64_t cpu_units(const backend *be, const plan_kernel *k, const kargs *args)
{
    int n;
    (void)be;
    return kernel_units(&kernel_rows(&n)[k->row], args);
}

/* ---- levels ---- */

/* A barrier costs a few microseconds, an element of a norm or of quantising less than a nanosecond. */
enum { RECOMPUTE_ELEMS = 32768 };

#define LEVEL(level_, arch_, foreign_)                                                             \
    {{.name = "cpu",                                                                               \
      .arch = arch_,                                                                               \
      .level = #level_,                                                                            \
      .fuses = VARIANT_##level_ != VARIANT_ref,                                                    \
      .map_inputs = K_IN_MAX,                                                                      \
      .map_results = K_OUT_MAX,                                                                    \
      .map_registers = MAP_REGS_MAX,                                                               \
      .chain_steps = CHAIN_STEPS_MAX,                                                              \
      .chain_rows = INT64_MAX,                                                                     \
      .recompute_elems = {RECOMPUTE_ELEMS, RECOMPUTE_ELEMS},                                       \
      .tile_rows = K_ROWS_FEW,                                                                     \
      .tile_cols = {32, 64},                                                                       \
      .tile_bytes = 128 * 1024, /* of a thread's cache */                                          \
      .tile_bytes_max = INT64_MAX,                                                                 \
      .whole_cols = {INT64_MAX, INT64_MAX, INT64_MAX},                                             \
      .split_units = 16,                                                                           \
      .split_positions = 4096,                                                                     \
      .select = cpu_select,                                                                        \
      .find = cpu_find,                                                                            \
      .layout = cpu_layout,                                                                        \
      .reads = cpu_reads,                                                                          \
      .scratch = cpu_scratch,                                                                      \
      .units = cpu_units},                                                                         \
     VARIANT_##level_,                                                                             \
     foreign_},

/* For this processor, and for any of an architecture. */
static const cpu_backend levels[VARIANT_COUNT] = {
#define VARIANT(level, ...) LEVEL(level, KARCH_HERE, false)
#include "kernels/variants.def"
#undef VARIANT
};
static const cpu_backend foreign[][VARIANT_COUNT] = {
    {
#define VARIANT(level, ...) LEVEL(level, KARCH_X86_64, true)
#include "kernels/variants.def"
#undef VARIANT
    },
    {
#define VARIANT(level, ...) LEVEL(level, KARCH_AARCH64, true)
#include "kernels/variants.def"
#undef VARIANT
    },
};

const backend *backend_cpu_for(karch arch, const char *level)
{
    int v = backend_cpu_rank(level);
    bool known =
        arch < sizeof foreign / sizeof foreign[0] && v >= 0 && kvariant_on((kvariant)v, arch);
    return known ? &foreign[arch][v].be : NULL;
}

const backend *backend_reference(void)
{
    return &levels[VARIANT_ref].be;
}

const backend *backend_cpu_best(void)
{
    return &levels[kvariant_best()].be;
}

const backend *backend_cpu_rounding(void)
{
    kvariant v = kvariant_rounding();
    return v < VARIANT_COUNT ? &levels[v].be : NULL;
}

const backend *backend_cpu_at(int i)
{
    for (kvariant v = 0; v < VARIANT_COUNT; v++)
        if (kvariant_runs(v) && i-- == 0)
            return &levels[v].be;
    return NULL;
}

const backend *backend_cpu_find(const char *level)
{
    kvariant v = kvariant_find(level);
    return v < VARIANT_COUNT ? &levels[v].be : NULL;
}

int backend_cpu_rank(const char *level)
{
    for (int v = 0; v < VARIANT_COUNT; v++)
        if (strcmp(levels[v].be.level, level) == 0)
            return v;
    return -1;
}

void backend_cpu_lacks(const char *level, strbuf *out)
{
    int rank = backend_cpu_rank(level);
    uint32_t lacks = rank < 0 ? 0 : kvariant_needs((kvariant)rank) & ~cpu_features();
    for (int bit = 0; bit < CPU_FEATURE_COUNT; bit++)
        if (lacks >> bit & 1)
            strbuf_add(out, "%s%s", out->n ? ", " : "", cpu_feature_name(bit));
}

/* The best one that WEFT_CPU allows. */
static weft_status best_allowed(weft_diag *dg, const char *cap, const backend **out_be)
{
    *out_be = cap && *cap ? backend_cpu_find(cap) : backend_cpu_best();
    if (*out_be)
        return WEFT_OK;
    strbuf names = {0};
    for (int i = 0; backend_cpu_at(i); i++)
        strbuf_add(&names, "%s%s", i ? ", " : "", backend_cpu_at(i)->level);
    weft_status st = weft_fail(dg, W1602, WEFT_NOWHERE,
                               "WEFT_CPU names %s; this processor can run %s", cap, names.p);
    strbuf_free(&names);
    return st;
}

weft_status backend_cpu(weft_diag *dg, bool round_bf16, const backend **out_be)
{
    const char *cap = getenv("WEFT_CPU");
    const backend *be;
    WEFT_TRY(best_allowed(dg, cap, &be));
    if (round_bf16) {
        const backend *rounds = backend_cpu_rounding();
        if (!rounds)
            return weft_fail(dg, W1603, WEFT_NOWHERE,
                             "this processor lacks what kernels need that round to bf16");
        if (cap && *cap && best_of(be) < best_of(rounds))
            return weft_fail(dg, W1603, WEFT_NOWHERE,
                             "WEFT_CPU allows kernels up to %s; those that round to bf16 are %s",
                             cap, rounds->level);
        be = rounds;
    }
    *out_be = be;
    return WEFT_OK;
}
