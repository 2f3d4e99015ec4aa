/* model_file_impl.h - the inside of a model_file, for the files of this folder that fill it. */
#ifndef WEFT_RUNTIME_FORMATS_MODEL_FILE_IMPL_H
#define WEFT_RUNTIME_FORMATS_MODEL_FILE_IMPL_H

#include "runtime/base/map.h"
#include "runtime/base/vec.h"
#include "runtime/formats/model_file.h"
#include "runtime/formats/name_index.h"
#include <sys/stat.h>

typedef struct {
    const char *path;
    const unsigned char *data;
    size_t bytes;
    fmap *map;         /* NULL: the caller's memory */
    int fd;            /* a copy of the caller's descriptor, else -1 */
    int guard;         /* slot of map_guard, -1: not guarded */
    struct stat stamp; /* when it was opened; unused for memory */
} model_part_impl;

struct model_file {
    weight_source source; /* first: model_source.c goes from it to the rest */
    arena *home;
    model_format format;
    model_file_options options;
    const char *path;
    const char *folder; /* NULL: not a Hugging Face folder */
    VEC(model_part_impl) parts;
    VEC(model_tensor) tensors;
    const name_index *tensor_index;
    value keys; /* an object; for GGUF always with an index */
    const value *text_config;
    const str *archs;
    size_t arch_n;
};

/* The path and options are known: fill mf->source. model_source.c */
void model_source_init(model_file *mf);

/* Map one more file. */
weft_status model_add_part(weft_diag *dg, model_file *mf, const char *path) WEFT_MUST_USE;
/* Forget all parts and tensors. */
void model_drop_parts(model_file *mf);

/* Add a tensor with name, type, rank and shape (every size >= 0) set, the rest to be worked out. */
void model_add_tensor(model_file *mf, const model_tensor *t);
/* Work out elems, bytes and data of a tensor that begins at `offset` of its part, and check that it
 * lies in there. */
weft_status model_place_tensor(weft_diag *dg, const model_file *mf, model_tensor *t,
                               uint64_t offset) WEFT_MUST_USE;
/* W1006 if two of the tensors from `first` on, which are all of one part, share a byte. */
weft_status model_check_overlap(weft_diag *dg, const model_file *mf, size_t first) WEFT_MUST_USE;

/* Make names findable: W1010 if one stands twice. Doing it again does nothing. */
weft_status model_index_tensors(weft_diag *dg, model_file *mf) WEFT_MUST_USE;

/* gguf.c: read the keys and tensors of a part. The keys live in mf->home. */
typedef struct {
    value keys; /* an object with an index */
    uint64_t alignment;
} gguf_head;
weft_status gguf_read(weft_diag *dg, model_file *mf, size_t part,
                      gguf_head *out_head) WEFT_MUST_USE;

/* gguf_split.c: open the file at mf->path, or all the files it is a part of. */
weft_status gguf_open(weft_diag *dg, model_file *mf) WEFT_MUST_USE;
/* Read the one part that is there as a model by itself: W1006 if it is one of several. */
weft_status gguf_open_single(weft_diag *dg, model_file *mf) WEFT_MUST_USE;

/* safetensors.c: read the tensors of a part, and its __metadata__ (an object of strings). */
weft_status safetensors_read(weft_diag *dg, model_file *mf, size_t part,
                             value *out_metadata) WEFT_MUST_USE;

/* hf_config.c: take keys and architectures from a config.json, or from its value. */
weft_status hf_read_config(weft_diag *dg, model_file *mf, const char *path) WEFT_MUST_USE;
weft_status hf_take_config(weft_diag *dg, model_file *mf, const char *path,
                           value config) WEFT_MUST_USE;

/* hf_folder.c */
weft_status hf_open_folder(weft_diag *dg, model_file *mf, const char *folder) WEFT_MUST_USE;
/* The model of the folder that mf->path lies in, or that one .safetensors file alone. */
weft_status hf_open_file(weft_diag *dg, model_file *mf) WEFT_MUST_USE;
/* Read the one part that is there, with its metadata as keys. */
weft_status hf_open_single(weft_diag *dg, model_file *mf) WEFT_MUST_USE;
/* The path of a file in the folder: W1009 if it leads elsewhere, W1001 if there is none. */
weft_status hf_sibling(weft_diag *dg, arena *a, const char *folder, str name,
                       const char **out_path) WEFT_MUST_USE;
bool hf_exists(const char *folder, const char *name);

#endif
