/* test_elf_code.c - the suite of runtime/jit/elf_code.c and elf_reloc.c, on an object that the C compiler made. */
#include "runtime/jit/elf_code.h"

#include "tests/base/suite.h"
#include <elf.h>
#include <stdlib.h>

typedef struct {
    int64_t n;
    int64_t (*const *fn)(int64_t);
} table;

static int64_t add_hundred(int64_t x)
{
    return x + 100;
}

static const int64_t thousand = 1000;

static const code_symbol given[] = {{"outside", (const void *)add_hundred},
                                    {"outside_data", &thousand}};

/* The object; the caller frees it. */
static char *object(size_t *out_n)
{
    FILE *f = fopen(WEFT_TEST_OBJECT, "rb");
    ck_assert_ptr_nonnull(f);
    char *data = malloc(1 << 20);
    *out_n = fread(data, 1, 1 << 20, f);
    ck_assert_uint_gt(*out_n, sizeof(Elf64_Ehdr));
    fclose(f);
    return data;
}

START_TEST(is_linked_and_runs)
{
    weft_diag *dg = diag_create();
    elf_code *c = NULL;
    size_t n;
    char *data = object(&n);
    ck_assert_int_eq(elf_code_load(dg, "it", data, n, given, 2, &c), WEFT_OK);
    memset(data, 0, n);
    free(data);
    const table *t = elf_code_find(c, "code");
    ck_assert_ptr_nonnull(t);
    ck_assert_int_eq(t->n, 3);
    ck_assert_int_eq(t->fn[0](2), 2 * 7 + 100 + 1000);
    ck_assert_int_eq(t->fn[1](3), 2 * 11 + 100 + 1000 + 1);
    ck_assert_ptr_eq((const void *)t->fn[2], (const void *)add_hundred);
    ck_assert_ptr_eq((const void *)t->fn[0], elf_code_find(c, "inside"));
    ck_assert_ptr_null(elf_code_find(c, "twice")); /* its own */
    ck_assert_ptr_null(elf_code_find(c, "outside"));
    ck_assert_uint_gt(elf_code_bytes(c), 0);
    elf_code_unload(c);
    elf_code_unload(NULL);
    diag_destroy(dg);
}
END_TEST

START_TEST(what_it_needs_is_given_or_named)
{
    weft_diag *dg = diag_create();
    elf_code *c = NULL;
    size_t n;
    char *data = object(&n);
    ck_assert_int_eq(elf_code_load(dg, "it", data, n, given, 1, &c), WEFT_ERR_PLAN);
    ck_assert_ptr_null(c);
    expect_one(dg, W1509, "it needs outside_data, which is not there");
    free(data);
    diag_destroy(dg);
}
END_TEST

static void refused(char *data, size_t n, const char *why)
{
    weft_diag *dg = diag_create();
    elf_code *c = NULL;
    ck_assert_int_eq(elf_code_load(dg, "it", data, n, given, 2, &c), WEFT_ERR_PLAN);
    expect_one(dg, W1509, why);
    diag_destroy(dg);
}

START_TEST(other_files_are_refused)
{
    size_t n;
    char *data = object(&n);
    Elf64_Ehdr *h = (Elf64_Ehdr *)(void *)data;
    refused(data, 0, "not an object file");
    data[0] ^= 1;
    refused(data, n, "not an object file");
    data[0] ^= 1;
    h->e_type = ET_DYN;
    refused(data, n, "not an object file");
    h->e_type = ET_REL;
    h->e_machine ^= 1;
    refused(data, n, "for another architecture");
    h->e_machine ^= 1;
    h->e_shnum = 0;
    refused(data, n, "without sections");
    free(data);
}
END_TEST

/* Whatever is cut or changed: it is refused, or loaded and let go of. */
static void survives(const char *data, size_t n)
{
    weft_diag *dg = diag_create();
    elf_code *c = NULL;
    char *copy = malloc(n ? n : 1); /* so that a sanitizer sees its end */
    memcpy(copy, data, n);
    weft_status st = elf_code_load(dg, "it", copy, n, given, 2, &c);
    ck_assert(st == WEFT_OK || (diag_count(dg) == 1 && !c));
    elf_code_unload(c);
    free(copy);
    diag_destroy(dg);
}

START_TEST(any_damage_is_survived)
{
    size_t n;
    char *data = object(&n);
    for (size_t cut = 0; cut < n; cut++)
        survives(data, cut);
    for (size_t at = 0; at < n; at++) {
        static const unsigned char flips[] = {0x01, 0x80, 0xff};
        for (size_t k = 0; k < sizeof flips; k++) {
            data[at] = (char)(data[at] ^ flips[k]);
            survives(data, n);
            data[at] = (char)(data[at] ^ flips[k]);
        }
    }
    free(data);
}
END_TEST

SUITE_MAIN("elf_code", is_linked_and_runs, what_it_needs_is_given_or_named, other_files_are_refused,
           any_damage_is_survived)
