/* example.c - the public interface in sixty lines: continue a text of token ids by the likeliest tokens.
 *
 *     cc example.c $(pkg-config --cflags --libs weft) -o example
 *     ./example MODEL COUNT ID... */
#include <stdio.h>
#include <stdlib.h>
#include <weft.h>

static int fail(weft_diag *dg)
{
    fputs(weft_diag_text(dg), stderr);
    weft_diag_destroy(dg);
    return EXIT_FAILURE;
}

static int32_t likeliest(weft_view logits)
{
    const float *row = logits.data + (logits.rows - 1) * logits.width;
    int32_t best = 0;
    for (int32_t i = 1; i < logits.width; i++)
        if (row[i] > row[best])
            best = i;
    return best;
}

int main(int argc, char **argv)
{
    if (argc < 4) {
        fprintf(stderr, "usage: %s MODEL COUNT ID...\n", argv[0]);
        return 2;
    }
    weft_diag *dg = weft_diag_create();
    weft_model *model;
    weft_session *session;
    int n_new = atoi(argv[2]), n_prompt = argc - 3;
    if (weft_model_open(dg, argv[1], NULL, &model) != WEFT_OK)
        return fail(dg);
    weft_session_options options = {.size = sizeof options, .context = n_prompt + n_new};
    if (weft_session_create(dg, model, &options, &session) != WEFT_OK)
        return fail(dg);
    fprintf(stderr, "%s, %llu bytes for the session\n", weft_model_name(model),
            (unsigned long long)weft_session_bytes(session));

    int32_t token = 0;
    for (int pos = 0; pos < n_prompt + n_new; pos++) {
        if (pos < n_prompt)
            token = atoi(argv[3 + pos]);
        weft_row row = {.token = token, .pos = pos, .want = pos + 1 >= n_prompt};
        weft_view logits;
        if (weft_eval(dg, session, &row, 1) != WEFT_OK)
            return fail(dg);
        if (!row.want || pos + 1 == n_prompt + n_new)
            continue;
        if (weft_output(dg, session, "logits", -1, &logits) != WEFT_OK)
            return fail(dg);
        token = likeliest(logits);
        printf("%d\n", token);
    }
    weft_session_destroy(session);
    weft_model_close(model);
    weft_diag_destroy(dg);
    return EXIT_SUCCESS;
}
