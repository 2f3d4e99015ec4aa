/* fuzz_policy.c - any bytes as the text of a KV policy. What is accepted has tiers in order, and printed and read again it
 * is the same. */
#include "runtime/kv/policy.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(bool holds)
{
    if (!holds)
        abort();
}

static void check(weft_diag *dg, const kpolicy *p)
{
    char text[KPOLICY_TEXT_MAX];
    kpolicy again;
    expect(p->n_tier >= 1 && p->n_tier <= K_TIERS_MAX);
    for (int32_t i = 0; i < p->n_tier; i++) {
        int32_t last = p->tier[i].last;
        expect((last == KPOLICY_REST) == (i + 1 == p->n_tier));
        expect(last == KPOLICY_REST || (last >= 0 && last <= POLICY_LAST_MAX));
        expect(i == 0 || last == KPOLICY_REST || last > p->tier[i - 1].last);
    }
    expect(policy_parse(dg, "again", str_of(kpolicy_text(p, text)), &again) == WEFT_OK);
    expect(again.n_tier == p->n_tier && kpolicy_same_forms(&again, p));
    for (int32_t i = 0; i < p->n_tier; i++)
        expect(again.tier[i].last == p->tier[i].last);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    weft_diag *dg = diag_create();
    kpolicy p;
    if (policy_parse(dg, "--kv", (str){(const char *)data, size}, &p) == WEFT_OK)
        check(dg, &p);
    else
        expect(diag_count(dg) > 0);
    diag_destroy(dg);
    return 0;
}
