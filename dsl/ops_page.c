/* ops_page.c - the tables as text: the reference page dsl/OPS.md and the answers of `weft ops`. */
#include "dsl/ops.h"

static void put_cell(strbuf *out, const char *text)
{
    for (const char *p = text; *p; p++)
        strbuf_put(out, *p == '|' ? STR("\\|") : (str){p, 1});
}

/* "order n r?" as a call has it. */
static void put_words(strbuf *out, const char *words)
{
    for (const char *p = words; *p; p++)
        strbuf_put(out, *p == ' ' ? STR(", ") : (str){p, 1});
}

static void page_ops(strbuf *out, int tier)
{
    strbuf_add(out, "| op | operands | gives | meaning |\n|---|---|---|---|\n");
    for (int i = 0; i < OP_COUNT; i++) {
        const op_row *op = op_row_of((op_code)i);
        if (op->tier != tier)
            continue;
        strbuf_add(out, "| `%s` | ", op->name);
        put_cell(out, op->operands);
        strbuf_add(out, " | ");
        put_cell(out, op->result);
        strbuf_add(out, " | ");
        put_cell(out, op->meaning);
        strbuf_add(out, "%s |\n", op->runs == RUNS_NONE ? " *(no kernel yet)*" : "");
    }
    strbuf_putc(out, '\n');
}

/* Behind the type: what a number may be, as far as it is not any. */
static const char *range_text(const attr_row *row)
{
    static const char *const text[] = {
        [RANGE_FROM_0] = " >= 0", [RANGE_ABOVE_0] = " > 0", [RANGE_COUNT] = " >= 1"};
    bool has = (size_t)row->range < sizeof text / sizeof *text && text[row->range];
    return has ? text[row->range] : "";
}

static void page_attrs(strbuf *out)
{
    strbuf_add(out, "| op | attribute | type | otherwise | meaning |\n|---|---|---|---|---|\n");
    static const char *const type[] = {"int", "float", "bool", "vector", "word"};
    for (int i = 0; i < OP_COUNT; i++) {
        int n;
        const attr_row *row = op_attrs((op_code)i, &n);
        for (int k = 0; k < n; k++)
            strbuf_add(out, "| `%s` | `%s` | %s%s%s%s | %s | %s |\n", op_row_of((op_code)i)->name,
                       row[k].name, type[row[k].type], range_text(&row[k]),
                       *row[k].words ? ": " : "", row[k].words,
                       row[k].otherwise ? row[k].otherwise : "required", row[k].meaning);
    }
    strbuf_putc(out, '\n');
}

static void page_rest(strbuf *out)
{
    int n;
    strbuf_add(out, "## Weight kinds\n\n| kind | stored as | call |\n|---|---|---|\n");
    const kind_row *kind = kind_rows(&n);
    for (int i = 0; i < n; i++)
        strbuf_add(out, "| `%s` | %s | %s |\n", kind[i].name, kind[i].stored, kind[i].meaning);
    strbuf_add(out, "\nModifiers of a weight line:\n\n| modifier | meaning |\n|---|---|\n");
    const modifier_row *modifier = modifier_rows(&n);
    for (int i = 0; i < n; i++)
        strbuf_add(out, "| `%s` | %s |\n", modifier[i].name, modifier[i].meaning);
    strbuf_add(out, "\n## Transforms\n\nOf a stored tensor, after its name.\n\n"
                    "| transform | arguments | meaning |\n|---|---|---|\n");
    const transform_row *transform = transform_rows(&n);
    for (int i = 0; i < n; i++) {
        strbuf_add(out, "| `%s` | ", transform[i].name);
        put_words(out, transform[i].arguments);
        strbuf_add(out, " | %s |\n", transform[i].meaning);
    }
    strbuf_add(out, "| `=> expr` | | a map on every element, which is called `it`; small float "
                    "tensors only |\n");
    strbuf_add(out, "\n## State cells\n\n| cell | arguments | holds | written by | read by "
                    "|\n|---|---|---|---|---|\n");
    const cell_row *cell = cell_rows(&n);
    for (int i = 0; i < n; i++) {
        strbuf_add(out, "| `%s` | ", cell[i].name);
        put_words(out, cell[i].arguments);
        strbuf_add(out, " | %s | %s | %s |\n", cell[i].holds, cell[i].writer, cell[i].reader);
    }
    strbuf_add(out, "\nAny cell may also say `coarsest = f16` (or bf16, q8, q4, f32), the coarsest "
                    "storage it bears, and\n"
                    "`pin = n`, to keep its first n tokens at the finest.\n");
    strbuf_add(out, "\n## Constant functions\n\n| function | meaning |\n|---|---|\n");
    const builtin_row *builtin = builtin_rows(&n);
    for (int i = 0; i < n; i++)
        strbuf_add(out, "| `%s` | %s |\n", builtin[i].name, builtin[i].meaning);
}

void ops_page(strbuf *out)
{
    strbuf_add(out, "# The operators of the language\n\n"
                    "Made from dsl/ops.def, dsl/attrs.def and dsl/kinds.def by `weft ops "
                    "--markdown`; a test keeps it\n"
                    "current. LANGUAGE.md says how they are used. T is the number of tokens in a "
                    "call, R the rows\n"
                    "asked for, S the sequences; `..` stands for any leading dimensions, `?` for "
                    "what may be left out.\n"
                    "An operator without a kernel is checked like the others, with a warning "
                    "(W0901); no plan can be made of it.\n\n");
    static const char *const title[] = {"## Every model needs these",
                                        "## Further families need these",
                                        "## Recurrent models and encoders need these"};
    for (int tier = 1; tier <= 3; tier++) {
        strbuf_add(out, "%s\n\n", title[tier - 1]);
        page_ops(out, tier);
    }
    strbuf_add(out, "## Attributes\n\nGiven by name: `attend(q, c, scale = head_dim ^ -0.5)`.\n\n");
    page_attrs(out);
    strbuf_add(out, "## In the library\n\nWritten in the language itself, in models/std.\n\n"
                    "| block | arguments | file | meaning |\n|---|---|---|---|\n");
    int n;
    const lib_row *lib = lib_rows(&n);
    for (int i = 0; i < n; i++)
        strbuf_add(out, "| `%s` | %s | std.%s | %s |\n", lib[i].name, lib[i].operands, lib[i].file,
                   lib[i].meaning);
    strbuf_putc(out, '\n');
    page_rest(out);
}

static void describe_op(const op_row *op, strbuf *out)
{
    static const char *const type[] = {"int", "float", "bool", "vector", "word"};
    int n;
    const attr_row *row = op_attrs(op->code, &n);
    strbuf_add(out, "%s(%s)\n  gives    %s\n  meaning  %s\n", op->name, op->operands, op->result,
               op->meaning);
    if (op->runs == RUNS_NONE)
        strbuf_add(out, "  runs     not yet: there is no kernel for it (W0901)\n");
    for (int i = 0; i < n; i++) {
        strbuf_add(out, "  %-11s %s%s%s%s, %s%s: %s\n", row[i].name, type[row[i].type],
                   range_text(&row[i]), *row[i].words ? " " : "", row[i].words,
                   row[i].otherwise ? "otherwise " : "required",
                   row[i].otherwise ? row[i].otherwise : "", row[i].meaning);
    }
}

bool ops_describe(str name, strbuf *out)
{
    const op_row *op = op_find(name);
    const kind_row *kind = kind_find(name);
    const builtin_row *builtin = builtin_find(name);
    const transform_row *transform = transform_find(name);
    const cell_row *cell = cell_find(name);
    const modifier_row *modifier = modifier_find(name);
    size_t before = out->n;
    int n;
    if (op)
        describe_op(op, out);
    const lib_row *lib = lib_rows(&n);
    for (int i = 0; i < n; i++)
        if (str_eqz(name, lib[i].name))
            strbuf_add(out, "%s(%s), in std.%s\n  meaning  %s\n", lib[i].name, lib[i].operands,
                       lib[i].file, lib[i].meaning);
    if (kind)
        strbuf_add(out, "weight kind %s\n  stored   %s\n  call     %s\n", kind->name, kind->stored,
                   kind->meaning);
    if (builtin)
        strbuf_add(out, "constant function %s\n  meaning  %s\n", builtin->name, builtin->meaning);
    if (transform) {
        strbuf_add(out, "transform %s(", transform->name);
        put_words(out, transform->arguments);
        strbuf_add(out, ")\n  meaning  %s\n", transform->meaning);
    }
    if (cell) {
        strbuf_add(out, "state cell %s(", cell->name);
        put_words(out, cell->arguments);
        strbuf_add(out, ")\n  holds    %s\n  written  by %s\n  read     by %s\n", cell->holds,
                   cell->writer, cell->reader);
    }
    if (modifier)
        strbuf_add(out, "modifier %s\n  meaning  %s\n", modifier->name, modifier->meaning);
    return out->n > before;
}
