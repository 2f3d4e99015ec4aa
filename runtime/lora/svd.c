/* svd.c - truncated singular values (Halko, Martinsson and Tropp 2011): a few directions that hold most of the matrix,
 * found by multiplying with it and its transpose in turn; then the exact values of the small matrix that is left, by
 * one-sided Jacobi rotations. */
#include "runtime/lora/svd.h"

#include "runtime/exec/pool.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

enum { MORE = 8, TURNS_MAX = 40, SWEEPS_MAX = 60, BLOCK = 64 };
#define SETTLED 1e-6

/* Directions are the rows of a matrix, one behind the other. */

static double dot(const double *x, const double *y, int64_t n)
{
    double s[4] = {0};
    int64_t i = 0;
    for (; i + 4 <= n; i += 4)
        for (int k = 0; k < 4; k++)
            s[k] += x[i + k] * y[i + k];
    for (; i < n; i++)
        s[0] += x[i] * y[i];
    return (s[0] + s[1]) + (s[2] + s[3]);
}

static void add(double *x, const double *y, double by, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        x[i] += y[i] * by;
}

/* Each row at right angles to those before it, and of length 1; one that adds nothing becomes zero. Twice, because one
 * round of it loses half the digits. */
static void make_orthonormal(double *q, int64_t k, int64_t n)
{
    for (int64_t i = 0; i < k; i++) {
        double *x = q + i * n, was = sqrt(dot(x, x, n)), is = 0;
        for (int round = 0; round < 2; round++)
            for (int64_t j = 0; j < i; j++)
                add(x, q + j * n, -dot(x, q + j * n, n), n);
        is = sqrt(dot(x, x, n));
        double by = is > was * 1e-12 && is > DBL_MIN ? 1 / is : 0;
        for (int64_t c = 0; c < n; c++)
            x[c] *= by;
    }
}

/* One product with the matrix, shared out among threads: each makes some elements of every direction. */
typedef struct {
    const float *x; /* [rows, columns] */
    int64_t rows, columns, k;
    const double *q;
    double *out;
} product;

/* out[k, rows] = q[k, columns] X^T: each row of X against all directions, while it is at hand. */
static void times_transposed(void *ctx, int index, int count)
{
    const product *p = ctx;
    int64_t columns = p->columns, end = p->rows * (index + 1) / count;
    for (int64_t r = p->rows * index / count; r < end; r++)
        for (int64_t i = 0; i < p->k; i++) {
            const float *row = p->x + r * columns;
            const double *d = p->q + i * columns;
            double s[4] = {0};
            int64_t c = 0;
            for (; c + 4 <= columns; c += 4)
                for (int j = 0; j < 4; j++)
                    s[j] += row[c + j] * d[c + j];
            for (; c < columns; c++)
                s[0] += row[c] * d[c];
            p->out[i * p->rows + r] = (s[0] + s[1]) + (s[2] + s[3]);
        }
}

/* out[k, columns] = q[k, rows] X, a block of columns at a time, so that all of it stays near. */
static void times(void *ctx, int index, int count)
{
    const product *p = ctx;
    int64_t columns = p->columns, blocks = (columns + BLOCK - 1) / BLOCK;
    for (int64_t b = blocks * index / count; b < blocks * (index + 1) / count; b++) {
        int64_t at = b * BLOCK, n = columns - at < BLOCK ? columns - at : BLOCK;
        for (int64_t i = 0; i < p->k; i++)
            memset(p->out + i * columns + at, 0, (size_t)n * sizeof *p->out);
        for (int64_t r = 0; r < p->rows; r++) {
            const float *row = p->x + r * columns + at;
            for (int64_t i = 0; i < p->k; i++) {
                double by = p->q[i * p->rows + r], *to = p->out + i * columns + at;
                for (int64_t c = 0; c < n; c++)
                    to[c] += by * row[c];
            }
        }
    }
}

static void multiply(pool_fn *fn, product p, int threads)
{
    pool_gang g;
    pool_gather(&g, threads);
    pool_go(&g, fn, &p);
}

static double squares(const float *x, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += (double)x[i] * x[i];
    return sum;
}

/* A start that is the same on every machine. */
static void fill(double *q, int64_t n)
{
    uint64_t s = 88172645463325252u;
    for (int64_t i = 0; i < n; i++) {
        s ^= s << 13;
        s ^= s >> 7;
        s ^= s << 17;
        q[i] = (double)(int64_t)s * 0x1p-63;
    }
}

/* Rows of s[k, n] turned pairwise until all are at right angles: their lengths are the singular values, largest first.
 * u[k, k] is turned along: s as it was is the transpose of u times s as it is. */
static void jacobi(double *s, double *u, int64_t k, int64_t n)
{
    bool turned = true;
    for (int sweep = 0; sweep < SWEEPS_MAX && turned; sweep++) {
        turned = false;
        for (int64_t i = 0; i < k; i++)
            for (int64_t j = i + 1; j < k; j++) {
                double *x = s + i * n, *y = s + j * n;
                double a = dot(x, x, n), b = dot(y, y, n), c = dot(x, y, n);
                if (a >= b && fabs(c) <= 1e-14 * sqrt(a * b))
                    continue;
                turned = true;
                double co = 0, si = 1;
                if (fabs(c) > 1e-14 * sqrt(a * b)) {
                    double z = (a - b) / (2 * c);
                    double t = (z < 0 ? -1 : 1) / (fabs(z) + sqrt(1 + z * z));
                    co = 1 / sqrt(1 + t * t);
                    si = co * t;
                    if (a * co * co + 2 * c * co * si + b * si * si <
                        a * si * si - 2 * c * co * si + b * co * co) { /* the longer one first */
                        double was = co;
                        co = -si;
                        si = was;
                    }
                }
                for (int64_t r = 0; r < n; r++) {
                    double p = x[r], q = y[r];
                    x[r] = co * p + si * q;
                    y[r] = co * q - si * p;
                }
                for (int64_t r = 0; r < k; r++) {
                    double p = u[i * k + r], q = u[j * k + r];
                    u[i * k + r] = co * p + si * q;
                    u[j * k + r] = co * q - si * p;
                }
            }
    }
}

static svd_factors cut(const double *left, const double *right, int64_t rows, int64_t columns,
                       int64_t k, int64_t rank, double all, arena *home)
{
    arena *scratch = arena_create();
    double *s = ARENA_ARRAY(scratch, double, (size_t)(k * columns));
    double *u = ARENA_ARRAY(scratch, double, (size_t)(k * k)), held = 0;
    memcpy(s, right, (size_t)(k * columns) * sizeof *s);
    for (int64_t i = 0; i < k; i++)
        u[i * k + i] = 1;
    jacobi(s, u, k, columns);
    svd_factors f = {.norm = sqrt(all)};
    double first = sqrt(dot(s, s, columns));
    while (f.rank < rank && f.rank < k &&
           sqrt(dot(s + f.rank * columns, s + f.rank * columns, columns)) > first * 1e-7)
        f.rank++;
    float *a = ARENA_ARRAY(home, float, (size_t)(f.rank * columns) + 1);
    float *b = ARENA_ARRAY(home, float, (size_t)(rows * f.rank) + 1);
    for (int64_t i = 0; i < f.rank; i++) {
        const double *x = s + i * columns;
        double length = sqrt(dot(x, x, columns)), root = sqrt(length);
        held += length * length;
        for (int64_t c = 0; c < columns; c++)
            a[i * columns + c] = (float)(x[c] / root);
        for (int64_t r = 0; r < rows; r++) {
            double y = 0;
            for (int64_t j = 0; j < k; j++)
                y += u[i * k + j] * left[j * rows + r];
            b[r * f.rank + i] = (float)(y * root);
        }
    }
    f.error = sqrt(all > held ? all - held : 0);
    f.a = a;
    f.b = b;
    arena_destroy(scratch);
    return f;
}

svd_factors svd_truncated(const float *x, int64_t rows, int64_t columns, int64_t rank, int threads,
                          arena *home)
{
    int64_t least = rows < columns ? rows : columns;
    int64_t k = rank + MORE < least ? rank + MORE : least;
    arena *scratch = arena_create();
    double *left = ARENA_ARRAY(scratch, double, (size_t)(k * rows));
    double *right = ARENA_ARRAY(scratch, double, (size_t)(k * columns));
    double all = squares(x, rows * columns), before = -1;
    fill(right, k * columns);
    for (int turn = 0; turn < TURNS_MAX; turn++) {
        multiply(times_transposed, (product){x, rows, columns, k, right, left}, threads);
        make_orthonormal(left, k, rows);
        multiply(times, (product){x, rows, columns, k, left, right}, threads);
        double held = dot(right, right, k * columns);
        if (held - before <= SETTLED * all)
            break;
        before = held;
        if (turn + 1 < TURNS_MAX)
            make_orthonormal(right, k, columns);
    }
    svd_factors f = cut(left, right, rows, columns, k, rank, all, home);
    arena_destroy(scratch);
    return f;
}
