/* test_ops.c - the tables of the language: whole, consistent, and as the reference page prints them. */
#include "dsl/builtin_library.h"
#include "dsl/dsl.h"
#include "dsl/ops.h"
#include "tests/base/suite.h"

static bool one_of(char c, const char *set)
{
    return c && strchr(set, c);
}

START_TEST(every_op_is_found_by_its_name)
{
    for (int i = 0; i < OP_COUNT; i++) {
        const op_row *op = op_row_of((op_code)i);
        ck_assert_int_eq(op->code, i);
        ck_assert_ptr_eq(op_find(str_of(op->name)), op);
        ck_assert_int_ge(op->tier, 1);
        ck_assert_int_le(op->tier, 3);
        ck_assert(*op->meaning && *op->result && *op->operands);
    }
    ck_assert_ptr_null(op_find(STR("nope")));
}
END_TEST

/* As many letters as operands; optional ones are marked; the arity follows. */
START_TEST(operands_and_kinds_go_together)
{
    for (int i = 0; i < OP_COUNT; i++) {
        const op_row *op = op_row_of((op_code)i);
        int n = 1, depth = 0, n_min, n_max, n_optional = 0;
        for (const char *p = op->operands; *p; p++) {
            depth += (*p == '[') - (*p == ']');
            n += *p == ',' && depth == 0;
        }
        ck_assert_msg((int)strlen(op->kinds) == n, "%s", op->name);
        ck_assert_int_le(n, OP_OPERANDS_MAX);
        for (const char *p = op->kinds; *p; p++)
            ck_assert_msg(one_of(*p, "tdwcnsrvx"), "%s", op->name);
        for (int k = 0; k < n; k++)
            n_optional += op_operand_optional(op, k);
        op_arity(op, &n_min, &n_max);
        ck_assert_int_eq(n_max, n);
        ck_assert_int_eq(n_min, n - n_optional);
    }
    int n_min, n_max;
    op_arity(op_find(STR("linear")), &n_min, &n_max);
    ck_assert_int_eq(n_min, 2);
    ck_assert_int_eq(n_max, 3);
    op_arity(op_find(STR("append")), &n_min, &n_max);
    ck_assert_int_eq(n_min, 2);
}
END_TEST

/* op_attrs gives a pointer and a count, so an op's rows must stand together. */
START_TEST(attributes_stand_together)
{
    int total = 0;
    for (int i = 0; i < OP_COUNT; i++) {
        int n;
        const attr_row *row = op_attrs((op_code)i, &n);
        ck_assert_int_le(n, OP_ATTRS_MAX);
        for (int k = 0; k < n; k++) {
            ck_assert_msg(row[k].op == (op_code)i, "%s", op_row_of((op_code)i)->name);
            ck_assert_msg((row[k].type == ATTR_WORD) == (*row[k].words != 0), "%s", row[k].name);
            ck_assert(*row[k].meaning);
            for (int j = 0; j < k; j++)
                ck_assert_str_ne(row[k].name, row[j].name);
        }
        total += n;
    }
    ck_assert_int_gt(total, 20);
}
END_TEST

/* Called with nothing, every op answers with a diagnostic: it has a rule, and no rule is reached with
 * operands missing. Called with unknown operands, none complains and none crashes. */
START_TEST(every_op_has_a_rule)
{
    for (int i = 0; i < OP_COUNT; i++) {
        const op_row *op = op_row_of((op_code)i);
        arena *a = arena_create();
        weft_diag *dg = diag_create();
        strbuf text = {0};
        int n_min, n_max;
        op_arity(op, &n_min, &n_max);
        strbuf_add(&text,
                   "weft 1\nblock none_given() { return %s() }\nblock unknown(u) { return %s(",
                   op->name, op->name);
        for (int k = 0; k < n_max; k++)
            strbuf_add(&text, k ? ", u" : "u");
        strbuf_add(&text, ") }\n");
        source *src = source_from_text(a, "t.weft", strbuf_view(&text));
        ck_assert_msg(dsl_check(dg, src, false) != WEFT_OK, "%s", op->name);
        strbuf_free(&text);
        diag_destroy(dg);
        arena_destroy(a);
    }
}
END_TEST

START_TEST(kinds_are_ops_with_operands_filled_in)
{
    int n;
    const kind_row *kind = kind_rows(&n);
    ck_assert_int_eq(n, KIND_COUNT);
    for (int i = 0; i < n; i++) {
        ck_assert_int_eq(kind[i].code, i);
        ck_assert_ptr_eq(kind_find(str_of(kind[i].name)), &kind[i]);
        if (!*kind[i].fill)
            continue;
        const op_row *op = op_find(str_of(kind[i].name));
        ck_assert_msg(op != NULL, "%s", kind[i].name);
        ck_assert_msg(strlen(kind[i].fill) == strlen(op->kinds), "%s", kind[i].name);
        for (size_t k = 0; kind[i].fill[k]; k++) {
            char f = kind[i].fill[k];
            ck_assert(one_of(f, "01wb"));
            if (f == 'w' || f == 'b')
                ck_assert_msg(op->kinds[k] == 'w', "%s", kind[i].name);
            if (f == 'b')
                ck_assert_msg(op_operand_optional(op, (int)k), "%s", kind[i].name);
        }
    }
}
END_TEST

START_TEST(the_other_tables_are_found_by_name)
{
    int n;
    const cell_row *cell = cell_rows(&n);
    ck_assert_int_eq(n, CELL_KIND_COUNT);
    for (int i = 0; i < n; i++)
        ck_assert(cell[i].code == (cell_code)i && cell_find(str_of(cell[i].name)) == &cell[i]);
    const transform_row *transform = transform_rows(&n);
    ck_assert_int_eq(n, TRANSFORM_COUNT);
    for (int i = 0; i < n; i++)
        ck_assert(transform[i].code == (transform_code)i &&
                  transform_find(str_of(transform[i].name)) == &transform[i]);
    const builtin_row *builtin = builtin_rows(&n);
    ck_assert_int_eq(n, BUILTIN_COUNT);
    for (int i = 0; i < n; i++) {
        ck_assert(builtin[i].code == (builtin_code)i &&
                  builtin_find(str_of(builtin[i].name)) == &builtin[i]);
        ck_assert_int_le(builtin[i].n_min, builtin[i].n_max);
    }
    const modifier_row *modifier = modifier_rows(&n);
    for (int i = 0; i < n; i++)
        ck_assert_ptr_eq(modifier_find(str_of(modifier[i].name)), &modifier[i]);
    ck_assert_int_eq(word_find("half interleaved", STR("half")), 0);
    ck_assert_int_eq(word_find("half interleaved", STR("hal")), -1);
    ck_assert_int_eq(word_find("half interleaved", STR("")), -1);
}
END_TEST

static const builtin_file *library(const char *file)
{
    char name[64];
    snprintf(name, sizeof name, "std/%s.weft", file);
    for (size_t i = 0; i < builtin_file_n; i++)
        if (strcmp(builtin_files[i].name, name) == 0)
            return &builtin_files[i];
    return NULL;
}

/* What the page says is in the library is there: a block or a fragment of that name. */
START_TEST(library_rows_name_what_exists)
{
    int n;
    const lib_row *lib = lib_rows(&n);
    for (int i = 0; i < n; i++) {
        arena *a = arena_create();
        weft_diag *dg = diag_create();
        const builtin_file *f = library(lib[i].file);
        ast *file;
        bool found = false;
        ck_assert_msg(f != NULL, "std/%s.weft", lib[i].file);
        source *src = source_from_text(a, f->name, (str){f->text, f->size});
        ck_assert_int_eq(dsl_parse(dg, a, src, &file), WEFT_OK);
        for (uint32_t k = FILE_ITEMS; k < file->n_kid; k++) {
            const ast *item = file->kid[k];
            found |= (item->kind == AST_BLOCK || item->kind == AST_FRAGMENT) &&
                     str_eqz(item->name, lib[i].name);
        }
        ck_assert_msg(found, "%s is not in std/%s.weft", lib[i].name, lib[i].file);
        ck_assert_msg(!op_find(str_of(lib[i].name)), "%s is an op too", lib[i].name);
        diag_destroy(dg);
        arena_destroy(a);
    }
}
END_TEST

START_TEST(the_page_is_current)
{
    arena *a = arena_create();
    weft_diag *dg = diag_create();
    source *src;
    strbuf page = {0};
    ops_page(&page);
    ck_assert_int_eq(source_open(dg, a, WEFT_SOURCE_DIR "/dsl/OPS.md", 1 << 20, &src), WEFT_OK);
    ck_assert_msg(str_eq(src->text, strbuf_view(&page)),
                  "dsl/OPS.md is not what the tables say: weft ops --markdown > dsl/OPS.md");
    strbuf_free(&page);
    diag_destroy(dg);
    arena_destroy(a);
}
END_TEST

START_TEST(single_entries)
{
    strbuf out = {0};
    ck_assert(ops_describe(STR("attend"), &out));
    ck_assert_ptr_nonnull(strstr(out.p, "softcap"));
    ck_assert(ops_describe(STR("kv_cache"), &out));
    ck_assert(ops_describe(STR("pairs"), &out));
    ck_assert(ops_describe(STR("iota"), &out));
    ck_assert(ops_describe(STR("bias"), &out));
    ck_assert(ops_describe(STR("swiglu"), &out));
    ck_assert(!ops_describe(STR("nope"), &out));
    strbuf_free(&out);
}
END_TEST

SUITE_MAIN("ops", every_op_is_found_by_its_name, operands_and_kinds_go_together,
           attributes_stand_together, every_op_has_a_rule, kinds_are_ops_with_operands_filled_in,
           the_other_tables_are_found_by_name, library_rows_name_what_exists, the_page_is_current,
           single_entries)
