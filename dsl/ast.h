/* ast.h - the syntax tree of one .weft file.
 *
 * One struct serves every kind; ast.def names the kinds and their slots. Nodes live in the arena given
 * to the parser, are never changed once the parse is over, and carry the byte range they came from. */
#ifndef WEFT_DSL_AST_H
#define WEFT_DSL_AST_H

#include "runtime/base/source.h"

typedef enum {
#define AST(kind, printed, slots) AST_##kind,
#include "dsl/ast.def"
#undef AST
    AST_KIND_COUNT
} ast_kind;

/* Slots, in the order of ast.def. */
enum { FILE_VERSION, FILE_ITEMS };
enum { IMPORT_PATH, IMPORT_ALIAS };
enum { FRAGMENT_FORMALS, FRAGMENT_BODY };
enum { BLOCK_FORMALS, BLOCK_BODY, BLOCK_RESULTS };
enum { MODEL_TITLE, MODEL_BODY };
enum { FORMAL_TYPE, FORMAL_DEFAULT };
enum { TYPE_DIMS };
enum { MATCH_NAMES, MATCH_CONDITION };
enum { INCLUDE_PATH, INCLUDE_ARGUMENTS };
enum { LET_VALUE };
enum { REQUIRE_CONDITION, REQUIRE_MESSAGE };
enum { PARAM_INDEX, PARAM_TYPE, PARAM_BINDINGS, PARAM_DEFAULT };
enum { INDEX_LIMIT };
enum { TRANSFORM_ARGUMENTS };
enum { MAP_VALUE };
enum {
    WEIGHT_KIND,
    WEIGHT_INDEX,
    WEIGHT_SHAPE,
    WEIGHT_MODIFIERS,
    WEIGHT_BINDINGS,
    WEIGHT_WHEN,
    WEIGHT_FALLBACK
};
enum { ARROW_IN, ARROW_OUT };
enum { MODIFIER_ARGUMENTS };
enum { GROUP_INDEX, GROUP_PREFIXES, GROUP_BODY };
enum { CELL_INDEX, CELL_KIND, CELL_ARGUMENTS, CELL_WHEN };
enum { ENTRY_FORMALS, ENTRY_BODY };
enum { ASSIGN_TARGETS, ASSIGN_VALUE };
enum { TARGET_TYPE };
enum { REPEAT_OVER, REPEAT_BODY };
enum { RANGE_FROM, RANGE_TO };
enum { IF_CONDITION, IF_THEN, IF_ELSE };
enum { OUTPUT_INDICES, OUTPUT_VALUE };
enum { UNARY_OPERAND };
enum { BINARY_LEFT, BINARY_RIGHT };
enum { CHOICE_CONDITION, CHOICE_THEN, CHOICE_ELSE };
enum { CALL_CALLEE, CALL_ARGUMENTS };
enum { SUBSCRIPT_BASE, SUBSCRIPT_INDICES };
enum { MEMBER_BASE };
enum { ARG_VALUE };

typedef struct ast ast;
struct ast {
    ast_kind kind;
    uint16_t height; /* 1 for a leaf; bounded by AST_HEIGHT_MAX */
    bool flag;       /* `?` after a type, weight or modifier; the value of a bool */
    uint32_t n_kid, cap_kid;
    weft_loc loc;      /* everything the node covers */
    weft_loc name_loc; /* the token behind `name` */
    str name;          /* what is declared or named; the spelling of a number or operator; a
                           string's inside as written, escapes and all */
    union {
        int64_t integer; /* AST_INT */
        double number;   /* AST_FLOAT */
    };
    ast **kid; /* NULL where an optional slot is empty */
};

enum { AST_HEIGHT_MAX = 1024, AST_BRACKETS_MAX = 256 };

/* Is a the same program as b? Places and the spelling of white space do not count. */
bool ast_equal(const ast *a, const ast *b);
const char *ast_kind_name(ast_kind kind);
str ast_spelt(const ast *n); /* as it stands in its source */

/* An indented listing, one node per line; and the same as JSON with line and column of each node. */
void ast_print(const ast *root, strbuf *out);
void ast_json(const ast *root, strbuf *out);

#endif
