/* gguf_format.h - numbers of the GGUF format, for reader and writer.
 *
 *     "GGUF"  u32 version  u64 tensors  u64 keys
 *     keys:    str name, u32 type, value               str: u64 bytes, then that many
 *     tensors: str name, u32 rank, u64 sizes[rank] (fastest first), u32 type, u64 offset
 *     padding to the alignment; offsets count from here and are multiples of it
 *     tensor data
 *
 * https://github.com/ggml-org/ggml/blob/master/docs/gguf.md */
#ifndef WEFT_RUNTIME_FORMATS_GGUF_FORMAT_H
#define WEFT_RUNTIME_FORMATS_GGUF_FORMAT_H

#define GGUF_MAGIC "GGUF"
#define GGUF_KEY_ALIGNMENT "general.alignment"

enum {
    GGUF_VERSION = 3,
    GGUF_ALIGNMENT = 32, /* where general.alignment is absent */
    GGUF_ALIGNMENT_MAX = 1 << 24,
    GGUF_RANK_MAX = 4,
    GGUF_NAME_MAX = 65535,    /* bytes in the name of a key or tensor */
    GGUF_DEPTH_MAX = 8,       /* arrays within arrays */
    GGUF_ITEMS_MAX = 1 << 24, /* strings and arrays inside all arrays of a file */
    GGUF_TEXT_MAX = 1 << 28,  /* bytes of a string */
    GGUF_HEAD_MAX = 1 << 30,  /* bytes before the data: a file that is a hole costs time, too */
};

#endif
