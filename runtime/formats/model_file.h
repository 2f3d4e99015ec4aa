/* model_file.h - a checkpoint: its keys and its tensors, whichever format it is in.
 *
 *     model_file *mf;
 *     WEFT_TRY(model_file_open(dg, path, NULL, &mf));
 *     int64_t heads;
 *     if (value_int(model_file_key(mf, STR("attention.head_count")), &heads)) ...
 *     const model_tensor *w = model_file_tensor(mf, STR("token_embd.weight"));
 *     ...
 *     model_file_close(mf);
 *
 * A path may name a GGUF file, any part of a split one (NAME-00001-of-00003.gguf), a Hugging Face
 * folder, or a file in that folder; a .safetensors file that is not the folder's model (an adapter,
 * recorded outputs) is opened alone. Files are mapped, not read: opening touches headers only.
 *
 * Everything is checked before a model_file exists: each tensor lies inside its file, none overlap,
 * sizes follow from type and shape without overflow, names are unique. Any byte of a file may be a
 * stranger's; what is wrong is W1001-W1014 or W1101-W1105, naming file, tensor or key, and byte.
 *
 * All that is handed out (names, values, tensor data, paths) is borrowed until model_file_close. A
 * model_file never changes, so several threads may read it. */
#ifndef WEFT_RUNTIME_FORMATS_MODEL_FILE_H
#define WEFT_RUNTIME_FORMATS_MODEL_FILE_H

#include "runtime/base/diag.h"
#include "runtime/base/dtype.h"
#include "runtime/base/weight_source.h"
#include "runtime/formats/value.h"

enum {
    MODEL_RANK_MAX = 8,          /* GGUF itself stops at 4 */
    MODEL_TENSORS_MAX = 1 << 20, /* in all parts together */
    MODEL_KEYS_MAX = 1 << 20,
    MODEL_PARTS_MAX = 1000,
};

typedef struct model_file model_file;

typedef enum { MODEL_GGUF, MODEL_HF } model_format;

typedef struct {
    bool no_mmap; /* read the files into private memory instead of mapping them */
    bool mlock;   /* keep them in memory; W1013 where the system says no */
    bool guard;   /* survive a file that shrinks; see map_guard.h and model_file_check */
} model_file_options;

/* options may be NULL for the defaults. */
weft_status model_file_open(weft_diag *dg, const char *path, const model_file_options *options,
                            model_file **out_mf) WEFT_MUST_USE;
/* One file, GGUF or .safetensors, from an open descriptor, which stays the caller's and may be
 * closed, or from memory, which must outlive the model_file; `name` is for messages. */
weft_status model_file_open_fd(weft_diag *dg, int fd, const char *name,
                               const model_file_options *options,
                               model_file **out_mf) WEFT_MUST_USE;
weft_status model_file_open_memory(weft_diag *dg, const void *data, size_t bytes, const char *name,
                                   model_file **out_mf) WEFT_MUST_USE;
void model_file_close(model_file *mf); /* NULL is fine */

/* W1012 if a part became shorter than it was when it was opened: what was read since then may be
 * zeros. A command asks once its work is done, before it calls the result good. */
weft_status model_file_check(weft_diag *dg, const model_file *mf) WEFT_MUST_USE;

/* Was it opened with options.guard? Then its user wants other maps to survive too. */
bool model_file_guarded(const model_file *mf);

/* Most of it has been read for the last time: pages of mapped files leave this process's memory, and come
 * back when somebody reads them. */
void model_file_let_go(const model_file *mf);

model_format model_file_format(const model_file *mf);
const char *model_file_path(const model_file *mf); /* as it was opened */

/* general.architecture, or `architectures` of config.json: usually one, maybe none. */
size_t model_file_arch_count(const model_file *mf);
str model_file_arch(const model_file *mf, size_t i);

/* The value of a key, NULL if it is absent. `name` is what the DSL writes (DSL.md section 6):
 *   GGUF  prefixed with the architecture and a dot, unless it begins with '/', which is dropped;
 *   HF    a dotted path into config.json, looked for inside text_config first if there is one, and
 *         not there if it begins with '/'.
 * A JSON null is a value of type VT_NULL; a path that runs into a null finds that null. A lone
 * .safetensors file has the strings of its __metadata__ as keys. */
const value *model_file_key(const model_file *mf, str name);

/* All keys, in the order of the file, under their full names: an object. */
const value *model_file_keys(const model_file *mf);

typedef struct {
    str name;
    dtype type;
    int rank;                      /* 0: one number */
    int64_t shape[MODEL_RANK_MAX]; /* slowest first */
    int64_t elems;                 /* their product; 0 is possible in safetensors */
    size_t bytes;
    int part;         /* the file it is in */
    uint64_t offset;  /* of its first byte in that file */
    const void *data; /* the same place in memory; safetensors may put it at any address */
} model_tensor;

/* In the order of the files. */
size_t model_file_tensor_count(const model_file *mf);
const model_tensor *model_file_tensor_at(const model_file *mf, size_t i);
const model_tensor *model_file_tensor(const model_file *mf, str name); /* NULL: none such */

/* "BF16 [4096, 1024]", added to out. */
void model_tensor_describe(strbuf *out, const model_tensor *t);

typedef struct {
    const char *path;
    uint64_t bytes;
    const unsigned char *data;
} model_part;

size_t model_file_part_count(const model_file *mf);
model_part model_file_part(const model_file *mf, size_t i);

/* W1904 if a file is to be written there and it is one of these: replacing it while it is read would destroy both. */
weft_status model_file_spare(weft_diag *dg, const model_file *mf, const char *path) WEFT_MUST_USE;

/* The folder of a Hugging Face checkpoint, NULL for others, and the path, in a, of a file in it
 * such as tokenizer.json: W1001 if there is none, W1009 if it is a link that leads elsewhere. */
const char *model_file_folder(const model_file *mf);
bool model_file_has_sibling(const model_file *mf, const char *name);
weft_status model_file_sibling(weft_diag *dg, const model_file *mf, arena *a, const char *name,
                               const char **out_path) WEFT_MUST_USE;

/* Of format, keys with their values, and of every tensor's name, type, shape and place. The same on
 * every machine and in every run. Two fine-tunes may share it: it knows nothing of the weights. Not
 * meant to withstand someone who constructs a collision. */
model_hash model_file_hash(const model_file *mf);
/* The same with the system's identity of each file (device, inode, size, time of change), which
 * stands for the weights on this machine; false for a model in memory, which has none. */
bool model_file_stamp(const model_file *mf, model_hash *out_hash);
/* The same as model_file_hash with some bytes of every tensor, from its beginning, middle and end: a copy of the files has the
 * same, a fine-tune another one. Reads those bytes. */
model_hash model_file_identity(const model_file *mf);

/* Its tensors for the executor, in the same order; borrowed, as all else. */
const weight_source *model_file_source(const model_file *mf);

#endif
