/* session_impl.h - the inside of a session, for the files session*.c that need it. */
#ifndef WEFT_RUNTIME_EXEC_SESSION_IMPL_H
#define WEFT_RUNTIME_EXEC_SESSION_IMPL_H

#include "runtime/exec/session.h"

/* What runs on one device, from its beginning to its end. Most sessions have one such part. */
typedef struct {
    const plan *p; /* of it; all of the model where it is the only one */
    device *dev;
    weights *own; /* NULL when the caller's are used */
    const weights *w;
    void *cells; /* the memory of its cells, of the device */
    size_t cell_bytes;
    kcell *view; /* those cells, as its plan counts them; NULL: as the state does */
    exec *e;
    int32_t n_in;
    const plan_input *in;
    device_watch *watch; /* NULL: nobody looks at its values */
    void *watch_ctx;
} session_part;

typedef struct session_calls session_calls;

struct session {
    const plan *p;
    const weight_source *src; /* NULL: the weights are the caller's */
    int32_t n_part;
    session_part part[PLAN_PARTS_MAX];
    device *dev; /* that outputs are copied from; of several, the one whose memory is its own */
    state *st;
    prefix_cache *prefixes; /* NULL: none are kept */
    batch *b;
    adapters *lora;          /* NULL: the plan has no slots */
    const code_maker *maker; /* NULL: none */
    const plan_code *code;
    void *code_own;
    float *outputs; /* copies of them, where the host cannot read the device's memory; else NULL */
    float *handed;  /* behind them: what is on its way from part to part */
    session_calls *calls; /* whose tokens the device chooses; NULL: the host does */
    bool has_run;
    int64_t rows[ROWS_FIXED]; /* of the last successful call, by plan_rows */
};

/* ---- session.c ---- */

/* A session that has its tables and nothing big yet; and the end of one, whatever it has. */
weft_status session_open_tables(weft_diag *dg, const plan *p, const session_options *opt,
                                session *out_s) WEFT_MUST_USE;
void session_close_parts(session *s);
/* How the weights of its parts are loaded, and a part's plan, before there are weights, cells and slots. */
weights_options session_weights_how(const session_options *opt);
device_load session_load_how(const session *s, const session_part *x, const session_options *opt);
/* What copies of all outputs take, and the largest value on its way from part to part. */
size_t session_output_bytes(const session *s);
size_t session_handed_bytes(const session *s);

/* ---- session_memory.c ---- */

/* W0902 for what cannot fit. Should the interleaved weights of a part come to lie in memory after all, interleaved_max is the room for
 * them: [parts]. */
weft_status session_check_need(weft_diag *dg, const session *s, const weight_source *src,
                               const session_options *opt, size_t *interleaved_max) WEFT_MUST_USE;

/* ---- session_choose.c ---- */

/* Where its device chooses, and there is something to choose from; else NULL. */
session_calls *session_calls_create(const session *s);
void session_calls_destroy(session_calls *c); /* NULL is fine */
size_t session_calls_bytes(const session_calls *c);

#endif
