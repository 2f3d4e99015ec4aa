/* near.c - do two checkpoints say nearly the same?
 *
 *     near MODEL OTHER MOST
 *
 * The root mean square of the difference of their logits, over that of MODEL's, on a fixed text of token ids. Exit status 1
 * if it is more than MOST, or nothing at all. The reference executor computes both, so that weights alone differ. */
#include "runtime/base/status.h"
#include "runtime/weft.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROWS = 24 };

typedef struct {
    weft_model *m;
    weft_session *s;
    weft_view v;
} evaluated;

static weft_status evaluate(weft_diag *dg, const char *path, evaluated *e)
{
    const char *outputs[] = {"logits"};
    weft_session_options how = {.size = sizeof how,
                                .context = ROWS,
                                .sequences = 1,
                                .batch = ROWS,
                                .threads = 1,
                                .outputs = outputs,
                                .n_output = 1,
                                .exec = WEFT_EXEC_REF};
    weft_row row[ROWS];
    for (int i = 0; i < ROWS; i++)
        row[i] = (weft_row){.token = i * 37 % 251 + 1, .pos = i, .want = true};
    WEFT_TRY(weft_model_open(dg, path, NULL, &e->m));
    WEFT_TRY(weft_session_create(dg, e->m, &how, &e->s));
    WEFT_TRY(weft_eval(dg, e->s, row, ROWS));
    return weft_output(dg, e->s, "logits", -1, &e->v);
}

int main(int argc, char **argv)
{
    weft_diag *dg = weft_diag_create();
    evaluated a = {0}, b = {0};
    if (argc != 4)
        return 2;
    weft_status st = evaluate(dg, argv[1], &a);
    if (st == WEFT_OK)
        st = evaluate(dg, argv[2], &b);
    double off = 0, all = 0, rms = INFINITY;
    if (st == WEFT_OK && a.v.rows == b.v.rows && a.v.width == b.v.width) {
        for (int64_t i = 0; i < a.v.rows * a.v.width; i++) {
            double x = (double)a.v.data[i], d = (double)b.v.data[i] - x;
            off += d * d;
            all += x * x;
        }
        rms = sqrt(off / all);
    }
    printf("%s %g of at most %s\n", argv[2], rms, argv[3]);
    weft_session_destroy(a.s);
    weft_session_destroy(b.s);
    weft_model_close(a.m);
    weft_model_close(b.m);
    weft_diag_destroy(dg);
    return rms > 0 && rms <= atof(argv[3]) ? 0 : 1;
}
