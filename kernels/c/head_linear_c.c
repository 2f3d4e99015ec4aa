/* head_linear_c.c - every head's vector through the head's own matrix, for weights of every type.
 *
 * By columns, a head's matrix is read once for all rows. out overlaps no input. */
#include "kernels/kernel_decls.h"

#include "kernels/c/dot_c.h"

/* Columns [col, col_end) of one head, for rows [row, row_end). */
static void head_rows(const kargs *k, dot_work *j, int64_t head, int64_t row, int64_t row_end)
{
    const char *const *w = k->in[1]; /* [heads] addresses of [m, n] */
    int64_t heads = k->size.head_linear.heads;
    j->w = w[head];
    j->bias = k->in[2] ? (const float *)((const char *)k->in[2] + head * k->pitch[2]) : NULL;
    for (; row < row_end; row += j->n_x) {
        j->n_x = row_end - row < DOT_ROWS_MAX ? row_end - row : DOT_ROWS_MAX;
        for (int64_t i = 0; i < j->n_x; i++) {
            int64_t v = (row + i) * heads + head;
            j->x[i] = (const char *)k->in[0] + v * k->pitch[0];
            j->out[i] = (float *)((char *)k->out[0] + v * k->out_pitch[0]);
        }
        dot_block(j);
    }
}

void k_head_linear_c(const kargs *k, const kthread *t, int64_t begin, int64_t end)
{
    int64_t heads = k->size.head_linear.heads, m = k->size.head_linear.out;
    dot_work j = dot_work_of(k, t, NULL, k->size.head_linear.in);
    j.row = 0;
    j.row_end = m;
    if (k->tile == 0) {
        for (int64_t unit = begin; unit < end; unit++)
            head_rows(k, &j, unit % heads, unit / heads, unit / heads + 1);
        return;
    }
    kpart part = kpart_of(k, heads * m, begin, end);
    for (int64_t head = part.col / m; head < part.col_end / m; head++)
        head_rows(k, &j, head, part.row, part.row_end);
}
