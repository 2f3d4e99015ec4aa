/* model_flags.h - the flags of every verb that opens a model, and what they ask of runtime/api. */
#ifndef WEFT_RUNTIME_CLI_MODEL_FLAGS_H
#define WEFT_RUNTIME_CLI_MODEL_FLAGS_H

#include "runtime/api/api_impl.h"
#include "runtime/api/api_open.h"
#include "runtime/base/progress.h"
#include "runtime/cli/cli.h"

typedef struct {
    const char *model, *random, *arch;
    const char *device;    /* NULL: the CPU, or a card where layers of it are asked for */
    int64_t device_layers; /* -1: as device says */
    bool allow_cpu;        /* where that has no kernel */
    int64_t context, batch, threads;
    int exec;                             /* weft_exec */
    const char *kv, *kv_keys, *kv_values; /* a policy; or the forms of keys and values */
    flag_list lora;                       /* PATH or PATH=SCALE, see lora_flags.h */
    int64_t lora_slots, lora_rank;
    bool deterministic, round_bf16, exact, no_weight_cache, no_repack, no_mmap, mlock;
} model_flags;

/* Rows for a verb whose options struct T has a model_flags `at`. Each verb says itself what -c means to it. */
/* clang-format off */
#define MODEL_FLAG_ROW(T, at, help)                                                                                           \
    FLAG_ROW_STR   (T, at.model,   "model",    "m",  "MODEL", NULL, help)
#define RANDOM_FLAG_ROW(T, at)                                                                                                \
    FLAG_ROW_STR   (T, at.random,  "random",   NULL, "SHAPE:TYPE", NULL, "or one made up in memory, such as llama-1b:Q4_K_M")
#define BATCH_FLAG_ROW(T, at, normal)                                                                                         \
    FLAG_ROW_INT   (T, at.batch,   "ubatch-size", "ub", "N", normal, 1, 1 << 20, "tokens evaluated in one call, at most")
#define KV_FLAG_ROW(T, at)                                                                                                    \
    FLAG_ROW_STR   (T, at.kv,      "kv",       NULL, "POLICY", "auto", "what keys and values are stored as: f32, f16, bf16, q8, q4, or by age as \"f16 last=256, q8 last=4096, q4 rest\"; auto: f16, of the reference f32"), \
    FLAG_ROW_STR   (T, at.kv_keys, "cache-type-k", "ctk", "FORM", NULL, "what keys are stored as, where values differ"),       \
    FLAG_ROW_STR   (T, at.kv_values, "cache-type-v", "ctv", "FORM", NULL, "what values are stored as")
#define ROUND_FLAG_ROW(T, at)                                                                                                 \
    FLAG_ROW_BOOL  (T, at.round_bf16, "round-bf16", NULL, "round activations for BF16 weights (CUDA: F16 too) to bf16: faster, logits off by some tenths of a percent"), \
    FLAG_ROW_BOOL  (T, at.exact, "exact", NULL, "CUDA: activations for BF16 and F16 weights with all of their bits: slower with several rows. Elsewhere they always have these")
#define DEVICE_FLAG_ROWS(T, at)                                                                                               \
    FLAG_ROW_STR   (T, at.device,  "device",   "dev", "NAME", NULL, "where to compute: cpu, cuda, cuda:N for one of several cards, metal, or auto: a card where there is one; else the CPU. With WEFT_NVRTC=off in the environment a card compiles no kernels for the model"), \
    FLAG_ROW_INT   (T, at.device_layers, "n-gpu-layers", "ngl", "N", "-1", -1, 1 << 20, "the last N layers on a card, with their state, the rest of the model on the CPU; more than there are: all of it on the card; 0: nothing; -1: as --device says"), \
    FLAG_ROW_BOOL  (T, at.allow_cpu, "allow-cpu", NULL, "where a card has no kernel for the model, run all of it on the CPU")
#define SESSION_FLAG_ROWS(T, at, threads_normal)                                                                              \
    FLAG_ROW_STR   (T, at.arch,    "arch",     NULL, "FILE",  NULL, "read it with this .weft file"),                    \
    FLAG_ROW_INT   (T, at.threads, "threads",  "t",  "N", threads_normal, 0, 1024, "threads; 0: as many as this process may use"), \
    FLAG_ROW_CHOICE(T, at.exec,    "exec",     NULL, "plan|ref|jit", "plan", "the compiled plan, the slow reference, or the plan as native code, by LLVM"),   \
    DEVICE_FLAG_ROWS(T, at),                                                                                                  \
    KV_FLAG_ROW    (T, at),                                                                                                   \
    FLAG_ROW_BOOL  (T, at.deterministic, "deterministic", NULL, "the same bits for any number of threads and any batch"), \
    ROUND_FLAG_ROW (T, at),                                                                                                   \
    FLAG_ROW_BOOL  (T, at.no_weight_cache, "no-weight-cache", NULL, "keep no interleaved weights on disk"),             \
    FLAG_ROW_BOOL  (T, at.no_repack, "no-repack", NULL, "read weights as stored: slower, but no repacked copy takes memory or disk")
#define SLOT_FLAG_ROWS(T, at)                                                                                                 \
    FLAG_ROW_INT   (T, at.lora_slots, "lora-slots", NULL, "N", "0", 0, 1024, "adapters that the session may hold; 0: those of --lora"), \
    FLAG_ROW_INT   (T, at.lora_rank, "lora-rank", NULL, "N", "0", 0, 4096, "the rank that each may have; 0: that of the largest, or 16")
#define LORA_FLAG_ROWS(T, at)                                                                                                 \
    FLAG_ROW_LIST  (T, at.lora,    "lora",     NULL, "PATH[=SCALE]", "add this adapter, a PEFT folder or a GGUF file; several: their sum"), \
    SLOT_FLAG_ROWS (T, at)
#define FILE_FLAG_ROWS(T, at)                                                                                                 \
    FLAG_ROW_BOOL  (T, at.no_mmap, "no-mmap",  NULL, "read the checkpoint into memory instead of mapping it"),          \
    FLAG_ROW_BOOL  (T, at.mlock,   "mlock",    NULL, "keep the checkpoint in memory")
/* clang-format on */

/* W1904 with a policy and forms of keys or values, W1414 for a mistake in either. */
weft_status model_flags_check_kv(weft_diag *dg, const model_flags *f) WEFT_MUST_USE;
/* That, and W1904 without a checkpoint, or with two. */
weft_status model_flags_check(weft_diag *dg, const model_flags *f) WEFT_MUST_USE;
/* The model, bound for the trained context. */
api_source model_flags_source(const model_flags *f);
bool model_flags_stores(const model_flags *f); /* do they say what keys and values are stored as? */
const char *model_flags_device(const model_flags *f); /* its name; NULL: the CPU */
/* A session; `bar`, all zeros, shows how far weights are, interleaved for the first time or on their way to a card. */
weft_session_options model_flags_session(const model_flags *f, progress *bar);

#endif
