/* sema.h - the checker's state and the calls between its files; private to dsl/.
 *
 *   sema.c          a file: imports, blocks, fragments, models
 *   sema_decl.c     params, let, require, include, state
 *   sema_weight.c   weights, groups; transform.c has the transforms
 *   sema_stmt.c     entries and blocks: statements, loops, branches
 *   sema_expr.c     expressions
 *   sema_name.c     names: looking them up, guessing what was meant
 *   sema_known.c    what is known where
 *   sema_text.c     values and types in messages
 *   sema_const.c    arithmetic and built-ins on constants
 *   sema_call.c     calls of ops, weights and blocks; attributes
 *   sema_cell.c     cells: which one is meant, its sizes, its newest version
 *   shape.c         the shape rule of every op
 *
 * With a checkpoint at hand `bind` is set, and what needs it is called through bind.h. */
#ifndef WEFT_DSL_SEMA_H
#define WEFT_DSL_SEMA_H

#include "dsl/elaborate.h"
#include "dsl/scope.h"
#include "runtime/base/vec.h"

typedef struct {
    const cond *truth;
    bool holds;
} assumption;

/* A division that a `let` or a `require a % b == 0` says comes out even. */
typedef struct {
    const poly *by, *quotient;
} exact_division;

enum { FRAME_LAYERS_MAX = 8 };

/* One entry or block being evaluated. */
typedef struct frame {
    struct frame *caller;
    const ast *body;             /* the block or entry */
    scope *names;                /* its values; up leads to what it sees */
    val layer[FRAME_LAYERS_MAX]; /* groups opened by repeat, innermost last */
    int n_layer;
    int n_lost;    /* loops around that go over nothing known: which group they open is not known */
    use *uses;     /* every value bound in it */
    bool alone;    /* a block that nobody called: what its arguments are shows in their use */
    size_t errors; /* reported before it was entered */
} frame;

typedef struct {
    sym *at;
    sym was;
} trail_step;

typedef struct binding binding;
typedef struct op_call op_call;

typedef struct sema {
    weft_diag *dg;
    arena *a;
    poly_pool *pp;
    cond_pool *cp;
    scope *base; /* T, R, S, pi, source, session */
    const poly *T, *R, *S;
    scope *names; /* where declarations go and names are looked up, outside entries */
    frame *top;   /* NULL outside entries and blocks */
    bool has_origin[ORIGIN_COUNT]; /* formats the model matches */
    bool in_fragment;
    const group *in_group;
    const cond *guard; /* of the weight lines being declared */
    const val *it;     /* inside `=>`: what was found */
    int64_t n_step;    /* expressions evaluated, against DSL_EXPAND_MAX */
    uint64_t n_scan;   /* things walked past: names, assumptions, bytes of messages */
    int depth, n_call;
    bool stopped;  /* a limit was passed and reported */
    size_t traced; /* errors when calls were last noted on one, and how many were */
    int n_trace;
    VEC(assumption) known;
    VEC(exact_division) exact;
    bool stating; /* inside a let: a division here must come out even in every model */
    VEC(trail_step) trail;
    VEC(weight *) weights; /* of the model at hand */
    VEC(cell *) cells;
    uint32_t stamp;
    scope *outputs; /* of the entry at hand */
    int n_output;
    dsl_file *file;
    struct module *modules; /* the file's imports, and theirs */
    int n_module;
    int n_unknown;      /* names that were not found */
    bool import_failed; /* a name that is not found may be in what was not read */
    bool binds;         /* the file is bound to a checkpoint next, which knows more keys */
    binding *bind;      /* to a checkpoint; NULL: parameters are symbols */
    int layer;          /* with a checkpoint: of the group loop at hand, -1 outside */
} sema;

/* Results of one call; expressions within expressions, where a call counts as SEMA_DEPTH_CALL. */
enum { SEMA_RESULTS_MAX = 16, SEMA_DEPTH_MAX = 2000, SEMA_DEPTH_CALL = 4 };

typedef struct {
    val v[SEMA_RESULTS_MAX];
    int n;
} results;

/* sema.c */
void sema_init(sema *s, weft_diag *dg, dsl_file *f);
void sema_deinit(sema *s);
weft_status sema_check(weft_diag *dg, dsl_file *f, bool binds) WEFT_MUST_USE;
bool sema_step(sema *s, weft_loc at, int64_t cost); /* false once a limit is passed */

/* sema_decl.c */
void sema_sections(sema *s, const ast *body, bool fragment);
void sema_require(sema *s, const ast *n);
/* A new name; W0202 if a let, parameter, weight, cell or other declaration has it already. */
sym *sema_declare(sema *s, scope *sc, str name, sym_class class, val v, weft_loc loc);
/* A value of the declared type, as far as the type goes. who names it for tests and symbols. */
val sema_typed(sema *s, const ast *type, const void *who, str name);
bool sema_fits(sema *s, const ast *type, val *v); /* also turns an int into a float */
/* What e gives an argument of this type (NULL: of any); a word is no name that is looked up. */
val sema_argument(sema *s, const ast *type, const ast *e);
/* W0412 if index is below 0, or as large as the limit, whatever the sizes are. */
bool sema_in_range(sema *s, const ast *decl, const poly *index, const poly *limit, weft_loc loc);
/* W0401, W0501: a format the model matches for which n has nothing. */
void sema_need_origins(sema *s, weft_code code, const ast *n, const bool *has, const char *what);
val sema_series_at(sema *s, const series *ser, const poly *index, weft_loc loc);

/* sema_weight.c */
/* With a checkpoint: W0413 if the size that e gives `who` is not at least 1, W1106 if it passes DSL_SIZE_MAX. */
bool sema_positive(sema *s, const ast *e, int64_t size, str who);
/* The same for the limit of an index, which may be 0 and is at most DSL_COUNT_MAX. */
bool sema_count(sema *s, const ast *index, int64_t n, str who);
void sema_weights(sema *s, const ast *list);
tensor_type weight_stored(sema *s, const weight *w, const poly *index);
tensor_type weight_bias(sema *s, const weight *w, const poly *index);
const weight *weight_choose(sema *s, const weight *w, const poly *index, weft_loc loc);

/* sema_stmt.c */
void sema_let(sema *s, const ast *n);
void sema_stmts(sema *s, const ast *list);
void sema_entry(sema *s, const ast *n);
bool sema_inline(sema *s, val block, const ast *site, const ast *args, results *out);
void sema_block_alone(sema *s, const ast *n, scope *home);

/* sema_expr.c */
val sema_eval(sema *s, const ast *e);
const poly *sema_int(sema *s, const ast *e, const char *what);   /* NULL: unknown or reported */
const cond *sema_truth(sema *s, const ast *e, const char *what); /* never NULL */
/* One of these words, an argument that is one, or a choice between them; false: reported. */
bool sema_word(sema *s, const ast *e, const char *words, str *out_word);
void sema_string(sema *s, const ast *n, val *out); /* checks {names}; out may be NULL */
val sema_constant(sema *s, val v); /* a stored vector, outside a graph, as a constant */
val sema_join(sema *s, const cond *c, val a, val b, weft_loc loc);
const char *sema_disagree(sema *s, val a, val b); /* how two arms' values differ; NULL: they fit */

/* sema_name.c */
sym *sema_lookup(sema *s, str name, val *out); /* NULL if there is none */
sym *sema_find(sema *s, str name, val *out);   /* the same, without counting as a use */
scope *group_names(const group *g, const poly *index);
void sema_role(sema *s, const ast *e, sym_role role); /* in a block on its own: e is used as that */
void sema_unknown(sema *s, const ast *name, weft_code code, const char *what);
void sema_unknown_member(sema *s, const ast *e, const scope *sc); /* e names what sc lacks */
void sema_report_conflict(sema *s, sym *y); /* if the arms of an if left one at this name */

/* sema_known.c */
int sema_known(sema *s, const cond *c);                 /* 1, 0, or -1 */
size_t sema_assume(sema *s, const cond *c, bool holds); /* returns the mark to forget to */
void sema_forget(sema *s, size_t mark);
const poly *sema_narrowed(sema *s, const poly *p);
void sema_state_exact(sema *s, const poly *a, const poly *b);     /* a / b has no remainder */
const poly *sema_quotient(sema *s, const poly *a, const poly *b); /* NULL: not known to be even */
const cond *val_is_none(sema *s, val v);
val val_settle(sema *s, val v); /* an optional value where its presence is already decided */
bool dims_equal(sema *s, const poly *a, const poly *b);
bool types_equal(sema *s, const tensor_type *a, const tensor_type *b);

/* sema_text.c */
const char *val_shown(sema *s, val v); /* the value itself, where it is short enough */
const char *val_text(sema *s, val v);
const char *number_text(sema *s, double x);
const char *poly_text(sema *s, const poly *p);
const char *type_text(sema *s, const tensor_type *t);
void sema_note_weight(sema *s, const weight *w); /* "w is declared (..) at line n"; NULL is fine */
void sema_note_name(sema *s, const ast *e,
                    weft_loc near);                 /* the same of a name, unless it is near */
const char *words_text(sema *s, const char *words); /* "a b" as "a, b" */

/* sema_const.c */
/* W0212 where a number is used that may be none. */
void sema_warn_none(sema *s, const ast *e, val v);
val const_binary(sema *s, const ast *e, val a, val b);
val const_unary(sema *s, const ast *e, val a);
val const_call(sema *s, const ast *e, const builtin_row *row, const val *arg, int n);
bool val_is_number(val v);
bool const_number(val v, double *out); /* a number that is known */
void sema_inexact(sema *s,
                  const ast *e); /* W0407, of a division that cannot be meant as one of sizes */
/* sizes: the reason of a NULL poly as a diagnostic */
val sema_size(sema *s, const ast *e, const poly *p);

/* sema_keys.c: W0415 for a key that nobody writes; of a call of key(), which the checkpoint has or not, and of a
 * parameter that has a default */
void keys_check_call(sema *s, weft_loc loc, str name, bool present);
void keys_check_param(sema *s, const ast *key);
bool param_is_context(const ast *n); /* does it read the context that the model was trained for? */

/* sema_cell.c */
cell *cell_operand(op_call *c, int i, cell_code a, cell_code b); /* NULL: reported */
const poly *cell_size(op_call *c, val v, int i);
void sema_note_cell(sema *s, const cell *cl);
cell_slot *cell_slot_of(sema *s, cell *cl, const poly *index);
void cell_forget(cell *cl); /* every slot: another entry begins */

/* sema_call.c */
struct op_call {
    sema *s;
    const op_row *op;
    const ast *site;          /* the call, or the operator's expression */
    const char *what;         /* the name to use in messages: the weight's, or the op's */
    const weight *w;          /* the weight called, or NULL */
    bool prec_f32;            /* it, or one that is an operand, was declared with prec(f32) */
    val arg[OP_OPERANDS_MAX]; /* VAL_NONE where an optional operand is absent */
    const ast *at[OP_OPERANDS_MAX];
    val attr[OP_ATTRS_MAX]; /* in the order of attrs.def; VAL_NONE where absent */
    const ast *attr_at[OP_ATTRS_MAX];
    results *out;
};

bool sema_call(sema *s, const ast *e, results *out);
val sema_op2(sema *s, const ast *e, op_code op, val a, val b);
val sema_op1(sema *s, const ast *e, op_code op, val a);
bool val_as_tensor(sema *s, val *v); /* weights and constants too; false: not a tensor */
const val *call_attr(const op_call *c, const char *name);

/* shape.c */
bool shape_apply(op_call *c); /* false: reported, and the results are unknown */

/* pair_order.c: the tags of types, and what each operation makes of them */
void pairs_drop(tensor_type *t);
void pairs_copy(tensor_type *t, const tensor_type *from);
void pairs_join(sema *s, tensor_type *t, const tensor_type *other); /* what both have */
/* Of a part of x's last axis, whose first part it is or not. */
void pairs_split(sema *s, const tensor_type *x, bool first, tensor_type *part);
/* The rest are false where something was reported. rope of x with its table; queries and the keys they meet. */
bool pairs_rope(op_call *c, const tensor_type *x, tensor_type *out);
bool pairs_agree(op_call *c, const tensor_type *q, const pair_order *order,
                 const poly *const *turned);

/* module.c */
/* A file and what it imports, each parsed once. */
struct dsl_file {
    arena *a; /* of the trees */
    const source *src;
    ast *tree;
    bool std_only; /* imports other than std are refused */
    arena *home;   /* of the texts of imports */
    struct import *imports;
};
scope *module_scope(sema *s, const ast *file, const source *src);          /* a file's own names */
scope *module_import(sema *s, const source *from, str path, weft_loc loc); /* NULL: reported */
const char *module_offering(sema *s,
                            str name); /* "std.rope", whose block or fragment it is, or NULL */

#endif
