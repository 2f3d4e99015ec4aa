/* part_words.c - what a part is called. */
#include "runtime/cli/part_words.h"

#include "runtime/engine/plan_sum.h"

void part_words(const plan_parts *plans, int32_t i, strbuf *out)
{
    const plan *p = plans->part[i].p;
    int32_t first, n = plan_layers_of(p, &first);
    strbuf_add(out, "%s, ", p->backend);
    if (n == 0)
        strbuf_add(out, "%s the layers", i == 0 ? "before" : "behind");
    else if (n == 1)
        strbuf_add(out, "layer %d", (int)first);
    else
        strbuf_add(out, "layers %d to %d", (int)first, (int)(first + n - 1));
}

void part_levels(const plan_parts *plans, strbuf *out)
{
    for (int32_t i = 0; i < plans->n_part; i++) {
        bool before = false;
        for (int32_t k = 0; k < i && !before; k++)
            before = strcmp(plans->part[k].p->level, plans->part[i].p->level) == 0;
        if (!before)
            strbuf_add(out, "%s%s", i > 0 ? " and " : "", plans->part[i].p->level);
    }
}

void part_keys(json_writer *w, const plan *p)
{
    int32_t first, n = plan_layers_of(p, &first);
    json_key_text(w, "device", p->backend);
    json_key_text(w, "variant", p->level);
    json_key_int(w, "first_layer", first);
    json_key_int(w, "layers", n);
}
