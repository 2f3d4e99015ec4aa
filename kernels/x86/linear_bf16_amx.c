/* linear_bf16_amx.c - linear for many rows with AMX, for BF16 (ACT_BF2).
 *
 * Activations come as the sum of two bf16, eight of the first and eight rests in turn. A tile takes sixteen columns
 * of both as they lie, so that the weights of eight columns stand twice in the tiles of the panel: w first + w rest
 * is one multiplication. Sums stay in the tiles, in f32, for all columns of a panel. */
#include "kernels/kernel_decls.h"

#include "kernels/x86/linear_amx.h"

enum { COLS = 16, TURNED = 32 }; /* columns of a tile; that are turned at once */
_Static_assert(TILES_COLS / COLS * AMX_TILE <= TILES_PANEL_BYTES, "a panel fits");

/* Four rows of a tile are four pairs of columns. */
static void unpack(const amx_work *j)
{
    uint8_t rows[AMX_TILE], turned[AMX_TILE], *to = j->panel;
    int64_t n = j->end - j->first;
    for (int64_t c = 0; c < n; c += TURNED) {
        int64_t here = n - c < TURNED ? n - c : TURNED;
        if (here < TURNED)
            memset(rows, 0, sizeof rows);
        for (int i = 0; i < AMX_ROWS; i++)
            memcpy(rows + i * AMX_BYTES, j->w[i] + c * 2, (size_t)here * 2);
        amx_transpose(rows, turned);
        for (int four = 0; four < 4 && four * 8 < (here + COLS - 1) / COLS * COLS; four++) {
            memcpy(to, turned + four * 4 * AMX_BYTES, 4 * AMX_BYTES);
            memcpy(to + 4 * AMX_BYTES, turned + four * 4 * AMX_BYTES, 4 * AMX_BYTES);
            to += 8 * AMX_BYTES;
        }
    }
}

/* The last eight columns of a row, where there are no eight more: what follows them is anything. */
static void load_last(const amx_work *j, int64_t row, char *to)
{
    for (int i = 0; i < j->rows; i++) {
        memcpy(to + i * AMX_BYTES, amx_row(j, row + i) + j->n / COLS * AMX_BYTES, AMX_BYTES / 2);
        memset(to + i * AMX_BYTES + AMX_BYTES / 2, 0, AMX_BYTES / 2);
    }
}

static void multiply(const amx_work *j, amx_rows a, amx_rows b)
{
    int64_t pitch = j->k->pitch[0], n = j->end - j->first;
    int64_t whole = n % COLS > 8 ? n / COLS + 1 : n / COLS; /* tiles */
    const char *xa = amx_row(j, a.row) + j->first * 4, *xb = amx_row(j, b.row) + j->first * 4;
    AMX_ZERO(0);
    AMX_ZERO(1);
    for (int64_t s = 0; s < whole; s++) {
        AMX_LOAD(6, j->panel + s * AMX_TILE, AMX_BYTES);
        AMX_LOAD(4, xa + s * AMX_BYTES, pitch);
        AMX_DOT_BF16(0, 4, 6);
        AMX_LOAD(5, xb + s * AMX_BYTES, pitch);
        AMX_DOT_BF16(1, 5, 6);
    }
    if (whole * COLS < n) {
        load_last(j, a.row, j->stored);
        load_last(j, b.row, j->stored + AMX_TILE);
        AMX_LOAD(6, j->panel + whole * AMX_TILE, AMX_BYTES);
        AMX_LOAD(4, j->stored, AMX_BYTES);
        AMX_DOT_BF16(0, 4, 6);
        AMX_LOAD(5, j->stored + AMX_TILE, AMX_BYTES);
        AMX_DOT_BF16(1, 5, 6);
    }
    AMX_STORE(0, j->stored, AMX_BYTES);
    AMX_STORE(1, j->stored + AMX_TILE, AMX_BYTES);
    for (int i = a.from; i < j->rows; i++) {
        __m512 sum = _mm512_loadu_ps(j->stored + i * AMX_BYTES);
        amx_put(j, a.row + i, _mm512_add_ps(amx_sum(j, a.row + i), sum));
    }
    for (int i = b.from; i < j->rows; i++) {
        __m512 sum = _mm512_loadu_ps(j->stored + AMX_TILE + i * AMX_BYTES);
        amx_put(j, b.row + i, _mm512_add_ps(amx_sum(j, b.row + i), sum));
    }
}

void k_linear_BF16_amx_bf16(const kargs *k, const kthread *t, int64_t begin, int64_t end)
{
    static const amx_kind kind = {AMX_BYTES, 1, 2, unpack, multiply};
    amx_linear(k, t, begin, end, &kind);
}
