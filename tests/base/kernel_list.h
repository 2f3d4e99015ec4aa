/* kernel_list.h - the kernels of a plan that a test writes down by hand. */
#ifndef WEFT_TESTS_BASE_KERNEL_LIST_H
#define WEFT_TESTS_BASE_KERNEL_LIST_H

#include "compiler/backend.h"
#include "tests/base/suite.h"

typedef struct {
    plan_kernel at[16];
    int32_t n;
} kernel_list;

/* The number of a kernel by its name, added when it is not there yet. */
static inline int32_t kernel_list_add(kernel_list *l, const char *name)
{
    const backend *be = backend_cpu_best(), *ref = backend_reference();
    for (int32_t i = 0; i < l->n; i++)
        if (strcmp(l->at[i].name, name) == 0)
            return i;
    ck_assert_int_lt(l->n, (int32_t)COUNT_OF(l->at));
    ck_assert(be->find(be, name, &l->at[l->n]) || ref->find(ref, name, &l->at[l->n]));
    return l->n++;
}

/* The same for the kernel that a back end has for an op on f32. */
static inline int32_t kernel_list_select(kernel_list *l, const backend *be, kop op, int64_t rows)
{
    plan_kernel k;
    ck_assert(be->select(be, &(kernel_want){.op = op, .type = DT_F32, .rows = rows}, &k));
    return kernel_list_add(l, k.name);
}

#endif
