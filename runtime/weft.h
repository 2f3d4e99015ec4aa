/* weft.h - the public interface of Weft: language models as a library.
 *
 *     weft_diag *dg = weft_diag_create();
 *     weft_model_open(dg, "model.gguf", NULL, &model);
 *     weft_tokenizer_of_model(dg, model, &tokenizer);
 *     weft_session_create(dg, model, NULL, &session);
 *     weft_generation_create(dg, session, tokenizer, NULL, &text);
 *     weft_encode(dg, tokenizer, "Once upon a time", 16, WEFT_ADD_SPECIAL, &ids, &n);
 *     weft_generation_prompt(dg, text, ids, n);
 *     weft_generate(dg, text, show_piece, NULL, &end);
 *
 * One level below stand weft_eval and weft_output: rows of tokens in, logits out. runtime/api has whole programs in C, C++
 * and Python.
 *
 * Every call that can fail returns a weft_status and says why in the weft_diag; its out_ arguments are untouched then.
 * A struct of options begins with its size, sizeof of itself, so that a program compiled with an older weft.h works with a
 * newer library: what its struct lacks is 0. 0 means the usual (not in weft_sampler_options), and so does NULL for the whole
 * struct.
 *
 * Objects belong to whoever created them and are destroyed in the opposite order. There is no global state but a pool of
 * worker threads, and the SIGBUS handler of a model opened with guard: two users in one process do not affect each other. One
 * object is used by one thread at a time, a session and its generations counting as one; a model and a tokenizer may serve
 * several threads. Files may be anybody's: what is wrong with them is an error, never a crash.
 *
 * The library prints nothing and never ends the process. Where memory is short a call returns WEFT_ERR_LIMIT (W1110), or
 * WEFT_ERR_TARGET (W0902) if a session is too large for the machine; one that returns a pointer returns NULL. It releases what
 * it took; what was there before can still be used. Callbacks must return: no
 * longjmp and no exception may leave them. After fork(2) the child has no worker threads. It may use models, tokenizers,
 * templates and samplers of the parent, create sessions of its own and destroy anything; evaluating in a session that is
 * older than the fork fails (W1604). Fork while no other thread is inside a call of Weft. */
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
typedef struct weft_cancel weft_cancel;
typedef struct weft_model weft_model;
typedef struct weft_session weft_session;
typedef struct weft_adapter weft_adapter;
typedef struct weft_tokenizer weft_tokenizer;
typedef struct weft_decoder weft_decoder;
typedef struct weft_template weft_template;
typedef struct weft_sampler weft_sampler;
typedef struct weft_generation weft_generation;
typedef struct weft_grammar weft_grammar;

WEFT_API const char *weft_version(void); /* "0.1.0" */
WEFT_API const char *
weft_status_meaning(weft_status status); /* "a file cannot be read or written" */
/* Release what a call gave to its caller to keep: ids and texts. NULL is fine. */
WEFT_API void weft_free(void *p);

/* ---- messages ---- */

WEFT_API weft_diag *weft_diag_create(void);     /* NULL: no memory */
WEFT_API void weft_diag_destroy(weft_diag *dg); /* NULL is fine */
/* Everything recorded so far, for people: place, code, message, quoted line, notes. Valid until dg is used again. What is
 * recorded twice is kept once, and of more than 50 errors the first 50: clear it before work whose messages matter. */
WEFT_API const char *weft_diag_text(weft_diag *dg);
/* The same as a JSON array of objects: code, severity, message, file, line, column, hint, notes. */
WEFT_API const char *weft_diag_json(weft_diag *dg);
WEFT_API void weft_diag_clear(weft_diag *dg);

typedef struct {
    size_t size;         /* sizeof(weft_message), set by the caller */
    const char *code;    /* "W1001"; what a code means never changes */
    weft_status status;  /* what the call that recorded it returned, if it failed because of it */
    bool error;          /* false: a warning */
    const char *message; /* without code and place */
} weft_message;

WEFT_API size_t weft_diag_count(const weft_diag *dg);
/* Message i, in the order they were recorded; valid until dg is cleared or destroyed. False: there is none. */
WEFT_API bool weft_diag_at(const weft_diag *dg, size_t i, weft_message *out_message);

/* ---- cancelling ---- */

/* A switch that stops work soon, wherever the work is: weft_session_create while it prepares weights, weft_eval, weft_step
 * and weft_generate of the sessions whose options name it. They return WEFT_ERR_CANCELLED (weft_generate: WEFT_END_CANCELLED)
 * and leave everything as after any failed call: weft_step can be called again, weft_generate needs a new prompt. It stays set until it is cleared. Setting and
 * clearing may be done by any thread, and by a signal handler. It must outlive the sessions. */
WEFT_API weft_cancel *weft_cancel_create(void);
WEFT_API void weft_cancel_destroy(weft_cancel *c); /* NULL is fine */
WEFT_API void weft_cancel_set(weft_cancel *c);
WEFT_API void weft_cancel_clear(weft_cancel *c);

/* ---- models ---- */

typedef struct {
    size_t size; /* sizeof(weft_model_options) */
    const char
        *arch;    /* a .weft file to read the checkpoint with; NULL: its own, or the library's */
    bool no_mmap; /* read the files into memory instead of mapping them */
    bool mlock;   /* keep them in memory */
    bool guard;   /* survive a file that shrinks while it is mapped: installs a SIGBUS handler */
} weft_model_options;

/* A GGUF file, any part of a split one, a Hugging Face folder, or a file in it. The model is bound and proven here; its
 * weights are read when they are used. */
WEFT_API weft_status weft_model_open(weft_diag *dg, const char *path,
                                     const weft_model_options *options, weft_model **out_model);
/* A GGUF file in one part, from an open descriptor, which may be closed afterwards; name is for messages. */
WEFT_API weft_status weft_model_open_fd(weft_diag *dg, int fd, const char *name,
                                        const weft_model_options *options, weft_model **out_model);
/* A GGUF file in memory, which must outlive the model. */
WEFT_API weft_status weft_model_open_memory(weft_diag *dg, const void *data, size_t bytes,
                                            const char *name, const weft_model_options *options,
                                            weft_model **out_model);
WEFT_API void weft_model_close(weft_model *m); /* NULL is fine; no session may be left */
/* With options.guard: W1012 if a file became shorter while it was in use, so that results since then may
 * rest on zeros. Ask when the work is done. */
WEFT_API weft_status weft_model_check(weft_diag *dg, const weft_model *m);

WEFT_API const char *weft_model_name(const weft_model *m); /* of the .weft model: "llama" */
/* A setting of the model file by its name there: ctx, layers, d, heads, ... False if it has none of that name or
 * kind. For showing to people: sizes that code depends on are in weft_session_info. */
WEFT_API bool weft_model_int(const weft_model *m, const char *name, int64_t *out_value);
WEFT_API bool weft_model_float(const weft_model *m, const char *name, double *out_value);
WEFT_API uint64_t weft_model_bytes(const weft_model *m);  /* of its tensors */
WEFT_API int64_t weft_model_context(const weft_model *m); /* it was trained for; 0: not known */
/* State that one token more takes, far into a text and stored as f16: layers with a window take no more there. */
WEFT_API uint64_t weft_model_token_bytes(const weft_model *m);

/* ---- sessions ---- */

/* How a session computes: by a compiled plan with the machine's best kernels (WEFT_CPU names lesser ones),
 * as the reference does, one operator after the other in plain loops, or by the plan as native code: LLVM makes it when the
 * session opens, or it is on disk from the last time. WEFT_ERR_DEVICE where there is no LLVM. */
typedef enum { WEFT_EXEC_PLAN, WEFT_EXEC_REF, WEFT_EXEC_JIT } weft_exec;

/* What keys and values are stored as. AUTO: f16 for a plan, f32 for the reference. */
typedef enum { WEFT_KV_AUTO, WEFT_KV_F32, WEFT_KV_F16, WEFT_KV_BF16 } weft_kv;

typedef struct {
    size_t size;       /* sizeof(weft_session_options) */
    int64_t context;   /* tokens a sequence may hold; 0: what the model was trained for */
    int64_t sequences; /* that can be kept at once, at most 2^20; 0: 1 */
    /* Rows in one call at most; 0: 512. Limited to context times sequences, and to 2^20. */
    int64_t batch;
    int64_t threads;            /* 0: 1; -1: as many as this process may use */
    const char *const *outputs; /* names: "logits", "hidden", "resid" for all, "resid.3" for one */
    int n_output;               /* 0: logits */
    int64_t wants;              /* rows of one call with `want` set at most; 0: all */
    weft_exec exec;
    weft_kv kv;
    bool deterministic; /* the same bits however rows are put together into calls */
    bool
        round_bf16; /* round activations for BF16 weights (CUDA: F16 too) to bf16: faster, less exact */
    bool
        no_weight_cache; /* do not keep weights that were interleaved for this machine's kernels on disk */
    bool no_repack; /* use weights as stored: slower, but there is no copy laid out for kernels */
    /* A plan file (`weft graph --stage plan --format json`) to run instead of making a plan: then exec, kv,
     * deterministic, round_bf16, exact and no_repack are the file's, and context, batch and outputs must be within it. */
    const char *plan;
    /* Called now and then, by the thread that creates the session, while weights are interleaved for this machine's
     * kernels: that takes long where they are not on disk from the last time. Bytes done, and in all. */
    void (*progress)(void *ctx, uint64_t done, uint64_t total);
    void *progress_ctx;
    weft_cancel *cancel; /* NULL: nothing stops it */
    /* State is kept in pages that sequences share: tokens in a page, 0: 64; how many pages, 0: enough for all sequences at
     * full length. With fewer, a call that finds no free page fails with WEFT_ERR_FULL. */
    int64_t page_tokens, pages;
    /* The session is refused if it takes more than this, mapped weights included; 0: more than the machine has, without
     * mapped weights. */
    uint64_t max_bytes;
    /* Where interleaved weights are kept between runs, made if absent; NULL: $XDG_CACHE_HOME/weft/weights, else
     * $HOME/.cache/weft/weights. And how many bytes all its files may take together; 0: 64 GiB. */
    const char *cache_dir;
    uint64_t cache_bytes;
    /* Texts whose state is kept for prompts that begin the same, in pages that no sequence needs: the ends of prompts and of
     * answers. 0: where there are several sequences, as many as those, from 4 to 64, else none; -1: none. Layers with windows
     * have memory for each. */
    int64_t prefixes;
    /* How keys and values are stored by the age of tokens, instead of kv: tiers, finest first, as in
     * "f16 last=256, q8 last=4096, q4 rest"; or one of f32, f16, bf16, q8, q4; "q8/f16": keys and values apart. NULL or
     * "auto": as kv says. A mistake is WEFT_ERR_SYNTAX, with its place. */
    const char *kv_policy;
    /* LoRA adapters that the session may hold at once, at most 1024, and the rank that each may have at most, 0: 16. They take
     * memory for every weight that adapters may attach to. 0: none, and it computes as if there were no such thing. */
    int64_t lora_slots, lora_rank;
    /* Where it computes: "cpu", which NULL means too; "cuda", or "cuda:1" for one of several cards; "metal"; "auto": a card where there is
     * one, else the CPU. All of the session's memory but its tables is the device's then. WEFT_ERR_DEVICE, with what is missing,
     * where there is no such device; cards run plans, neither the reference nor native code. */
    const char *device;
    /* How many of the model's layers are on that device, with their state: the last ones. What stands before the layers, and what
     * stands behind them, is on the CPU then. 0, or more than there are: all of the model is on the device; -1: nothing is. Part of them is
     * WEFT_ERR_DEVICE with a plan file, which is for one device, or where a cell of the state belongs to layers on both sides. */
    int64_t device_layers;
    /* Where the device has no kernel for an operator of the model, or for a type of its weights, all of it runs on the CPU, with a
     * warning that says so; else that is WEFT_ERR_TARGET. */
    bool allow_cpu;
    /* Called now and then, by the thread that creates the session and with progress_ctx, while kernels of a card are compiled for
     * the plan: seconds, where they are not on disk from the last time. Images done, and in all. */
    void (*compiling)(void *ctx, uint64_t done, uint64_t total);
    /* Activations for BF16 and F16 weights with all of their bits, also in calls of many rows. Processors and Metal do nothing else; CUDA
     * rounds them a little otherwise, to 16 bits in calls of 9 rows and more and to 11 in large ones on sm_90, and is slower with this.
     * WEFT_ERR_DEVICE with round_bf16, or with kernels or a plan that round. */
    bool exact;
} weft_session_options;

/* The model must outlive it. */
WEFT_API weft_status weft_session_create(weft_diag *dg, const weft_model *m,
                                         const weft_session_options *options,
                                         weft_session **out_session);
WEFT_API void weft_session_destroy(weft_session *s); /* NULL is fine */

/* Memory for keys and values of a session with these options, before there is one. UINT64_MAX: there can be none. */
WEFT_API uint64_t weft_state_bytes(const weft_model *m, const weft_session_options *options);

typedef struct {
    size_t size; /* sizeof(weft_session_info), set by the caller */
    int64_t context, sequences, batch, wants, threads;
    int64_t vocab;                          /* width of the output logits; 0: it has none */
    int64_t page_tokens, pages, pages_free; /* of state, now */
    /* Bytes. Mapped and cached weights are pages of files, not memory of the session. */
    uint64_t weights_mapped, weights_cached, weights_copied, weights_interleaved;
    uint64_t activations, state, scratch, tables;
    /* Texts that are kept for prompts that begin the same: how many there may be, and are, and the pages and bytes that they alone
     * hold. Since the session was created: prompts, and those of which a part was there; their tokens, and those that were
     * not evaluated again for that reason; texts that had to go for others. */
    int64_t prefixes, prefixes_used, prefix_pages;
    uint64_t prefix_bytes, prefix_lookups, prefix_hits, prefix_tokens, prefix_tokens_saved,
        prefix_evicted;
    int64_t lora_slots, lora_rank; /* for adapters */
    uint64_t adapters;             /* bytes of their slots */
    /* "cpu", "cuda", "metal". Where it has memory of its own all bytes above are in it, and `host` in the machine's; else that is 0. */
    const char *device;
    uint64_t host;
    int64_t
        images; /* of kernels that were made for the plan, on a card; 0: those of all plans run it */
    uint64_t tokens_on_device; /* that it chose by itself, since the session was created */
} weft_session_info;

WEFT_API weft_status weft_session_about(weft_diag *dg, const weft_session *s,
                                        weft_session_info *info);

/* Pages of state in one form. Layers that keep different rows, as those with a window, have pages of their own. */
typedef struct {
    const char *keys, *values;  /* "f16" */
    int64_t last;               /* tokens younger than that are in it; -1: all older ones too */
    int64_t page_tokens;        /* of a page */
    int64_t pages, pages_free;  /* now */
    uint64_t page_bytes, bytes; /* of a page, in all layers that have it; of all pages */
} weft_kv_tier;

/* How many kinds of pages a session has; the first n_max of them to `tiers`. */
WEFT_API int64_t weft_kv_tiers(const weft_session *s, weft_kv_tier *tiers, int64_t n_max);

/* Let pages cross from tier to tier at other ages from the next call on: a policy text with the same forms and other numbers,
 * as far as the pages that each tier has reach; else WEFT_ERR_STATE, and nothing has changed. Pages that are coarser already
 * stay so. Prefixes that are kept for others are dropped. */
WEFT_API weft_status weft_kv_change(weft_diag *dg, weft_session *s, const char *policy);
/* Memory the session holds, that of a device included: activations, state, converted and repacked weights, tables; not what is mapped from
 * the model file or from a file of the weight cache. */
WEFT_API uint64_t weft_session_bytes(const weft_session *s);

/* One row of a call. Rows of one sequence stand in order, each at the next position; those of several
 * may be mixed in any way. */
typedef struct {
    int32_t token, pos, seq;
    int32_t
        slot; /* of an adapter, for this row alone; 0: the mix of its sequence (weft_lora_attach) */
    bool want; /* whether outputs for the rows asked for, such as logits, include it */
} weft_row;

/* Evaluate the rows. On failure nothing has changed: no row was added to any sequence. */
WEFT_API weft_status weft_eval(weft_diag *dg, weft_session *s, const weft_row *rows, int64_t n);

typedef struct {
    const float *data; /* [rows, width], until the next call on the session */
    int64_t rows, width;
} weft_view;

/* An output of the newest weft_eval, if no weft_step and no weft_eval_choose came after it; index is that of resid[index], -1 for one without. */
WEFT_API weft_status weft_output(weft_diag *dg, const weft_session *s, const char *name, int index,
                                 weft_view *out_view);

/* Tokens that a sequence holds; -1: no such sequence. */
WEFT_API int64_t weft_length(const weft_session *s, int64_t seq);
/* Keep the first `length` tokens of a sequence, exactly as if the others had never been. */
WEFT_API weft_status weft_truncate(weft_diag *dg, weft_session *s, int64_t seq, int64_t length);
/* Let sequence `to` hold the first `length` tokens of `from` instead of what it held. The two share
 * memory until one of them goes on. Both calls fail, and change nothing, where a model with windows no
 * longer has the rows that the next token would see; 0 is always possible. */
WEFT_API weft_status weft_fork(weft_diag *dg, weft_session *s, int64_t from, int64_t to,
                               int64_t length);

/* Let `to`, which holds `begin` tokens, hold those from `begin` to `end` of `from` too, at the same positions and exactly as they are.
 * They share memory. It is what evaluating them would give where the tokens before are the same in both. */
WEFT_API weft_status weft_append_range(weft_diag *dg, weft_session *s, int64_t from, int64_t to,
                                       int64_t begin, int64_t end);
/* Take the tokens from `begin` to `end` out of a sequence. Those behind move up: their keys are turned to the new positions, but they were
 * computed while the others were there. So the result is an approximation, and *out_exact false, unless there are none behind. Models
 * whose layers have windows, latent rows, quantised state or keys that are not turned refuse it (W1420). */
WEFT_API weft_status weft_remove_range(weft_diag *dg, weft_session *s, int64_t seq, int64_t begin,
                                       int64_t end, bool *out_exact);
/* Write what a sequence holds, which are these n tokens, to a file, in place of what the file was: after a crash there is the old
 * one or the new one. A session of the same model, adapters, kv and page_tokens can go on from there, with any context that is
 * long enough; another one refuses it, as it does a file that was cut short or changed. The ids of the file are the caller's, to release with
 * weft_free. A file that is refused leaves the sequence as it was. */
WEFT_API weft_status weft_sequence_save(weft_diag *dg, weft_session *s, int64_t seq,
                                        const int32_t *ids, int64_t n, const char *path);
WEFT_API weft_status weft_sequence_load(weft_diag *dg, weft_session *s, int64_t seq,
                                        const char *path, int32_t **out_ids, int64_t *out_n);
/* Give back the pages of all texts that are kept for prompts that begin the same (weft_session_options.prefixes). */
WEFT_API void weft_prefixes_drop(weft_session *s);

/* ---- adapters ---- */

/* A LoRA adapter: a PEFT folder or a GGUF file, bound to the model, which it needs no longer then. */
WEFT_API weft_status weft_adapter_open(weft_diag *dg, const weft_model *m, const char *path,
                                       weft_adapter **out_adapter);
WEFT_API void weft_adapter_close(weft_adapter *a);         /* NULL is fine; slots have copies */
WEFT_API int64_t weft_adapter_rank(const weft_adapter *a); /* the largest of its ranks */

/* Copy an adapter into a slot, 1 to lora_slots of the session, in place of what it held. Refused where the slot is in use by a
 * sequence, its rank is below the adapter's, or the adapter is another model's. */
WEFT_API weft_status weft_lora_load(weft_diag *dg, weft_session *s, int32_t slot,
                                    const weft_adapter *a);
WEFT_API weft_status weft_lora_unload(weft_diag *dg, weft_session *s, int32_t slot);

typedef struct {
    int32_t slot;
    float scale; /* by which it counts; 1: as it was trained */
} weft_lora_use;

/* Let a sequence use the sum of some adapters, at most 8, from its next row on; n 0: none. That takes no time: between two tokens of
 * an answer it may be another mix. What the sequence holds already stays as it was computed; a generation evaluates such
 * text anew with its next prompt. Sequences that are forked take the mix with them. On failure nothing has changed. */
WEFT_API weft_status weft_lora_attach(weft_diag *dg, weft_session *s, int64_t seq,
                                      const weft_lora_use *mix, size_t n);

/* ---- text to tokens and back ---- */

/* A tokenizer.json, a folder with one, or a GGUF file. Several threads may use one tokenizer. */
WEFT_API weft_status weft_tokenizer_open(weft_diag *dg, const char *path,
                                         weft_tokenizer **out_tokenizer);
/* The model's own. It holds copies of all it needs: the model may be closed before it. */
WEFT_API weft_status weft_tokenizer_of_model(weft_diag *dg, const weft_model *m,
                                             weft_tokenizer **out_tokenizer);
WEFT_API void weft_tokenizer_close(weft_tokenizer *t); /* NULL is fine */

/* How a text is encoded: put the tokens around it that the model expects (BOS and the like), and read special tokens
 * that are written in it. A text from a stranger is encoded without the second. */
enum { WEFT_ADD_SPECIAL = 1, WEFT_PARSE_SPECIAL = 2 };

/* The ids of a text in UTF-8, which are the caller's to release with weft_free. */
WEFT_API weft_status weft_encode(weft_diag *dg, weft_tokenizer *t, const char *text, size_t bytes,
                                 unsigned flags, int32_t **out_ids, size_t *out_n);
/* The text of ids: well-formed UTF-8 that ends with a NUL beyond its bytes, the caller's to release with weft_free. */
WEFT_API weft_status weft_decode(weft_diag *dg, weft_tokenizer *t, const int32_t *ids, size_t n,
                                 bool skip_special, char **out_text, size_t *out_bytes);

WEFT_API int32_t weft_tokenizer_size(const weft_tokenizer *t); /* one past the largest id */
WEFT_API int32_t weft_token_bos(const weft_tokenizer *t);      /* -1: none */
WEFT_API int32_t weft_token_eos(const weft_tokenizer *t);      /* -1: none */
WEFT_API bool weft_token_ends(const weft_tokenizer *t,
                              int32_t id); /* eos and all others that end an answer */
WEFT_API bool weft_token_special(const weft_tokenizer *t, int32_t id);
WEFT_API int32_t weft_token_find(const weft_tokenizer *t,
                                 const char *text); /* written like this; -1: none */
/* A token as the vocabulary writes it, which need not be UTF-8; empty where there is none. */
WEFT_API const char *weft_token_text(const weft_tokenizer *t, int32_t id, size_t *out_bytes);

/* Decoding as ids come: a character appears with the token that completes it, never half of one. The tokenizer must
 * outlive the decoder. */
WEFT_API weft_status weft_decoder_create(weft_diag *dg, weft_tokenizer *t, bool skip_special,
                                         weft_decoder **out_decoder);
WEFT_API void weft_decoder_destroy(weft_decoder *d); /* NULL is fine */
/* What the id adds to the text; valid until the decoder is used again. */
WEFT_API weft_status weft_decoder_put(weft_diag *dg, weft_decoder *d, int32_t id,
                                      const char **out_text, size_t *out_bytes);
/* What is left at the end; the decoder can begin anew. */
WEFT_API weft_status weft_decoder_end(weft_diag *dg, weft_decoder *d, const char **out_text,
                                      size_t *out_bytes);

/* ---- chat templates ---- */

/* The model's own template with choice NULL; else a built-in one (chatml, gemma, llama2, llama3, mistral, phi3) or a file.
 * Templates come with models, from strangers: they can do nothing but render, within limits of time and memory. */
WEFT_API weft_status weft_template_open(weft_diag *dg, const weft_model *m, const char *choice,
                                        weft_template **out_template);
WEFT_API void weft_template_close(weft_template *t); /* NULL is fine */
WEFT_API const char *
weft_template_origin(const weft_template *t); /* where it came from, for people */

typedef struct {
    size_t size;           /* sizeof(weft_chat) */
    const char *messages;  /* JSON: [{"role": "user", "content": "..."}, ...] */
    const char *tools;     /* JSON array, or NULL */
    const char *documents; /* JSON array, or NULL */
    const char
        *variables; /* JSON object of further ones, such as {"enable_thinking": false}, or NULL */
    bool no_answer; /* end behind the last message, not where the model begins to answer */
} weft_chat;

/* The text that the model continues, the caller's to release with weft_free. */
WEFT_API weft_status weft_template_render(weft_diag *dg, const weft_template *t,
                                          const weft_chat *chat, char **out_text,
                                          size_t *out_bytes);
/* The same as ids. */
WEFT_API weft_status weft_template_encode(weft_diag *dg, const weft_template *t,
                                          weft_tokenizer *tokenizer, const weft_chat *chat,
                                          int32_t **out_ids, size_t *out_n);

/* ---- choosing tokens ---- */

typedef struct {
    int32_t token;
    float bias; /* added to its logit; -INFINITY forbids it */
} weft_bias;

/* Set them with weft_sampler_defaults first: 0 is a setting here, not the usual. */
typedef struct {
    size_t size;                        /* sizeof(weft_sampler_options) */
    uint64_t seed;                      /* the same seed, options and logits give the same tokens */
    double temp;                        /* temperature; 0: always the likeliest */
    int64_t top_k;                      /* keep the likeliest; 0: all */
    double top_p, min_p, typical;       /* 1, 0, 1: all */
    int64_t last_n;                     /* tokens the penalties look back over; -1: all */
    double repeat, presence, frequency; /* 1, 0, 0: none */
    double dry_multiplier, dry_base;    /* DRY, a penalty for repeating runs of tokens; 0: off */
    int64_t dry_allowed,
        dry_last_n; /* runs up to this long cost nothing; look back this far, -1: all */
    double xtc_probability, xtc_threshold; /* exclude top choices; 0: off */
    int mirostat;                          /* 2: mirostat 2 in place of the truncations; 0: off */
    double mirostat_tau, mirostat_eta;
    const weft_bias *bias;
    size_t n_bias;
    const char *samplers; /* the chain, such as "top_k;top_p;temperature"; NULL: the usual one */
} weft_sampler_options;

/* Fill in what people expect: temperature 0.8, top-k 40, top-p 0.95, min-p 0.05, no penalties, seed 0. Options->size is
 * set by the caller. */
WEFT_API void weft_sampler_defaults(weft_sampler_options *options);
/* For logits of this width, remembering this many tokens for the penalties. Strings and lists of the options are copied.
 * For DRY the tokenizer says which tokens end a run; NULL: none do. */
WEFT_API weft_status weft_sampler_create(weft_diag *dg, const weft_sampler_options *options,
                                         int64_t vocab, int64_t past, weft_tokenizer *t,
                                         weft_sampler **out_sampler);
WEFT_API void weft_sampler_destroy(weft_sampler *s); /* NULL is fine */
/* Choose from logits [vocab]. W1410 where none of them is a number. */
WEFT_API weft_status weft_sampler_choose(weft_diag *dg, weft_sampler *s, const float *logits,
                                         int32_t *out_token);
/* Evaluate the rows as weft_eval does, and for each that has `want`, one at least, choose a token by a sampler of its own, all of
 * which differ: samplers[i] and out_tokens[i] are for the i-th of them. Accepting the tokens is left to the caller. A device that
 * can choose by itself (top-k, top-p, min-p, temperature and the likeliest, not log-probabilities, penalties and the rest) gives
 * the tokens that the host would, and only they are copied from it: such a call leaves no outputs. more[i] says that the token is
 * going to be the next row of its sequence, with `want` and the same sampler: then the device may begin with that call at once. If
 * something else is done after all, what it had begun is dropped; nothing can be seen of it. NULL: none is. On failure nothing
 * has changed, but for W1410, where no logit of some row is a number: that one's token is -1, and all rows are there. */
WEFT_API weft_status weft_eval_choose(weft_diag *dg, weft_session *s, const weft_row *rows,
                                      int64_t n, weft_sampler *const *samplers, const bool *more,
                                      int32_t *out_tokens);
/* The token became part of the text; a prompt's tokens too. */
WEFT_API void weft_sampler_accept(weft_sampler *s, int32_t token);
WEFT_API void weft_sampler_reset(weft_sampler *s); /* as created */

typedef struct {
    int32_t token;
    float logprob; /* natural logarithm of its probability, before any sampling step */
} weft_logprob;

/* The n likeliest tokens of a row of logits, best first; returns how many there are. */
WEFT_API int64_t weft_logprobs(const float *logits, int64_t vocab, weft_logprob *out, int64_t n);

/* ---- texts of a given form ---- */

typedef enum {
    WEFT_GRAMMAR_JSON_SCHEMA, /* JSON that satisfies a schema (draft 2020-12) */
    WEFT_GRAMMAR_REGEX,       /* a text that a regular expression matches as a whole */
    WEFT_GRAMMAR_GBNF,        /* rules in the notation of llama.cpp, beginning with `root` */
} weft_grammar_kind;

/* A form for answers of generations in sessions of this model. name is for messages. W1801: the text is not well formed;
 * W1802: it uses what is not supported, by name and place; W1803: it passes a limit; W1804: no text is of this form. Generations that
 * share a grammar belong to one thread. */
WEFT_API weft_status weft_grammar_create(weft_diag *dg, weft_session *s, weft_tokenizer *t,
                                         weft_grammar_kind kind, const char *name, const char *text,
                                         size_t bytes, weft_grammar **out_grammar);
WEFT_API void weft_grammar_destroy(weft_grammar *g); /* NULL is fine; after its generations */

/* ---- generating text ---- */

typedef struct {
    size_t size;              /* sizeof(weft_generation_options) */
    int64_t seq;              /* the sequence of the session that it uses, alone */
    int64_t max_tokens;       /* 0: until something else ends it */
    const char *const *stops; /* texts that end it and are not shown */
    size_t n_stop;
    bool ignore_end;                     /* go on after a token that ends an answer */
    bool show_special;                   /* special tokens appear in the text */
    bool logprobs;                       /* with each token its log-probability, */
    int64_t top_logprobs;                /* and those of this many of the likeliest */
    const weft_sampler_options *sampler; /* NULL: the defaults */
    /* Every answer that the model ends is of this form; one that something else ends is the beginning of one. NULL: any. It
     * must outlive the generation. */
    weft_grammar *grammar;
} weft_generation_options;

typedef enum {
    WEFT_END_NONE,      /* it goes on */
    WEFT_END_MODEL,     /* the model ended it */
    WEFT_END_STOP,      /* a stop text came */
    WEFT_END_LENGTH,    /* max_tokens were generated */
    WEFT_END_CONTEXT,   /* the context is full */
    WEFT_END_CALLER,    /* the callback returned false, or the options were changed */
    WEFT_END_CANCELLED, /* the session's cancel was set */
    WEFT_END_FAILED, /* its logits are no numbers (W1410), memory was short (W1110), or no token fits its form (W1805) */
} weft_end;

/* What one step added; valid until the generation is used again. */
typedef struct {
    int32_t token; /* -1: none yet, the prompt is still being read */
    const char
        *text; /* what can be shown now: whole characters, no part of a stop text; often empty */
    size_t bytes;
    float logprob;           /* of token */
    const weft_logprob *top; /* [n_top], best first */
    int64_t n_top;
    int64_t prompt_done,
        prompt_total; /* tokens of the prompt that were evaluated, and all that had to be */
    weft_end end;
} weft_piece;

/* Generates text in one sequence of the session, which must have the output logits. It keeps its text between
 * prompts, so that a prompt that begins like the last text costs only what is new. Session and tokenizer must outlive it;
 * strings and lists of the options are copied. */
WEFT_API weft_status weft_generation_create(weft_diag *dg, weft_session *s, weft_tokenizer *t,
                                            const weft_generation_options *options,
                                            weft_generation **out_generation);
WEFT_API void
weft_generation_destroy(weft_generation *g); /* NULL is fine; its sequence keeps its tokens */
/* Begin anew with this prompt. Fails, and changes nothing, if it is empty, if a token is not the model's (W1405), or if it and
 * one more token do not fit the context (W1404, WEFT_ERR_FULL). */
WEFT_API weft_status weft_generation_prompt(weft_diag *dg, weft_generation *g, const int32_t *ids,
                                            size_t n);
/* Other options from the next prompt on, but for seq; an answer that was going on has ended. On failure nothing has
 * changed. */
WEFT_API weft_status weft_generation_change(weft_diag *dg, weft_generation *g,
                                            const weft_generation_options *options);
/* Give `to` the text of `from`, with its own settings: all of it, or the prompt alone, to which it then gives an answer of its
 * own (with a seed of its own: that is how to get several answers to one prompt). They share memory until they differ. Fails
 * as weft_fork does. */
WEFT_API weft_status weft_generation_fork(weft_diag *dg, const weft_generation *from,
                                          weft_generation *to, bool prompt_only);
/* Write the text of a generation with its state to a file, and have the text of one: the next prompt goes on from what it shares
 * with it. As weft_sequence_save and weft_sequence_load. */
WEFT_API weft_status weft_generation_save(weft_diag *dg, const weft_generation *g,
                                          const char *path);
WEFT_API weft_status weft_generation_load(weft_diag *dg, weft_generation *g, const char *path);
/* One call of the session for all of these generations, each once in the list: the next part of a prompt, or the next token
 * of each. Those that have ended are passed over; those for which the call has no more room come sooner in the next. On failure
 * nothing has changed, but for W1410 and W1110: then those whose logits are no numbers, or for whose text memory was short,
 * have ended (their piece says so), and the others went on. */
WEFT_API weft_status weft_step(weft_diag *dg, weft_session *s, weft_generation *const *list,
                               size_t n);
/* Why its tokens are chosen on the host, from logits that are copied there, in a word or two; NULL: its device chooses them. */
WEFT_API const char *weft_generation_host_why(const weft_generation *g);
/* What the last weft_step brought it. */
WEFT_API const weft_piece *weft_generation_piece(weft_generation *g);
/* The tokens generated since the prompt, the one that ended it included; valid until the generation is used again. */
WEFT_API const int32_t *weft_generation_ids(const weft_generation *g, size_t *out_n);
/* The whole text: the prompt and the tokens generated since, or what weft_generation_load has. */
WEFT_API const int32_t *weft_generation_text(const weft_generation *g, size_t *out_n);

/* Steps until the generation ends. on_piece gets each piece, and stops it by returning false; it may be NULL. */
WEFT_API weft_status weft_generate(weft_diag *dg, weft_generation *g,
                                   bool (*on_piece)(void *ctx, const weft_piece *piece), void *ctx,
                                   weft_end *out_end);
WEFT_API const char *weft_end_name(weft_end end); /* "end", "stop", "length", "context", ... */

#ifdef __cplusplus
}
#endif

#endif
