/* flags.h - the one parser of command-line flags, for every verb.
 *
 * A verb lists its flags in a table; each row names a field of the verb's options struct, so parsing
 * fills that struct and the help page is printed from the same rows. `--name value`, `--name=value`
 * and `-x value` all work. A word with one dash is one flag (`-ub`, `-ngl`), never a bundle of
 * letters. `--` ends the flags, a lone `-` is an operand, and a value may begin with a dash unless it
 * is itself a flag of the verb. A flag may stand once, a list as often as wanted.
 *
 * Values borrow from argv. flags_deinit frees the lists. */
#ifndef WEFT_RUNTIME_CLI_FLAGS_H
#define WEFT_RUNTIME_CLI_FLAGS_H

#include "runtime/base/diag.h"

typedef struct {
    const char **at;
    size_t n, cap;
} flag_list;

/* The kind says how a value is written; the comment is the type of the field it fills. */
typedef enum {
    FLAG_BOOL,   /* bool: --name; --no-name too where the row can be negated */
    FLAG_INT,    /* int64_t: decimal, from lo to hi */
    FLAG_SIZE,   /* int64_t: bytes or a count, with an optional k, M, G or T (powers of 1024) */
    FLAG_FLOAT,  /* double: from lo to hi */
    FLAG_STR,    /* const char *: anything; NULL when not given and without default */
    FLAG_CHOICE, /* int: index of the word in choices */
    FLAG_LIST,   /* flag_list: as often as given */
} flag_kind;

typedef struct {
    flag_kind kind;
    bool negatable;
    size_t offset;       /* of the field in the options struct */
    const char *name;    /* without the dashes; NULL ends a table */
    const char *brief;   /* without the dash, or NULL */
    const char *value;   /* what the value is called in help: "FILE", or NULL for a bool */
    const char *initial; /* the default as the user would write it, or NULL for zero */
    const char *choices; /* "auto|always|never" */
    double lo, hi;       /* inclusive; exact for integers below 2^53 */
    const char *help;    /* one line */
} flag;

/* clang-format off */
/* The field's place, and a compile-time check that its type is the one its kind fills. */
#define FLAG_AT(T, field, type)                                                                    \
    (offsetof(T, field) + 0 * sizeof(_Generic(((T *)0)->field, type: 1)))

/* Rows: T is the options struct, f the field. A NULL default shows none in help and leaves zero. */
#define FLAG_ROW_BOOL(T, f, name, brief, help)                                                     \
    {FLAG_BOOL, false, FLAG_AT(T, f, bool), name, brief, NULL, NULL, NULL, 0, 0, help}
#define FLAG_ROW_SWITCH(T, f, name, brief, initial, help)                                          \
    {FLAG_BOOL, true, FLAG_AT(T, f, bool), name, brief, NULL, initial, NULL, 0, 0, help}
#define FLAG_ROW_INT(T, f, name, brief, value, initial, lo, hi, help)                              \
    {FLAG_INT, false, FLAG_AT(T, f, int64_t), name, brief, value, initial, NULL, lo, hi, help}
#define FLAG_ROW_SIZE(T, f, name, brief, value, initial, lo, hi, help)                             \
    {FLAG_SIZE, false, FLAG_AT(T, f, int64_t), name, brief, value, initial, NULL, lo, hi, help}
#define FLAG_ROW_FLOAT(T, f, name, brief, value, initial, lo, hi, help)                            \
    {FLAG_FLOAT, false, FLAG_AT(T, f, double), name, brief, value, initial, NULL, lo, hi, help}
#define FLAG_ROW_STR(T, f, name, brief, value, initial, help)                                      \
    {FLAG_STR, false, FLAG_AT(T, f, const char *), name, brief, value, initial, NULL, 0, 0, help}
#define FLAG_ROW_CHOICE(T, f, name, brief, choices, initial, help)                                 \
    {FLAG_CHOICE, false, FLAG_AT(T, f, int), name, brief, choices, initial, choices, 0, 0, help}
#define FLAG_ROW_LIST(T, f, name, brief, value, help)                                              \
    {FLAG_LIST, false, FLAG_AT(T, f, flag_list), name, brief, value, NULL, NULL, 0, 0, help}
#define FLAG_ROW_END(T)                                                                            \
    {.offset = sizeof(T)}
/* clang-format on */

/* One table and the struct its rows fill. */
typedef struct {
    const flag *rows;
    void *options;
} flag_set;

size_t flags_bytes(const flag *rows); /* the size of the options struct, from the table's end row */

/* Give every field its default. The tables must be right: a bad default is a bug. */
void flags_init(const flag_set *sets, size_t set_n);
void flags_deinit(const flag_set *sets, size_t set_n); /* lists are empty afterwards */

/* Parse argv[0..argc). Operands move to the front of argv, in order; their count is *out_operand_n.
 * Stops at the first mistake (W1902 unknown flag, W1903 bad value). verb is for the messages. */
weft_status flags_parse(weft_diag *dg, const char *verb, const flag_set *sets, size_t set_n,
                        int argc, char **argv, int *out_operand_n) WEFT_MUST_USE;

/* The help lines of a table, aligned, at most `columns` wide. */
void flags_print(const flag *rows, size_t columns, strbuf *out);

/* Text with words wrapped at `columns`; lines after the first start `indent` blanks in. `column` is
 * where the text begins on its first line. */
void flags_wrap(const char *text, size_t column, size_t indent, size_t columns, strbuf *out);

/* The names in n texts, with commas between them; empty ones are left out. In a. */
const char **names_split(arena *a, const char *const *texts, size_t n, int *out_n);

#endif
