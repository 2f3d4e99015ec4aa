/* gguf_bytes.h - a GGUF file byte by byte, for tests that need a wrong one or one in memory. */
#ifndef WEFT_TESTS_FORMATS_GGUF_BYTES_H
#define WEFT_TESTS_FORMATS_GGUF_BYTES_H

#include "runtime/base/str.h"
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

#endif
