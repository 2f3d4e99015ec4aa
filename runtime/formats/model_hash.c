/* model_hash.c - the identity of a model for caches: MurmurHash3, x64, 128 bits, over a stream.
 *
 * The function is Austin Appleby's, in the public domain: https://github.com/aappleby/smhasher.
 * Every item goes in with its length or type, so that no two directories give the same stream. */
#include "runtime/formats/model_file_impl.h"

typedef struct {
    uint64_t h1, h2;
    unsigned char block[16];
    size_t n; /* bytes so far; n % 16 of them wait in block */
} hasher;

static uint64_t rotl(uint64_t x, int r)
{
    return x << r | x >> (64 - r);
}

static uint64_t scramble1(uint64_t k)
{
    return rotl(k * 0x87c37b91114253d5u, 31) * 0x4cf5ad432745937fu;
}

static uint64_t scramble2(uint64_t k)
{
    return rotl(k * 0x4cf5ad432745937fu, 33) * 0x87c37b91114253d5u;
}

static void take_block(hasher *h)
{
    uint64_t k1, k2;
    memcpy(&k1, h->block, 8);
    memcpy(&k2, h->block + 8, 8);
    h->h1 = (rotl(h->h1 ^ scramble1(k1), 27) + h->h2) * 5 + 0x52dce729;
    h->h2 = (rotl(h->h2 ^ scramble2(k2), 31) + h->h1) * 5 + 0x38495ab5;
}

static void put(hasher *h, const void *data, size_t bytes)
{
    const unsigned char *p = data;
    while (bytes > 0) {
        size_t have = h->n % 16, n = bytes < 16 - have ? bytes : 16 - have;
        memcpy(h->block + have, p, n);
        h->n += n;
        p += n;
        bytes -= n;
        if (h->n % 16 == 0)
            take_block(h);
    }
}

static uint64_t final_mix(uint64_t k)
{
    k = (k ^ k >> 33) * 0xff51afd7ed558ccdu;
    k = (k ^ k >> 33) * 0xc4ceb9fe1a85ec53u;
    return k ^ k >> 33;
}

static model_hash finish(hasher *h)
{
    uint64_t k1, k2;
    memset(h->block + h->n % 16, 0, 16 - h->n % 16);
    memcpy(&k1, h->block, 8);
    memcpy(&k2, h->block + 8, 8);
    if (h->n % 16 != 0) {
        h->h2 ^= scramble2(k2);
        h->h1 ^= scramble1(k1);
    }
    h->h1 ^= h->n;
    h->h2 ^= h->n;
    h->h1 += h->h2;
    h->h2 += h->h1;
    h->h1 = final_mix(h->h1);
    h->h2 = final_mix(h->h2);
    h->h1 += h->h2;
    h->h2 += h->h1;
    return (model_hash){h->h1, h->h2};
}

static void put_u64(hasher *h, uint64_t x)
{
    put(h, &x, sizeof x);
}

static void put_str(hasher *h, str s)
{
    put_u64(h, s.n);
    put(h, s.p, s.n);
}

/* Types go in by name: the numbers of the enums may change. */
static void put_type(hasher *h, value_type t)
{
    put_str(h, str_of(value_type_row_of(t)->text));
}

static void put_value(hasher *h, const value *v);

static void put_array(hasher *h, const value *v)
{
    size_t n = value_count(v), item_bytes = value_type_row_of(v->item)->bytes;
    const str *strs = value_strs(v);
    put_type(h, v->item);
    put_u64(h, n);
    if (item_bytes > 0) {
        put(h, v->as.array.data, n * item_bytes);
        return;
    }
    for (size_t i = 0; i < n; i++)
        if (strs)
            put_str(h, strs[i]);
        else
            put_value(h, &((const value *)v->as.array.data)[i]);
}

static void put_value(hasher *h, const value *v)
{
    put_type(h, v->type);
    switch (value_kind_of(v)) {
    case VALUE_NULL:
        break;
    case VALUE_BOOL:
        put_u64(h, v->as.b);
        break;
    case VALUE_INT:
        put_u64(h, v->type == VT_U64 ? v->as.u : (uint64_t)v->as.i);
        break;
    case VALUE_FLOAT:
        put(h, &v->as.f, sizeof v->as.f);
        break;
    case VALUE_STR:
        put_str(h, v->as.s);
        break;
    case VALUE_ARRAY:
        put_array(h, v);
        break;
    case VALUE_OBJECT:
        put_u64(h, value_count(v));
        for (size_t i = 0; i < value_count(v); i++) {
            put_str(h, v->as.object.members[i].name);
            put_value(h, &v->as.object.members[i].v);
        }
        break;
    }
}

static void put_model(hasher *h, const model_file *mf)
{
    put_u64(h, (uint64_t)mf->format);
    put_value(h, &mf->keys);
    put_u64(h, mf->tensors.n);
    for (size_t i = 0; i < mf->tensors.n; i++) {
        const model_tensor *t = &mf->tensors.at[i];
        put_str(h, t->name);
        put_str(h, str_of(dtype_row_of(t->type)->name));
        put_u64(h, (uint64_t)t->rank);
        for (int j = 0; j < t->rank; j++)
            put_u64(h, (uint64_t)t->shape[j]);
        put_u64(h, (uint64_t)t->part);
        put_u64(h, t->offset);
    }
}

model_hash model_file_hash(const model_file *mf)
{
    hasher h = {0};
    put_model(&h, mf);
    return finish(&h);
}

enum { SAMPLE_BYTES = 512 };

static void put_sample(hasher *h, const model_tensor *t)
{
    const unsigned char *p = t->data;
    size_t n = t->bytes < SAMPLE_BYTES ? t->bytes : SAMPLE_BYTES, last = t->bytes - n;
    put(h, p, n);
    put(h, p + last / 2, n);
    put(h, p + last, n);
}

model_hash model_file_identity(const model_file *mf)
{
    hasher h = {0};
    put_model(&h, mf);
    for (size_t i = 0; i < mf->tensors.n; i++)
        if (mf->tensors.at[i].bytes > 0)
            put_sample(&h, &mf->tensors.at[i]);
    return finish(&h);
}

bool model_file_stamp(const model_file *mf, model_hash *out_hash)
{
    hasher h = {0};
    put_model(&h, mf);
    for (size_t i = 0; i < mf->parts.n; i++) {
        const model_part_impl *p = &mf->parts.at[i];
        if (!p->map)
            return false;
        put_u64(&h, (uint64_t)p->stamp.st_dev);
        put_u64(&h, (uint64_t)p->stamp.st_ino);
        put_u64(&h, (uint64_t)p->stamp.st_size);
        put_u64(&h, (uint64_t)p->stamp.st_mtim.tv_sec);
        put_u64(&h, (uint64_t)p->stamp.st_mtim.tv_nsec);
    }
    *out_hash = finish(&h);
    return true;
}
