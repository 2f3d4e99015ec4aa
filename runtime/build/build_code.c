/* build_code.c - generated code for a program's plans, as objects to link. */
#include "runtime/build/build_code.h"

#include "runtime/formats/out_file.h"

/* The rows of most calls when text is generated. Larger buckets spend their time in kernels, and would only make the program larger. */
enum { CODE_ROWS_MAX = 1 };

static int32_t decode_bucket(const plan *p)
{
    for (int32_t i = 0; i < p->n_bucket; i++)
        if (p->bucket[i].n_tok_max <= CODE_ROWS_MAX)
            return i;
    return -1;
}

weft_status build_code(weft_diag *dg, const codegen *cg, const plan *p, const char *triple,
                       bool debug, const char *path)
{
    strbuf object = {0}, prefix = {0};
    strbuf_add(&prefix, "weft_%s_", p->level);
    code_job job = {.p = p,
                    .bucket = decode_bucket(p),
                    .triple = triple,
                    .prefix = prefix.p,
                    .pic = true,
                    .debug = debug};
    weft_status st = cg->compile(dg, &job, CODE_OBJECT, &object);
    if (st == WEFT_OK)
        st = out_file_write(dg, path, strbuf_view(&object));
    strbuf_free(&object);
    strbuf_free(&prefix);
    return st;
}
