/* gguf_bytes.h - a GGUF file byte by byte, for tests that need a wrong one or one in memory. */
#ifndef WEFT_TESTS_FORMATS_GGUF_BYTES_H
#define WEFT_TESTS_FORMATS_GGUF_BYTES_H

#include "runtime/base/dtype.h"
#include <string.h>

static inline void put_u32(strbuf *b, uint32_t x)
{
    strbuf_put(b, (str){(const char *)&x, sizeof x});
}

static inline void put_u64(strbuf *b, uint64_t x)
{
    strbuf_put(b, (str){(const char *)&x, sizeof x});
}

static inline void put_text(strbuf *b, const char *s)
{
    put_u64(b, strlen(s));
    strbuf_put(b, str_of(s));
}

static inline void put_head(strbuf *b, uint32_t version, uint64_t n_tensor, uint64_t n_key)
{
    strbuf_put(b, STR("GGUF"));
    put_u32(b, version);
    put_u64(b, n_tensor);
    put_u64(b, n_key);
}

static inline void put_key_u32(strbuf *b, const char *name, uint32_t x)
{
    put_text(b, name);
    put_u32(b, 4);
    put_u32(b, x);
}

static inline void put_key_str(strbuf *b, const char *name, const char *s)
{
    put_text(b, name);
    put_u32(b, 8);
    put_text(b, s);
}

/* sizes[rank] as the file has them, fastest first. */
static inline void put_tensor(strbuf *b, const char *name, uint32_t rank, const uint64_t *sizes,
                              uint32_t type, uint64_t offset)
{
    put_text(b, name);
    put_u32(b, rank);
    for (uint32_t i = 0; i < rank; i++)
        put_u64(b, sizes[i]);
    put_u32(b, type);
    put_u64(b, offset);
}

static inline void put_padding(strbuf *b, size_t align)
{
    strbuf_fill(b, 0, (align - b->n % align) % align);
}

/* A tensor in a table of them. */
typedef struct {
    const char *name;
    dtype type;
    uint32_t rank;
    uint64_t sizes[3]; /* fastest first */
} gguf_row;

static inline size_t gguf_row_bytes(const gguf_row *r)
{
    size_t n = dtype_row_of(r->type)->bytes;
    for (uint32_t i = 0; i < r->rank; i++)
        n *= (size_t)r->sizes[i];
    return n / (size_t)dtype_row_of(r->type)->elems;
}

enum { GGUF_ALIGN = 32 };

/* Their directory, up to where their data goes, one at GGUF_ALIGN after the other: so many bytes. */
static inline size_t put_rows(strbuf *b, const gguf_row *rows, size_t n)
{
    size_t at = 0;
    for (size_t i = 0; i < n; i++) {
        put_tensor(b, rows[i].name, rows[i].rank, rows[i].sizes,
                   (uint32_t)dtype_row_of(rows[i].type)->ggml, at);
        at += (gguf_row_bytes(&rows[i]) + GGUF_ALIGN - 1) / GGUF_ALIGN * GGUF_ALIGN;
    }
    put_padding(b, GGUF_ALIGN);
    return at;
}

static inline void put_noise(strbuf *b, size_t n, uint32_t seed)
{
    for (size_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        strbuf_putc(b, (char)(seed >> 24));
    }
}

#endif
