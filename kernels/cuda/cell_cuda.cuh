/* cell_cuda.cuh - a state cell on a card: where its pages are, append, and convert. kcell.h says what a cell is, page_form.h
 * how a page lies in each form. */
#ifndef WEFT_KERNELS_CUDA_CELL_CUDA_CUH
#define WEFT_KERNELS_CUDA_CELL_CUDA_CUH

#include "kernels/cuda/block_cuda.cuh"
#include "kernels/cuda/numbers_cuda.cuh"
#include "kernels/page_form.h"

/* The tier in which a row at `pos` of sequence `seq` of the call sees entry `e` of its page tables: that of the entry's age,
 * or the next coarser one that has it. */
static __device__ int tier_of(const kcell *c, const kbatch *b, int64_t seq, int64_t pos, int64_t e)
{
    int64_t age = pos - ((e + 1) * c->page_tok - 1); /* of its youngest token */
    int k = 0;
    while (k + 1 < c->n_tier && e >= c->pinned && age >= kbatch_last(b, c->table + k))
        k++;
    while (k + 1 < c->n_tier && kbatch_pages(b, c->table + k, seq)[e] < 0)
        k++;
    return k;
}

/* The parts of a tier's pages; values not of a latent cell. */
static __device__ inline page_part key_part(const kcell *c, int tier)
{
    return page_part_of(c->tier[tier].key, PAGE_KEYS, c->page_tok, c->k);
}

static __device__ inline page_part value_part(const kcell *c, int tier)
{
    return page_part_of(c->tier[tier].value, PAGE_VALUES, c->page_tok, c->v);
}

/* Where a head's part begins in a page. */
static __device__ inline char *key_at(const kcell *c, int tier, int32_t page, int64_t head)
{
    return c->tier[tier].base + page * c->tier[tier].page_bytes + head * key_part(c, tier).bytes;
}

static __device__ inline char *value_at(const kcell *c, int tier, int32_t page, int64_t head)
{
    return c->tier[tier].base + page * c->tier[tier].page_bytes +
           c->heads * key_part(c, tier).bytes + head * value_part(c, tier).bytes;
}

/* ---- numbers of floats ---- */

static __device__ inline void float_store(kform form, char *at, int64_t i, float x)
{
    if (form == KFORM_F32)
        ((float *)at)[i] = x;
    else
        ((uint16_t *)at)[i] = form == KFORM_F16 ? to_f16(x) : to_bf16(x);
}

static __device__ inline float float_load(kform form, const char *at, int64_t i)
{
    if (form == KFORM_F32)
        return ((const float *)at)[i];
    uint16_t h = ((const uint16_t *)at)[i];
    return form == KFORM_F16 ? from_f16(h) : from_bf16(h);
}

/* ---- append: a call's rows into pages of tier 0 ---- */

/* The position of a row of the call, and the page it goes to. One row is of the call's only sequence: what is known by that is not
 * read, since loads that wait for each other are most of the time that appending takes. */
struct append_place {
    int32_t pos, page;
};

static __device__ inline append_place append_place_of(const kargs *k, int64_t row)
{
    const kbatch *b = k->batch;
    const bool one = k->n[0] == 1;
    const int64_t n_tok = one ? 1 : b->n_tok, n_seq = one ? 1 : b->n_seq;
    const int64_t seq = one ? 0 : b->data[KBATCH_SEQ * n_tok + row];
    const int32_t pos = b->data[KBATCH_POS * n_tok + row];
    const int64_t pages = KBATCH_PARTS * n_tok + b->n_table +
                          (k->cell->table * n_seq + seq) * (KBATCH_RANGE + b->n_page) +
                          KBATCH_RANGE;
    return append_place{pos, b->data[pages + (uint32_t)pos / (uint32_t)k->cell->page_tok]};
}

/* Heads of a row: n of them at x, of `width` numbers; at `to` of a page, head_bytes apart. */
struct append_heads {
    kform form;
    const float *x;
    char *to; /* in page 0 */
    int n, width;
    int64_t head_bytes, page_bytes;
    uint32_t page;
    bool aligned; /* heads begin at multiples of 16 bytes */
};

static __device__ APART void append_any(append_heads a, row_share by)
{
    char *to = a.to + a.page * a.page_bytes;
    for (int i = by.thread; i < a.n * a.width; i += by.threads)
        float_store(a.form, to + i / a.width * a.head_bytes, i % a.width, a.x[i]);
}

/* Of widths of whole eights to 16 bits, from and to multiples of 16 bytes: eight numbers at a time, loaded before the page
 * is known. */
static __device__ inline void append_eights(const append_heads &a, const row_share &by)
{
    const int eights = a.width / 8;
    UNROLLED(1)
    for (int i = by.thread; i < a.n * eights; i += by.threads) {
        const floats4 v[2] = {*(const floats4 *)(a.x + 8 * i), *(const floats4 *)(a.x + 8 * i + 4)};
        const int head = (int)((uint32_t)i / (uint32_t)eights);
        uint32_t half[8];
        bytes16 all;
        UNROLL
        for (int e = 0; e < 8; e++) {
            const float x = v[e / 4].x[e % 4];
            half[e] = a.form == KFORM_F16 ? to_f16(x) : to_bf16(x);
        }
        UNROLL
        for (int e = 0; e < 4; e++)
            all.w[e] = half[2 * e] | half[2 * e + 1] << 16;
        char *to = a.to + head * a.head_bytes + (i - head * eights) * 16;
        *(bytes16 *)(to + a.page * a.page_bytes) = all;
    }
}

/* Heads [head, head_end) of a row, of keys or of values, and where they go. */
static __device__ inline append_heads append_heads_of(const kargs *k, page_kind kind, int64_t row,
                                                      int head, int head_end)
{
    const kcell *c = k->cell;
    const kcell_tier *tier = &c->tier[0];
    const page_part keys = key_part(c, 0), part = kind == PAGE_KEYS ? keys : value_part(c, 0);
    const int64_t first = kind == PAGE_KEYS ? 0 : c->heads * keys.bytes; /* of a page */
    const append_place at = append_place_of(k, row);
    const int64_t tok = (uint32_t)at.pos % (uint32_t)c->page_tok;
    return append_heads{part.form,
                        row_in(k, kind == PAGE_KEYS ? 0 : 1, row) + head * part.width,
                        tier->base + first + head * part.bytes + page_row(&part, tok),
                        head_end - head,
                        (int)part.width,
                        part.bytes,
                        tier->page_bytes,
                        (uint32_t)at.page,
                        (tier->page_bytes | first | part.bytes) % 16 == 0 &&
                            is_aligned(tier->base)};
}

static __device__ inline void append_part(const kargs *k, page_kind kind, int64_t row, int head,
                                          int head_end, const row_share &by)
{
    const append_heads a = append_heads_of(k, kind, row, head, head_end);
    if ((a.form == KFORM_F16 || a.form == KFORM_BF16) && a.width % 8 == 0 && a.aligned &&
        is_aligned(a.x))
        append_eights(a, by);
    else
        append_any(a, by);
}

/* A tile is whole heads, of the keys where there are any, else of the values. */
static __device__ ONE_COPY void k_append_cuda(const kargs *k, const kthread *, int64_t begin,
                                              int64_t end)
{
    const kcell *c = k->cell;
    const int64_t width = k->in[0] ? c->k : c->v;
    const kpart p = part_of(k, c->heads * width, begin, end);
    const int head = (int)((uint32_t)p.col / (uint32_t)width);
    const int head_end = (int)((uint32_t)p.col_end / (uint32_t)width);
    const row_share by = rows_shared(k, (head_end - head) * (int)(width / 8));
    for (int64_t row = p.row + by.first; row < p.row_end; row += by.step) {
        if (k->in[0])
            append_part(k, PAGE_KEYS, row, head, head_end, by);
        if (k->in[1])
            append_part(k, PAGE_VALUES, row, head, head_end, by);
    }
}

/* ---- reading numbers of codes ---- */

/* Four codes of q8 from nibbles of q4: the lower or the upper ones of four bytes. */
static __device__ inline uint32_t nibble_codes(uint32_t bytes, bool upper)
{
    return ((upper ? bytes : bytes << 4) & 0xf0f0f0f0u) | 0x08080808u;
}

/* Is a form codes of four bits? */
static __device__ inline bool form_is_nibbles(kform f)
{
    return f == KFORM_Q4;
}

/* Bytes of the codes of a block: n numbers. */
static __device__ inline int code_bytes(kform f, int n)
{
    return form_is_nibbles(f) ? n / 2 : n;
}

/* Number `c` of token `t` of a block of codes; the token is one of the block's. */
static __device__ float code_load(const page_part &p, const char *block, int64_t t, int64_t c)
{
    const uint8_t *codes = (const uint8_t *)block + p.codes;
    const uint16_t *step = (const uint16_t *)block;
    bool key = p.kind == PAGE_KEYS;
    int64_t i = key ? c : t, other = key ? t : c; /* along a quad, and across */
    int code;
    if (!form_is_nibbles(p.form)) {
        code = codes[i / 4 * p.quad_bytes + other * 4 + i % 4] - PAGE_OFFSET;
    } else {
        int byte = codes[i / 8 * p.quad_bytes + other * 4 + i % 4];
        code = (i % 8 < 4 ? (byte & 15) << 4 : byte & 0xf0) - PAGE_CODE_MAX;
    }
    if (key)
        return from_f16(((const uint16_t *)(block + p.mid))[c]) + from_f16(step[c]) * (float)code;
    return 0.0f + from_f16(step[c / PAGE_GROUP * p.block_tok + t]) * (float)code;
}

/* Number `c` of token `tok` of the part at `at`, in any form. */
static __device__ ONE_COPY float page_number(const page_part &p, const char *at, int64_t tok,
                                             int64_t c)
{
    if (kform_is_float(p.form))
        return float_load(p.form, at + page_row(&p, tok), c);
    return code_load(p, at + page_block(&p, tok), tok % p.block_tok, c);
}

/* ---- convert: pages of a tier from those of the tier before ----
 *
 * As page_form.c does it, bit for bit. */

/* What a group is stored with: the numbers as f16, and as floats by which codes are found. */
struct group_scale {
    uint16_t step, mid;
    float by, from; /* code = (x - from) * by, rounded */
};

static __device__ group_scale scale_of(float low, float high, bool centred, bool finite)
{
    group_scale s = {0, centred ? to_f16(0.5f * low + 0.5f * high) : (uint16_t)0, 0, 0};
    s.from = from_f16(s.mid);
    float up = high - s.from, down = s.from - low, r = (up > down ? up : down) / PAGE_CODE_MAX;
    s.step = to_f16(r);
    if (from_f16(s.step) < r)
        s.step++; /* no number is more than PAGE_CODE_MAX steps away */
    float step = from_f16(s.step);
    if (!finite || !is_finite(s.from) || !is_finite(step))
        return group_scale{0x7e00, 0, 0, 0}; /* NaN; codes 0 */
    s.by = step > 0 ? 1 / step : 0;
    return s;
}

/* A whole number from -120 to 120, and PAGE_OFFSET. */
static __device__ uint8_t code_of(float x, const group_scale &s)
{
    const float magic = 0x1.8p23f; /* numbers near it have units of 1 */
    float whole = (x - s.from) * s.by + magic - magic;
    return (uint8_t)((s.by == 0 ? 0 : (int32_t)whole) + PAGE_OFFSET);
}

/* Numbers that are quantised: of a block of a part that is floats, 0 where it has none. */
struct float_block {
    const page_part *part;
    const char *at; /* its first token */
    int64_t tokens;
};

static __device__ inline float block_number(const float_block &b, int64_t t, int64_t c)
{
    if (t >= b.tokens || c >= b.part->width)
        return 0;
    return float_load(b.part->form, b.at + page_row(b.part, t), c);
}

static __device__ ONE_COPY group_scale key_scale(const float_block &b, int64_t c)
{
    float low = block_number(b, 0, c), high = low;
    uint32_t most = 0; /* of the magnitudes' bits */
    for (int64_t t = 0; t < b.tokens; t++) {
        float x = block_number(b, t, c);
        uint32_t magnitude = bits_of(x) & 0x7fffffffu;
        low = x < low ? x : low;
        high = x > high ? x : high;
        most = magnitude > most ? magnitude : most;
    }
    return scale_of(low, high, true, most < 0x7f800000u);
}

/* Of a token and a group of columns. */
static __device__ ONE_COPY group_scale value_scale(const float_block &b, int64_t t, int64_t group)
{
    uint32_t most = 0;
    for (int64_t c = group * PAGE_GROUP; c < (group + 1) * PAGE_GROUP; c++) {
        uint32_t magnitude = bits_of(block_number(b, t, c)) & 0x7fffffffu;
        most = magnitude > most ? magnitude : most;
    }
    bool finite = most < 0x7f800000u;
    return scale_of(0, finite ? float_of(most) : 0, false, finite);
}

/* Where the code of number i of a quad, or of two where nibbles share bytes, is among the codes of a block. */
static __device__ inline uint8_t *code_place(const page_part &p, char *block, int64_t i,
                                             int64_t other)
{
    int64_t each = form_is_nibbles(p.form) ? 8 : 4;
    return (uint8_t *)block + p.codes + i / each * p.quad_bytes + other * 4 + i % 4;
}

/* A thread has a channel, or two whose nibbles share bytes. */
static __device__ void keys_quantise(const page_part &to, char *block, const float_block &from)
{
    bool halves = form_is_nibbles(to.form);
    for (int64_t at = threadIdx.x; at < (halves ? to.padded / 2 : to.padded);
         at += block_threads()) {
        int64_t c = halves ? at / 4 * 8 + at % 4 : at;
        group_scale s = key_scale(from, c), s4 = halves ? key_scale(from, c + 4) : s;
        uint16_t *step = (uint16_t *)block, *mid = (uint16_t *)(block + to.mid);
        step[c] = s.step;
        mid[c] = s.mid;
        if (halves) {
            step[c + 4] = s4.step;
            mid[c + 4] = s4.mid;
        }
        for (int64_t t = 0; t < to.block_tok; t++) {
            uint8_t code = code_of(block_number(from, t, c), s);
            if (halves)
                code = (uint8_t)(code >> 4 | (code_of(block_number(from, t, c + 4), s4) & 0xf0));
            *code_place(to, block, c, t) = code;
        }
    }
}

/* Tokens t and, where nibbles share bytes, t + 4, of a group of columns: steps and codes. */
static __device__ void values_quantise(const page_part &to, char *block, const float_block &from)
{
    bool halves = form_is_nibbles(to.form);
    uint16_t *step = (uint16_t *)block;
    int64_t groups = (to.width + PAGE_GROUP - 1) / PAGE_GROUP;
    int64_t padded = page_pad(to.block_tok, PAGE_TOK_PAD), tokens = halves ? padded / 2 : padded;
    for (int64_t i = threadIdx.x; i < to.codes / 2; i += block_threads())
        step[i] = 0;
    block_sync();
    for (int64_t at = threadIdx.x; at < tokens * groups; at += block_threads()) {
        int64_t i = at / groups, g = at % groups, t = halves ? i / 4 * 8 + i % 4 : i, t4 = t + 4;
        group_scale s = value_scale(from, t, g), s4 = halves ? value_scale(from, t4, g) : s;
        if (t < to.block_tok)
            step[g * to.block_tok + t] = s.step;
        if (halves && t4 < to.block_tok)
            step[g * to.block_tok + t4] = s4.step;
        for (int64_t c = g * PAGE_GROUP; c < (g + 1) * PAGE_GROUP && c < to.padded; c++) {
            uint8_t code = code_of(block_number(from, t, c), s);
            if (halves)
                code = (uint8_t)(code >> 4 | (code_of(block_number(from, t4, c), s4) & 0xf0));
            *code_place(to, block, t, c) = code;
        }
    }
}

/* ---- f16 to codes, as prompts have it ----
 *
 * The same bits, with loads of several numbers that do not wait for each other: blocks of 32 or 64 tokens of widths of whole
 * groups, which have no padding. Eight lanes share what a step is for, and know its extremes when they have asked each other. */

enum { QUICK_LANES = 8, QUICK_TOKENS = PAGE_BLOCK / QUICK_LANES };

static __device__ inline bool is_quick(const page_part &to, const char *dst, const page_part &from,
                                       const char *src)
{
    return !kform_is_float(to.form) && from.form == KFORM_F16 && to.width % PAGE_GROUP == 0 &&
           (to.block_tok == PAGE_BLOCK || to.block_tok == PAGE_BLOCK / 2) && is_aligned(src) &&
           is_aligned(dst);
}

static __device__ inline float quick_number(const uint32_t *w, int i)
{
    return from_f16((uint16_t)(w[i / 2] >> 16 * (i % 2)));
}

/* Of all eight lanes that follow each other. */
static __device__ inline uint32_t quick_most(uint32_t most)
{
    UNROLL
    for (int by = 1; by < QUICK_LANES; by *= 2) {
        const uint32_t other = __shfl_xor_sync(ALL_LANES, most, by);
        most = other > most ? other : most;
    }
    return most;
}

/* Where nibbles share bytes: codes of a quad and of the one after it, which the next eight lanes have. Of the first of the two. */
static __device__ inline uint32_t quick_nibbles(uint32_t codes)
{
    const uint32_t next = __shfl_xor_sync(ALL_LANES, codes, QUICK_LANES);
    return (codes >> 4 & 0x0f0f0f0fu) | (next & 0xf0f0f0f0u);
}

/* Of a channel whose first number is `first`; x: what the lane has of it, n numbers. */
static __device__ inline group_scale quick_key_scale(const bytes8 *x, int n, int c, float first)
{
    float low = first, high = first;
    uint32_t most = 0;
    UNROLL
    for (int i = 0; i < QUICK_TOKENS; i++) {
        const float one = i < n ? quick_number(x[i].w, c) : first;
        const uint32_t magnitude = bits_of(one) & 0x7fffffffu;
        low = one < low ? one : low;
        high = one > high ? one : high;
        most = magnitude > most ? magnitude : most;
    }
    UNROLL
    for (int by = 1; by < QUICK_LANES; by *= 2) {
        const float less = __shfl_xor_sync(ALL_LANES, low, by);
        const float more = __shfl_xor_sync(ALL_LANES, high, by);
        low = less < low ? less : low;
        high = more > high ? more : high;
    }
    return scale_of(low, high, true, quick_most(most) < 0x7f800000u);
}

/* A lane has four channels of every eighth token. */
static __device__ APART void keys_quantise_quick(const page_part &to, char *block, const char *from)
{
    const int lane = lane_index() % QUICK_LANES, n = (int)to.block_tok / QUICK_LANES;
    const int quads = (int)to.width / PAGE_QUAD, row = (int)to.width * 2;
    const bool nibbles = form_is_nibbles(to.form);
    UNROLLED(1)
    for (int first = warp_index() * (WARP / QUICK_LANES); first < quads;
         first += warp_count() * (WARP / QUICK_LANES)) {
        const int quad = first + lane_index() / QUICK_LANES;
        const char *at = from + quad * (PAGE_QUAD * 2);
        const bytes8 begin = *(const bytes8 *)at;
        bytes8 x[QUICK_TOKENS], step = {}, mid = {};
        uint32_t codes[QUICK_TOKENS] = {};
        UNROLL
        for (int i = 0; i < QUICK_TOKENS; i++)
            x[i] = i < n ? *(const bytes8 *)(at + (i * QUICK_LANES + lane) * row) : bytes8{};
        UNROLL
        for (int c = 0; c < PAGE_QUAD; c++) {
            const group_scale s = quick_key_scale(x, n, c, quick_number(begin.w, c));
            step.w[c / 2] |= (uint32_t)s.step << 16 * (c % 2);
            mid.w[c / 2] |= (uint32_t)s.mid << 16 * (c % 2);
            UNROLL
            for (int i = 0; i < QUICK_TOKENS; i++)
                codes[i] |= (uint32_t)code_of(quick_number(x[i].w, c), s) << 8 * c;
        }
        if (lane == 0) {
            *(bytes8 *)(block + quad * (PAGE_QUAD * 2)) = step;
            *(bytes8 *)(block + to.mid + quad * (PAGE_QUAD * 2)) = mid;
        }
        char *out = block + to.codes + (nibbles ? quad / 2 : quad) * to.quad_bytes;
        UNROLL
        for (int i = 0; i < QUICK_TOKENS; i++) {
            const uint32_t four = nibbles ? quick_nibbles(codes[i]) : codes[i];
            if (i < n && (!nibbles || quad % 2 == 0))
                *(uint32_t *)(out + (i * QUICK_LANES + lane) * PAGE_QUAD) = four;
        }
    }
}

/* A lane has eight columns of four tokens. */
static __device__ APART void values_quantise_quick(const page_part &to, char *block,
                                                   const char *from)
{
    const int lane = lane_index() % QUICK_LANES, row = (int)to.width * 2;
    const int quads = (int)to.block_tok / PAGE_QUAD, all = quads * (int)(to.width / PAGE_GROUP);
    const bool nibbles = form_is_nibbles(to.form);
    UNROLLED(1)
    for (int first = warp_index() * (WARP / QUICK_LANES); first < all;
         first += warp_count() * (WARP / QUICK_LANES)) {
        const int i = first + lane_index() / QUICK_LANES, group = i / quads, quad = i % quads;
        const int col = group * PAGE_GROUP + lane * 8;
        const char *at = from + quad * PAGE_QUAD * row + col * 2;
        bytes16 x[PAGE_QUAD];
        bytes8 step = {};
        uint32_t codes[8] = {};
        UNROLL
        for (int t = 0; t < PAGE_QUAD; t++)
            x[t] = *(const bytes16 *)(at + t * row);
        UNROLL
        for (int t = 0; t < PAGE_QUAD; t++) {
            uint32_t most = 0;
            UNROLL
            for (int c = 0; c < 8; c++) {
                const uint32_t magnitude = bits_of(quick_number(x[t].w, c)) & 0x7fffffffu;
                most = magnitude > most ? magnitude : most;
            }
            most = quick_most(most);
            const bool finite = most < 0x7f800000u;
            const group_scale s = scale_of(0, finite ? float_of(most) : 0, false, finite);
            step.w[t / 2] |= (uint32_t)s.step << 16 * (t % 2);
            UNROLL
            for (int c = 0; c < 8; c++)
                codes[c] |= (uint32_t)code_of(quick_number(x[t].w, c), s) << 8 * t;
        }
        if (lane == 0)
            *(bytes8 *)(block + (group * to.block_tok + quad * PAGE_QUAD) * 2) = step;
        UNROLL
        for (int c = 0; c < 8; c++)
            codes[c] = nibbles ? quick_nibbles(codes[c]) : codes[c];
        if (nibbles && quad % 2 != 0)
            continue;
        char *out =
            block + to.codes + (nibbles ? quad / 2 : quad) * to.quad_bytes + col * PAGE_QUAD;
        *(bytes16 *)out = bytes16{{codes[0], codes[1], codes[2], codes[3]}};
        *(bytes16 *)(out + 16) = bytes16{{codes[4], codes[5], codes[6], codes[7]}};
    }
}

/* q8 to q4: what is before the codes stays; two quads of bytes become one of nibbles. */
static __device__ void codes_halve(const page_part &to, char *dst, const page_part &from,
                                   const char *src, int64_t bytes)
{
    const uint8_t *code = (const uint8_t *)src + from.codes;
    uint8_t *pair = (uint8_t *)dst + to.codes;
    int64_t quad = to.quad_bytes;
    for (int64_t i = threadIdx.x; i < to.codes; i += block_threads())
        dst[i] = src[i];
    for (int64_t i = threadIdx.x; i < bytes; i += block_threads()) {
        int64_t low = i / quad * 2 * quad + i % quad;
        pair[i] = (uint8_t)(code[low] >> 4 | (code[low + quad] & 0xf0));
    }
}

/* Bytes of all codes of a block. */
static __device__ int64_t codes_bytes(const page_part &p)
{
    int64_t along = p.kind == PAGE_KEYS ? p.padded : page_pad(p.block_tok, PAGE_TOK_PAD);
    return along / (form_is_nibbles(p.form) ? 8 : 4) * p.quad_bytes;
}

static __device__ void block_convert(const page_part &to, char *dst, const page_part &from,
                                     const char *src)
{
    int64_t bytes = codes_bytes(to);
    for (int64_t i = to.codes + bytes + threadIdx.x; i < to.block_bytes; i += block_threads())
        dst[i] = 0;
    float_block b = {&from, src, to.block_tok};
    if (!kform_is_float(from.form))
        codes_halve(to, dst, from, src, bytes);
    else if (is_quick(to, dst, from, src) && to.kind == PAGE_KEYS)
        keys_quantise_quick(to, dst, src);
    else if (is_quick(to, dst, from, src))
        values_quantise_quick(to, dst, src);
    else if (to.kind == PAGE_KEYS)
        keys_quantise(to, dst, b);
    else
        values_quantise(to, dst, b);
}

static __device__ ONE_COPY void part_convert(const page_part &to, char *dst, const page_part &from,
                                             const char *src)
{
    if (to.form == from.form) {
        for (int64_t i = threadIdx.x; i < to.bytes; i += block_threads())
            dst[i] = src[i];
    } else if (kform_is_float(to.form)) {
        for (int64_t i = threadIdx.x; i < to.page_tok * to.width; i += block_threads())
            float_store(to.form, dst, i, float_load(from.form, src, i));
    } else {
        for (int64_t tok = 0; tok < to.page_tok; tok += to.block_tok)
            block_convert(
                to, dst + page_block(&to, tok), from,
                src + (kform_is_float(from.form) ? page_row(&from, tok) : page_block(&from, tok)));
    }
}

/* A head of a page. */
static __device__ void head_convert(const kcell *c, int tier, int32_t from, int32_t to,
                                    int64_t head)
{
    part_convert(key_part(c, tier), key_at(c, tier, to, head), key_part(c, tier - 1),
                 key_at(c, tier - 1, from, head));
    if (!c->latent)
        part_convert(value_part(c, tier), value_at(c, tier, to, head), value_part(c, tier - 1),
                     value_at(c, tier - 1, from, head));
}

/* Pages of all sequences are counted one after the other. */
static __device__ ONE_COPY void k_convert_cuda(const kargs *k, const kthread *, int64_t begin,
                                               int64_t end)
{
    const kcell *c = k->cell;
    int tier = (int)k->size.convert.tier;
    int64_t table = c->table + tier, first = 0; /* unit of the sequence's first page */
    for (int64_t s = 0; s < k->batch->n_seq && first < end; s++) {
        const int32_t *range = kbatch_convert(k->batch, table, s);
        const int32_t *from = kbatch_pages(k->batch, table - 1, s),
                      *to = kbatch_pages(k->batch, table, s);
        int64_t n = (range[1] - range[0]) * c->heads;
        int64_t u = begin > first ? begin - first : 0, stop = end - first < n ? end - first : n;
        for (; u < stop; u++) {
            int64_t e = range[0] + u / c->heads;
            head_convert(c, tier, from[e], to[e], u % c->heads);
        }
        first += n;
    }
}

#endif
