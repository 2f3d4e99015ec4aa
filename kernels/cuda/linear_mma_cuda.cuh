/* linear_mma_cuda.cuh - x times w transposed for many rows, by matrix instructions: both as bf16, sums in f32.
 *
 * A unit is a square of the result, MMA_ROWS by MMA_COLS. Its block walks along the columns of x and w, MMA_DEPTH at a time,
 * through a ring of stages in scratch: while one is multiplied, the next ones are filled. Weights that are not bf16 become so
 * on the way in.
 *
 * A stage has a line of 128 bytes for each row of x, then for each row of w. Piece p (16 bytes) of line l lies at p ^ (l % 8),
 * so that the eight lines that an instruction reads at once are in different banks; it is the order that instructions of sm_90a
 * know.
 *
 * A card whose blocks have less shared memory than that keeps scratch in its own memory, which these instructions cannot read: there
 * threads multiply one by one. It is slow, and right; weft_squares does with fewer stages.
 *
 * Where numbers of x are sums of three bf16 (ACT_BF3T) or of two (ACT_BF2T) each stage of w comes as often, with the parts of x in
 * turn. F16 weights are two bf16 then, which have all of their bits: there are two walks, one with each.
 *
 * A warp has a strip of 16 rows; where a block has fewer warps than strips, it walks as often as it has to. Units that follow
 * each other share rows of w. */
#ifndef WEFT_KERNELS_CUDA_LINEAR_MMA_CUDA_CUH
#define WEFT_KERNELS_CUDA_LINEAR_MMA_CUDA_CUH

#include "kernels/cuda/mma_cuda.cuh"
#include "kernels/cuda/mma_size.h"
#include "kernels/cuda/weights_cuda.cuh"

enum {
    STRIP_ROWS = 16, /* of a warp */
    STRIPS = MMA_ROWS / STRIP_ROWS,
    FRAG_COLS = 8, /* of which a thread has two, in two rows */
    FRAGS = MMA_COLS / FRAG_COLS,
    PIECES = MMA_LINE / 16, /* of a line */
    AHEAD = MMA_STAGES - 3  /* stages that are filled before they are needed */
};

/* ---- what a card has instructions for ----
 *
 * add_products: what a stage adds to the sums of a strip; beyond the rows and columns that there are, to anything. PRODUCTS_LATE: it
 * may return before it has read the stage. */

static __device__ inline char *piece_at(char *lines, int line, int piece)
{
    return lines + line * MMA_LINE + ((piece ^ (line % PIECES)) * 16);
}

#ifdef __CUDACC__
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
#include "kernels/cuda/wgmma_cuda.cuh"

enum { PRODUCTS_LATE = true };

/* Where lines of 128 bytes in the order above begin, as the instruction wants it. */
static __device__ inline uint64_t lines_at(const char *lines)
{
    return (uint64_t)((shared_at(lines) & 0x3ffff) >> 4) | 1ull << 16 | 64ull << 32 | 1ull << 62;
}

/* By four warps together, 64 rows; done when products_wait has returned. */
static __device__ inline void add_products(float (*sum)[4], char *x, char *w, int strip, int, int)
{
    uint64_t a = lines_at(x + strip / 4 * 64 * MMA_LINE), b = lines_at(w);
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    UNROLL
    for (int i = 0; i < MMA_DEPTH / 16; i++)
        wgmma_64x256x16(sum, a + 2 * i, b + 2 * i); /* 32 bytes on */
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

template <int left> static __device__ inline void products_wait(void)
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(left) : "memory");
}

/* After all products: sums are read from here on only, which the compiler could not know. */
static __device__ inline void sums_done(float (*sum)[4])
{
    UNROLL
    for (int i = 0; i < FRAGS; i++)
        asm volatile(""
                     : "+f"(sum[i][0]), "+f"(sum[i][1]), "+f"(sum[i][2]),
                       "+f"(sum[i][3])::"memory");
}

/* What threads wrote to shared memory is there for these instructions. */
static __device__ inline void stage_done(void)
{
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
#else
enum { PRODUCTS_LATE = false };

static __device__ inline void add_products(float (*sum)[4], char *x, char *w, int strip, int, int)
{
    const int lane = lane_index();
    UNROLL
    for (int p = 0; p < PIECES; p += 2) { /* 16 deep */
        uint32_t a[4], b[4];
        load_frags(a, piece_at(x, strip * STRIP_ROWS + lane % 16, p + lane / 16));
        UNROLL
        for (int i = 0; i < FRAGS; i += 2) {
            load_frags(b, piece_at(w, i * FRAG_COLS + lane % 8 + lane / 16 * 8, p + lane / 8 % 2));
            multiply_bf16(sum[i], a, b);
            multiply_bf16(sum[i + 1], a, b + 2);
        }
    }
}

template <int left> static __device__ inline void products_wait(void)
{
}

static __device__ inline void sums_done(float (*)[4])
{
}

static __device__ inline void stage_done(void)
{
}
#endif
#else
enum { PRODUCTS_LATE = true }; /* as if */

/* Numbers of a line as floats; F16: they are f16, not bf16. */
template <bool F16 = false> static inline void line_floats(char *lines, int line, float *to)
{
    for (int piece = 0; piece < PIECES; piece++) {
        uint16_t h[EIGHT];
        memcpy(h, piece_at(lines, line, piece), sizeof h);
        for (int e = 0; e < EIGHT; e++)
            to[piece * EIGHT + e] = F16 ? from_f16(h[e]) : from_bf16(h[e]);
    }
}

static inline float line_dot(const float *x, const float *w)
{
    float some[EIGHT] = {}, sum = 0;
    for (int c = 0; c < MMA_DEPTH; c++)
        some[c % EIGHT] += x[c] * w[c];
    for (int e = 0; e < EIGHT; e++)
        sum += some[e];
    return sum;
}

static inline void add_products(float (*sum)[4], char *x, char *w, int strip, int rows, int cols)
{
    const int row = strip * STRIP_ROWS + lane_index() / 4, col = lane_index() % 4 * 2;
    float a[2][MMA_DEPTH], b[MMA_DEPTH];
    for (int e = 0; e < 2 && row + e * 8 < rows; e++)
        line_floats(x, row + e * 8, a[e]);
    for (int i = 0; i < FRAGS; i++)
        for (int e = 0; e < 2 && row < rows && i * FRAG_COLS + col + e < cols; e++) {
            line_floats(w, i * FRAG_COLS + col + e, b);
            sum[i][e] += line_dot(a[0], b);
            if (row + 8 < rows)
                sum[i][2 + e] += line_dot(a[1], b);
        }
}

template <int left> static inline void products_wait(void)
{
}

static inline void sums_done(float (*)[4])
{
}

static inline void stage_done(void)
{
}
#endif

/* ---- lines of weights ---- */

/* What is left of a weight without its first bf16: exact as a second one. Of one that is no number it is 0. */
static __device__ inline float bf16_rest(float w)
{
    const float rest = w - from_bf16(to_bf16(w));
    return fabsf(rest) < INFINITY ? rest : 0;
}

struct weight_F16_rest {
    static __device__ inline void eight(const uint8_t *row, uint32_t c, uint32_t n, float *w)
    {
        weight_F16::eight(row, c, n, w);
        UNROLL
        for (int i = 0; i < EIGHT; i++)
            w[i] = bf16_rest(w[i]);
    }
};

template <class W> struct is_F16 {
    enum { yes = false };
};

template <> struct is_F16<weight_F16> {
    enum { yes = true };
};

/* Columns [c, c + MMA_DEPTH) of a row of n as bf16, two to a word; zeros from n on. */
template <class W>
static __device__ inline void line_of(const uint8_t *row, int64_t c, int64_t n, uint32_t *h)
{
    for (int i = 0; i < MMA_DEPTH && c + i < n; i += EIGHT) {
        float v[EIGHT];
        W::eight(row, c + i, n, v);
        UNROLL
        for (int e = 0; e < EIGHT; e += 2)
            h[(i + e) / 2] = bf16_pair(v[e], v[e + 1]);
    }
}

#ifdef __CUDACC__
static __device__ inline uint32_t bf16_twice(float x)
{
    uint32_t h;
    asm("cvt.rn.bf16x2.f32 %0, %1, %1;" : "=r"(h) : "f"(x));
    return h;
}

static __device__ inline uint32_t bf16_fma(uint32_t a, uint32_t b, uint32_t c)
{
    uint32_t d;
    asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
    return d;
}

/* 32 bytes are 64 columns, of two groups. Whole numbers below 128 are exact in bf16, and 0x4300 is 128: its lower bits are a code.
 * Scale and minimum are rounded to bf16 themselves. */
struct line_Q4_K {
    bytes16 head, code[2];
    int group;
};

static __device__ inline line_Q4_K load_Q4_K(const uint8_t *row, int64_t c)
{
    const uint8_t *p = row + c / 256 * 144;
    const int g = (int)(c % 256 / 32);
    return line_Q4_K{load_16(p), {load_16(p + 16 + g * 16), load_16(p + 32 + g * 16)}, g};
}

static __device__ inline void line_of_Q4_K(const line_Q4_K &l, uint32_t *h)
{
    const float d = from_f16((uint16_t)l.head.w[0]), m = from_f16((uint16_t)(l.head.w[0] >> 16));
    UNROLL
    for (int half = 0; half < 2; half++) {
        int scale, min;
        scale_min_6(l.head, l.group + half, &scale, &min);
        const uint32_t by = bf16_twice(d * (float)scale), less = bf16_twice(-m * (float)min);
        UNROLL
        for (int i = 0; i < 8; i++) {
            uint32_t x = l.code[i / 4].w[i % 4] >> 4 * half;
            /* bytes 0, 1 and 2, 3 apart, each in 16 bits */
            uint32_t low = __byte_perm(x, 0, 0x4140), high = __byte_perm(x, 0, 0x4342);
            const uint32_t one = 0x3f803f80u, offset = 0xc300c300u; /* 1, -128 */
            low = bf16_fma((low & 0x000f000fu) | 0x43004300u, one, offset);
            high = bf16_fma((high & 0x000f000fu) | 0x43004300u, one, offset);
            h[half * 16 + i * 2] = bf16_fma(low, by, less);
            h[half * 16 + i * 2 + 1] = bf16_fma(high, by, less);
        }
    }
}

template <>
__device__ inline void line_of<weight_Q4_K>(const uint8_t *row, int64_t c, int64_t, uint32_t *h)
{
    line_of_Q4_K(load_Q4_K(row, c), h);
}
#endif

/* ---- stages ---- */

struct mma_job {
    const char *x;
    const uint8_t *w;
    int64_t x_pitch, w_pitch;
    int64_t row, row_end, col, col_end; /* of the square */
    int64_t n;                          /* columns of x and w */
    int parts;                          /* of each number of x: ACT_BF1, ACT_BF2T or ACT_BF3T */
    int walks;                          /* as many as a weight has parts */
    dtype type;                         /* of w, where the code is for any */
    bool copies;                        /* weights as they are: bf16, in whole pieces */
    const int32_t *list;                /* the rows of x, where they do not follow each other */
};

/* Which pieces of lines a thread copies: the same one of every `step` lines. */
struct copier {
    const char *from; /* of the first line, column 0 */
    int64_t pitch;    /* of `step` lines */
    int first, step;  /* lines */
    int lines;        /* that there are */
    int piece;
};

/* Of rows in `parts` parts, 32 columns of each in turn; for one of some threads. */
static __device__ inline copier copier_of(const void *rows, int64_t pitch, int64_t row, int64_t end,
                                          int parts, int thread, int threads)
{
    const int piece = thread % PIECES, line = thread / PIECES;
    copier c;
    c.from = (const char *)rows + (row + line) * pitch + (piece / 4 * parts * 4 + piece % 4) * 16;
    c.first = line;
    c.step = threads / PIECES;
    c.pitch = pitch * c.step;
    c.lines = (int)(end - row);
    c.piece = piece;
    return c;
}

/* Columns [at, at + MMA_DEPTH) of LINES lines, which begin `bytes` from column 0 on; zeros where there are none. */
template <int LINES>
static __device__ inline void copy_lines(const copier &c, const void *some, char *to, int64_t bytes,
                                         int64_t at, int64_t n)
{
    const char *from = c.from + bytes;
    const bool inside = at + c.piece * EIGHT < n;
    UNROLLED(4)
    for (int line = c.first; line < LINES; line += c.step) {
        bool there = inside && line < c.lines;
        copy_piece(piece_at(to, line, c.piece), there ? from : (const char *)some, there);
        from += c.pitch;
    }
}

/* The same of rows of x that the job has a list of. */
static __device__ inline void gather_lines(const copier &c, const mma_job &j, char *to,
                                           int64_t bytes, int64_t at)
{
    const char *from = j.x + (c.piece / 4 * j.parts * 4 + c.piece % 4) * 16 + bytes;
    const bool inside = at + c.piece * EIGHT < j.n;
    UNROLLED(2)
    for (int line = c.first; line < MMA_ROWS; line += c.step) {
        const bool there = inside && line < c.lines;
        copy_piece(piece_at(to, line, c.piece), there ? from + j.list[line] * j.x_pitch : j.x,
                   there);
    }
}

static __device__ inline void put_line(char *to, int line, const uint32_t *h)
{
    UNROLL
    for (int piece = 0; piece < PIECES; piece++)
        *(bytes16 *)piece_at(to, line, piece) =
            bytes16{{h[piece * 4], h[piece * 4 + 1], h[piece * 4 + 2], h[piece * 4 + 3]}};
}

/* The same of weights that are not bf16: a thread has whole lines. */
template <class W> static __device__ void read_lines(const mma_job &j, char *to, int64_t at)
{
    for (int line = (int)threadIdx.x; line < MMA_COLS; line += block_threads()) {
        uint32_t h[MMA_DEPTH / 2] = {};
        if (j.col + line < j.col_end)
            line_of<W>(j.w + (j.col + line) * j.w_pitch, at, j.n, h);
        put_line(to, line, h);
    }
}

template <> __device__ inline void read_lines<weight_any>(const mma_job &j, char *to, int64_t at)
{
    for (int line = (int)threadIdx.x; line < MMA_COLS; line += block_threads()) {
        uint32_t h[MMA_DEPTH / 2] = {};
        UNROLL
        for (int i = 0; i < MMA_DEPTH; i += EIGHT) {
            if (j.col + line >= j.col_end || at + i >= j.n)
                continue;
            const eight_floats v = eight_of(j.type, j.w + (j.col + line) * j.w_pitch,
                                            (uint32_t)(at + i), (uint32_t)j.n);
            UNROLL
            for (int e = 0; e < EIGHT; e += 2)
                h[(i + e) / 2] = bf16_pair(v.w[e], v.w[e + 1]);
        }
        put_line(to, line, h);
    }
}

struct mma_copiers {
    copier x, w;
};

static __device__ inline char *stage_at(char *scratch, int64_t i)
{
    return scratch + i % MMA_STAGES * MMA_STAGE_BYTES;
}

/* What is only copied of stage i of a walk; LIST: of rows that the job has a list of. */
template <bool LIST>
static __device__ inline void copy_stage(const mma_job &j, const mma_copiers &c, char *x, char *w,
                                         int64_t i)
{
    const int64_t at = i / j.parts * MMA_DEPTH;
    const int64_t bytes = at * 2 * j.parts + i % j.parts * 64;
    if (LIST)
        gather_lines(c.x, j, x, bytes, at);
    else
        copy_lines<MMA_ROWS>(c.x, j.x, x, bytes, at, j.n);
    if (j.copies)
        copy_lines<MMA_COLS>(c.w, j.x, w, at * 2, at, j.n);
}

template <class W>
static __device__ inline void fill_stage(const mma_job &j, const mma_copiers &c, char *scratch,
                                         int64_t i)
{
    char *x = stage_at(scratch, i), *w = x + MMA_ROWS * MMA_LINE;
    copy_stage<false>(j, c, x, w, i);
    if (!j.copies)
        read_lines<W>(j, w, i / j.parts * MMA_DEPTH);
}

/* One walk along the columns: the sums of one strip of the square for each warp. */
template <class W>
static __device__ void walk(const mma_job &j, char *scratch, int strip, float (*sum)[4])
{
    const int64_t stages = (j.n + MMA_DEPTH - 1) / MMA_DEPTH * j.parts;
    const int thread = (int)threadIdx.x, threads = block_threads();
    const mma_copiers c = {copier_of(j.x, j.x_pitch, j.row, j.row_end, j.parts, thread, threads),
                           copier_of(j.w, j.w_pitch, j.col, j.col_end, 1, thread, threads)};
    block_sync(); /* what was there has been read */
    for (int64_t i = 0; i < AHEAD; i++) {
        if (i < stages)
            fill_stage<W>(j, c, scratch, i);
        copies_group();
    }
    for (int64_t i = 0; i < stages; i++) {
        if (i + AHEAD < stages)
            fill_stage<W>(j, c, scratch, i + AHEAD);
        copies_group();
        copies_wait<AHEAD>();
        stage_done();
        block_sync(); /* stage i is there; stage i - 2 has been read by all, and is filled next */
        char *stage = stage_at(scratch, i);
        if (strip < STRIPS) {
            add_products(sum, stage, stage + MMA_ROWS * MMA_LINE, strip, (int)(j.row_end - j.row),
                         (int)(j.col_end - j.col));
            products_wait<1>();
        }
    }
    products_wait<0>();
    sums_done(sum);
}

/* ---- a square ---- */

template <class W> static __device__ void square(const kargs *k, const mma_job &j, char *scratch)
{
    const int lane = lane_index();
    const float *bias = (const float *)k->in[2];
    const int strips = (int)(j.row_end - j.row + STRIP_ROWS - 1) / STRIP_ROWS; /* that there are */
    for (int first = 0; first < strips; first += warp_count()) {
        const int strip = first + warp_index();
        float sum[FRAGS][4] = {};
        walk<W>(j, scratch, strip, sum);
        if constexpr (is_F16<W>::yes)
            if (j.walks > 1)
                walk<weight_F16_rest>(j, scratch, strip, sum);
        int64_t row = j.row + strip * STRIP_ROWS + lane / 4, col = j.col + lane % 4 * 2;
        UNROLL
        for (int i = 0; i < FRAGS; i++)
            UNROLL
        for (int e = 0; e < 4; e++) {
            int64_t r = row + e / 2 * 8, c = col + i * FRAG_COLS + e % 2;
            if (strip < STRIPS && r < j.row_end && c < j.col_end)
                row_out(k, 0, r)[c] = bias ? sum[i][e] + bias[c] : sum[i][e];
        }
    }
}

/* ---- without shared memory ---- */

/* Number c of a row of x. */
static __device__ inline float x_number(const mma_job &j, int64_t row, int64_t c)
{
    const uint16_t *x = (const uint16_t *)(j.x + row * j.x_pitch);
    float sum = 0;
    for (int p = j.parts; p-- > 0;)
        sum += from_bf16(x[(c / 32 * j.parts + p) * 32 + c % 32]);
    return sum;
}

template <class W> static __device__ void square_plain(const kargs *k, const mma_job &j)
{
    const float *bias = (const float *)k->in[2];
    const int64_t cols = j.col_end - j.col;
    for (int64_t i = threadIdx.x; i < (j.row_end - j.row) * cols; i += block_threads()) {
        const int64_t row = j.row + i / cols, col = j.col + i % cols;
        float sum = 0;
        for (int64_t c = 0; c < j.n; c += EIGHT) {
            const eight_floats v =
                eight_as<W>(j.type, j.w + col * j.w_pitch, (uint32_t)c, (uint32_t)j.n);
            for (int e = 0; e < EIGHT && c + e < j.n; e++) {
                const float w = j.walks > 1 ? v.w[e] : from_bf16(to_bf16(v.w[e]));
                sum = fmaf(w, x_number(j, row, c + e), sum);
            }
        }
        row_out(k, 0, row)[col] = bias ? sum + bias[col] : sum;
    }
}

/* ---- the kernels ---- */

static __device__ inline char *aligned(void *scratch)
{
    return (char *)(((uintptr_t)scratch + MMA_ALIGN - 1) / MMA_ALIGN * MMA_ALIGN);
}

template <class W>
static __device__ void linear_squares(const kargs *k, const kthread *t, int64_t begin, int64_t end,
                                      int parts, int walks, bool bf16)
{
    const int64_t rows = k->size.linear.rows, out = k->size.linear.out;
    const int64_t down = (rows + MMA_ROWS - 1) / MMA_ROWS;
    mma_job j = {(const char *)k->in[0], (const uint8_t *)k->in[1], k->pitch[0], k->pitch[1]};
    j.n = k->size.linear.in;
    j.parts = parts;
    j.walks = walks;
    j.type = k->type[1];
    j.copies = bf16 && j.n % EIGHT == 0 && j.w_pitch % 16 == 0 && at_16(j.w);
    for (int64_t u = begin; u < end; u++) {
        j.row = u % down * MMA_ROWS;
        j.row_end = j.row + MMA_ROWS < rows ? j.row + MMA_ROWS : rows;
        j.col = u / down * MMA_COLS;
        j.col_end = j.col + MMA_COLS < out ? j.col + MMA_COLS : out;
        if (is_shared(t->scratch))
            square<W>(k, j, aligned(t->scratch));
        else
            square_plain<W>(k, j);
    }
}

#define LINEAR_MMA(type)                                                                           \
    static __device__ void k_linear_##type##_mma_cuda(const kargs *k, const kthread *t,            \
                                                      int64_t begin, int64_t end)                  \
    {                                                                                              \
        linear_squares<weight_##type>(k, t, begin, end, 1, 1, DT_##type == DT_BF16);               \
    }
WEIGHT_TYPES_MMA(LINEAR_MMA)
LINEAR_MMA(F16)
#undef LINEAR_MMA

static __device__ void k_linear_BF16_exact_cuda(const kargs *k, const kthread *t, int64_t begin,
                                                int64_t end)
{
    linear_squares<weight_BF16>(k, t, begin, end, 3, 1, true);
}

static __device__ void k_linear_BF16_near_cuda(const kargs *k, const kthread *t, int64_t begin,
                                               int64_t end)
{
    linear_squares<weight_BF16>(k, t, begin, end, 2, 1, true);
}

static __device__ void k_linear_any_mma_cuda(const kargs *k, const kthread *t, int64_t begin,
                                             int64_t end)
{
    linear_squares<weight_any>(k, t, begin, end, 1, 1, false);
}

static __device__ void k_linear_F16_exact_cuda(const kargs *k, const kthread *t, int64_t begin,
                                               int64_t end)
{
    linear_squares<weight_F16>(k, t, begin, end, 3, 2, false);
}

static __device__ void k_linear_F16_near_cuda(const kargs *k, const kthread *t, int64_t begin,
                                              int64_t end)
{
    linear_squares<weight_F16>(k, t, begin, end, 2, 2, false);
}

#endif
