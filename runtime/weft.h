/* weft.h - the public interface of Weft: open a model, open a session, evaluate rows of tokens.
 *
 *     weft_diag *dg = weft_diag_create();
 *     weft_model *m;
 *     weft_session *s;
 *     if (weft_model_open(dg, "model.gguf", NULL, &m) != WEFT_OK ||
 *         weft_session_create(dg, m, &(weft_session_options){.size = sizeof(weft_session_options),
 *                                                             .context = 128}, &s) != WEFT_OK) {
 *         fputs(weft_diag_text(dg), stderr);
 *         ...
 *     }
 *     weft_row row = {.token = 1, .pos = 0, .seq = 0, .want = true};
 *     weft_eval(dg, s, &row, 1);
 *     weft_view logits;
 *     weft_output(dg, s, "logits", -1, &logits);
 *
 * Every call that can fail returns a weft_status and says why in the weft_diag; its out_ arguments are
 * untouched then. Objects belong to whoever created them and are destroyed in the opposite order. There
 * is no global state but a pool of worker threads: two users in one process do not meet. One object is
 * used by one thread at a time; a model may serve sessions on several threads. Files may be anybody's:
 * what is wrong with them is an error, never a crash.
 *
 * A struct of options begins with its size, sizeof of itself, so that a program compiled with an older weft.h
 * works with a newer library: what its struct lacks is 0, and 0 always means the usual. NULL: all of it. */
#ifndef WEFT_H
#define WEFT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define WEFT_API __attribute__((visibility("default")))
#else
#define WEFT_API
#endif

#ifndef WEFT_RUNTIME_BASE_STATUS_H /* Weft's own sources have it from there; a test keeps the two alike */
typedef enum {
    WEFT_OK = 0,
    WEFT_ERR_SYNTAX,    /* the text is not well formed */
    WEFT_ERR_NAME,      /* a name, attribute or call is wrong */
    WEFT_ERR_SHAPE,     /* shapes do not fit */
    WEFT_ERR_PARAM,     /* a hyper-parameter is missing or wrong */
    WEFT_ERR_WEIGHT,    /* a weight is missing or does not fit */
    WEFT_ERR_STATE,     /* a state cell is misused */
    WEFT_ERR_ADAPTER,   /* an adapter does not fit */
    WEFT_ERR_MATCH,     /* no model, import or fragment fits */
    WEFT_ERR_TARGET,    /* this machine or back end cannot do it */
    WEFT_ERR_FILE,      /* a file cannot be read or written */
    WEFT_ERR_FORMAT,    /* a file is damaged or of an unknown form */
    WEFT_ERR_LIMIT,     /* a stated limit was passed */
    WEFT_ERR_FULL,      /* a fixed-size store is full */
    WEFT_ERR_TOKENIZER, /* a tokenizer is damaged or unknown */
    WEFT_ERR_TEMPLATE,  /* a chat template failed */
    WEFT_ERR_PLAN,      /* a plan or cache does not fit */
    WEFT_ERR_DEVICE,    /* a device failed */
    WEFT_ERR_USAGE,     /* a mistake on the command line, or in a call of this interface */
    WEFT_ERR_CANCELLED, /* the caller asked to stop */
} weft_status;
#endif

typedef struct weft_diag weft_diag;
typedef struct weft_model weft_model;
typedef struct weft_session weft_session;

WEFT_API const char *weft_version(void); /* "0.1.0" */
WEFT_API const char *
weft_status_meaning(weft_status status); /* "a file cannot be read or written" */
WEFT_API void weft_free(void *p); /* for what a call hands out as the caller's; NULL is fine */

/* ---- messages ---- */

WEFT_API weft_diag *weft_diag_create(void);
WEFT_API void weft_diag_destroy(weft_diag *dg); /* NULL is fine */
/* Everything recorded so far, as `weft` prints it; valid until dg is used again. */
WEFT_API const char *weft_diag_text(weft_diag *dg);
WEFT_API void weft_diag_clear(weft_diag *dg);

/* ---- models ---- */

typedef struct {
    size_t size; /* sizeof(weft_model_options) */
    const char
        *arch;    /* a .weft file to read the checkpoint with; NULL: its own, or the library's */
    bool no_mmap; /* read the files into memory instead of mapping them */
    bool mlock;   /* keep them in memory */
    bool guard;   /* survive a file that shrinks while it is mapped: installs a SIGBUS handler */
} weft_model_options;

/* A GGUF file, any part of a split one, a Hugging Face folder, or a file in it. options may be NULL.
 * The model is bound and proven here; its weights are read when they are used. */
WEFT_API weft_status weft_model_open(weft_diag *dg, const char *path,
                                     const weft_model_options *options, weft_model **out_model);
/* A GGUF file in one part, from an open descriptor, which may be closed afterwards, or from memory,
 * which must outlive the model; name is for messages. */
WEFT_API weft_status weft_model_open_fd(weft_diag *dg, int fd, const char *name,
                                        const weft_model_options *options, weft_model **out_model);
WEFT_API weft_status weft_model_open_memory(weft_diag *dg, const void *data, size_t bytes,
                                            const char *name, const weft_model_options *options,
                                            weft_model **out_model);
WEFT_API void weft_model_close(weft_model *m); /* NULL is fine; no session may be left */
/* With options.guard: W1012 if a file became shorter while it was in use, so that results since then may
 * rest on zeros. Ask when the work is done. */
WEFT_API weft_status weft_model_check(weft_diag *dg, const weft_model *m);

WEFT_API const char *weft_model_name(const weft_model *m); /* of the .weft model: "llama" */
/* A setting of the model file by its name there: vocab, ctx, layers, d, heads, ... False if it has none
 * of that name or kind. */
WEFT_API bool weft_model_int(const weft_model *m, const char *name, int64_t *out_value);
WEFT_API bool weft_model_float(const weft_model *m, const char *name, double *out_value);
WEFT_API uint64_t weft_model_bytes(const weft_model *m);       /* of its tensors */
WEFT_API uint64_t weft_model_token_bytes(const weft_model *m); /* state that one token takes */

/* ---- sessions ---- */

/* How a session computes: by a compiled plan with the machine's best kernels (WEFT_CPU names lesser ones),
 * or as the reference does, one operator after the other in plain loops. */
typedef enum { WEFT_EXEC_PLAN, WEFT_EXEC_REF } weft_exec;

/* What keys and values are stored as. AUTO: f16 for a plan, f32 for the reference. */
typedef enum { WEFT_KV_AUTO, WEFT_KV_F32, WEFT_KV_F16, WEFT_KV_BF16 } weft_kv;

typedef struct {
    size_t size;                /* sizeof(weft_session_options) */
    int64_t context;            /* tokens a sequence may hold; 0: what the model was trained for */
    int64_t sequences;          /* that can be kept at once; 0: 1 */
    int64_t batch;              /* rows in one call at most; 0: the smaller of context and 512 */
    int64_t threads;            /* 0: 1 */
    const char *const *outputs; /* names: "logits", "hidden", "resid" for all, "resid.3" for one */
    int n_output;               /* 0: logits */
    int64_t wants;              /* rows of a call at most that outputs [R] are wanted of; 0: all */
    weft_exec exec;
    weft_kv kv;
    bool deterministic; /* the same bits however rows are put together into calls */
    bool round_bf16;    /* round activations for BF16 weights to bf16: faster, less exact */
    bool no_pack_cache; /* do not keep weights that were woven for this machine's kernels on disk */
    bool no_repack;     /* use weights as stored: slower, but there is no copy laid out for kernels */
    /* A plan file (`weft graph --stage plan --format json`) to run instead of making a plan: then exec, kv,
     * deterministic, round_bf16 and no_repack are the file's, and context, batch and outputs must be within it. */
    const char *plan;
    /* Called now and then, by the thread that creates the session, while weights are woven: that takes long where they
     * are not on disk from the last time. Bytes done, and in all. NULL: nobody wants to know. */
    void (*progress)(void *ctx, uint64_t done, uint64_t total);
    void *progress_ctx;
} weft_session_options;

/* The model must outlive it. */
WEFT_API weft_status weft_session_create(weft_diag *dg, const weft_model *m,
                                         const weft_session_options *options,
                                         weft_session **out_session);
WEFT_API void weft_session_destroy(weft_session *s); /* NULL is fine */
/* Memory the session holds: activations, state, converted and repacked weights, tables; not what is mapped from
 * the model file or from a file of the weight cache. */
WEFT_API uint64_t weft_session_bytes(const weft_session *s);

/* One row of a call. Rows of one sequence stand in order, each at the next position; those of several
 * may be mixed in any way. */
typedef struct {
    int32_t token, pos, seq;
    int32_t slot; /* of an adapter; 0: none */
    bool want;    /* whether outputs for the rows asked for, such as logits, include it */
} weft_row;

/* Evaluate the rows. On failure nothing has changed: no row was added to any sequence. */
WEFT_API weft_status weft_eval(weft_diag *dg, weft_session *s, const weft_row *rows, int64_t n);

typedef struct {
    const float *data; /* [rows, width], until the next call on the session */
    int64_t rows, width;
} weft_view;

/* An output of the newest weft_eval; index is that of resid[index], -1 for one without. */
WEFT_API weft_status weft_output(weft_diag *dg, const weft_session *s, const char *name, int index,
                                 weft_view *out_view);

WEFT_API int64_t weft_length(const weft_session *s,
                             int64_t seq); /* tokens a sequence holds; -1: no such sequence */
/* Keep the first `length` tokens of a sequence, exactly as if the others had never been. */
WEFT_API weft_status weft_truncate(weft_diag *dg, weft_session *s, int64_t seq, int64_t length);
/* Let sequence `to` hold the first `length` tokens of `from` instead of what it held. The two share
 * memory until one of them goes on. Both calls fail, and change nothing, where a model with windows no
 * longer has the rows that the next token would see; 0 is always possible. */
WEFT_API weft_status weft_fork(weft_diag *dg, weft_session *s, int64_t from, int64_t to,
                               int64_t length);

#ifdef __cplusplus
}
#endif

#endif
