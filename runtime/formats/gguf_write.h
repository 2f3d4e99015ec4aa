/* gguf_write.h - writes a GGUF file (version 3): keys, then tensors, made as it goes if need be.
 *
 *     gguf_writer *w = gguf_writer_create();
 *     gguf_writer_key(w, STR("general.architecture"), value_of_str(STR("llama")));
 *     gguf_writer_tensor_data(w, STR("output_norm.weight"), DT_F32, 1, (int64_t[]){4}, norm);
 *     status = gguf_writer_write(dg, w, path);
 *     gguf_writer_destroy(w);
 *
 * The file appears under its name only when it is complete. Names and values are borrowed until the
 * writer is destroyed, so the keys of an open model_file can be passed on as they are. */
#ifndef WEFT_RUNTIME_FORMATS_GGUF_WRITE_H
#define WEFT_RUNTIME_FORMATS_GGUF_WRITE_H

#include "runtime/base/diag.h"
#include "runtime/base/dtype.h"
#include "runtime/formats/value.h"

typedef struct gguf_writer gguf_writer;
typedef struct gguf_sink gguf_sink;

gguf_writer *gguf_writer_create(void);
void gguf_writer_destroy(gguf_writer *w); /* NULL is fine */

/* Set a key; one of the same name is replaced in its place. False, and nothing set, if GGUF has no
 * form for v: a null, an object, or an array whose items differ in type. general.alignment, where
 * set, is a u32 power of two and is kept to. */
bool gguf_writer_key(gguf_writer *w, str name, value v);

/* Makes the data of one tensor: its bytes in order, in as many pieces as it likes. */
typedef weft_status gguf_fill(weft_diag *dg, gguf_sink *to, void *ctx);
weft_status gguf_sink_put(weft_diag *dg, gguf_sink *to, const void *data, size_t n) WEFT_MUST_USE;

/* Add a tensor, shape[rank] slowest first, of at most 4 dimensions that make whole blocks of t. */
void gguf_writer_tensor(gguf_writer *w, str name, dtype t, int rank, const int64_t *shape,
                        gguf_fill *fill, void *ctx);
/* The same with data that is there already, and until gguf_writer_write returns. */
void gguf_writer_tensor_data(gguf_writer *w, str name, dtype t, int rank, const int64_t *shape,
                             const void *data);

/* All that stands before the data, added to out, which is empty: magic, keys, directory, and zeros up to the first
 * tensor. Returns how many bytes of data belong behind it. */
uint64_t gguf_writer_head(const gguf_writer *w, strbuf *out);

/* For a program that may be ended in the middle: called with the name of the file that is written until it is
 * complete, which is to be removed then, and with NULL once it is gone. */
void gguf_writer_on_part(gguf_writer *w, void (*report)(const char *path));

/* W1004, W1002, or what a fill returned. */
weft_status gguf_writer_write(weft_diag *dg, gguf_writer *w, const char *path) WEFT_MUST_USE;

#endif
