/* example.c - continue a text.
 *
 *     cc example.c $(pkg-config --cflags --libs weft) -o example
 *     ./example MODEL "Once upon a time" */
#include <stdio.h>
#include <string.h>
#include <weft.h>

static bool show(void *ctx, const weft_piece *piece)
{
    (void)ctx;
    fwrite(piece->text, 1, piece->bytes, stdout);
    fflush(stdout);
    return true;
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: %s MODEL TEXT\n", argv[0]);
        return 2;
    }
    weft_diag *dg = weft_diag_create();
    weft_model *model = NULL;
    weft_tokenizer *tokenizer = NULL;
    weft_session *session = NULL;
    weft_generation *text = NULL;
    int32_t *ids = NULL;
    size_t n;
    weft_end end;
    weft_session_options one_thread_per_core = {.size = sizeof one_thread_per_core, .threads = -1};
    weft_sampler_options greedy = {.size = sizeof greedy};
    weft_sampler_defaults(&greedy);
    greedy.temp = 0;
    weft_generation_options short_text = {
        .size = sizeof short_text, .max_tokens = 32, .sampler = &greedy};

    bool ok = weft_model_open(dg, argv[1], NULL, &model) == WEFT_OK &&
              weft_tokenizer_of_model(dg, model, &tokenizer) == WEFT_OK &&
              weft_session_create(dg, model, &one_thread_per_core, &session) == WEFT_OK &&
              weft_generation_create(dg, session, tokenizer, &short_text, &text) == WEFT_OK &&
              weft_encode(dg, tokenizer, argv[2], strlen(argv[2]), WEFT_ADD_SPECIAL, &ids, &n) ==
                  WEFT_OK &&
              weft_generation_prompt(dg, text, ids, n) == WEFT_OK &&
              weft_generate(dg, text, show, NULL, &end) == WEFT_OK;
    fputs(ok ? "\n" : weft_diag_text(dg), ok ? stdout : stderr);

    weft_free(ids);
    weft_generation_destroy(text);
    weft_session_destroy(session);
    weft_tokenizer_close(tokenizer);
    weft_model_close(model);
    weft_diag_destroy(dg);
    return ok ? 0 : 1;
}
