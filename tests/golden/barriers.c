/* barriers.c - how often all threads wait for each other when a plan decodes one token, counted at run time.
 *
 *     barriers PER_LAYER FOLDER...
 *
 * One more may follow the layers, for the logits: every thread prepares them for itself. With room for many
 * positions, attention is shared out among threads by stretches of them, which may cost no barrier more.
 * Exit status 77, which ctest reads as skipped, if there is no such folder. */
#include "runtime/api/api_impl.h"

#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>

enum { AROUND = 1, EXIT_SKIPPED = 77 };

static const int64_t contexts[] = {32, 8192};

static bool count(const char *folder, int64_t per_layer, int64_t context)
{
    weft_diag *dg = weft_diag_create();
    weft_model *m = NULL;
    weft_session *s = NULL;
    int64_t layers = 0;
    bool fine = weft_model_open(dg, folder, NULL, &m) == WEFT_OK &&
                weft_model_int(m, "layers", &layers) &&
                weft_session_create(dg, m,
                                    &(weft_session_options){.size = sizeof(weft_session_options),
                                                            .context = context,
                                                            .threads = 2},
                                    &s) == WEFT_OK;
    for (int32_t i = 0; fine && i < 3; i++) {
        weft_row row = {.token = 1, .pos = i, .want = true};
        fine = weft_eval(dg, s, &row, 1) == WEFT_OK;
    }
    if (fine) {
        int64_t n = (int64_t)session_barriers(s->run);
        fine = n <= per_layer * layers + AROUND && n > layers;
        printf("%s %s, context %" PRId64 ": %" PRId64 " barriers for %" PRId64
               " layers, allowed %" PRId64 "\n",
               fine ? "ok    " : "FAILED", folder, context, n, layers, per_layer * layers + AROUND);
    } else {
        printf("FAILED %s\n%s", folder, weft_diag_text(dg));
    }
    weft_session_destroy(s);
    weft_model_close(m);
    weft_diag_destroy(dg);
    return fine;
}

int main(int argc, char **argv)
{
    int64_t per_layer = argc > 2 ? atoi(argv[1]) : 0;
    bool fine = per_layer > 0, skipped = false;
    for (int i = 2; i < argc; i++) {
        struct stat st;
        if (stat(argv[i], &st) == 0)
            for (size_t k = 0; k < sizeof contexts / sizeof contexts[0]; k++)
                fine = count(argv[i], per_layer, contexts[k]) && fine;
        else
            skipped = printf("skipped: there is no folder %s\n", argv[i]) > 0;
    }
    return !fine ? 1 : skipped ? EXIT_SKIPPED : 0;
}
