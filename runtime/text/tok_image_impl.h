/* tok_image_impl.h - what the files that read and write images of tokenizers share. Private to them. */
#ifndef WEFT_RUNTIME_TEXT_TOK_IMAGE_IMPL_H
#define WEFT_RUNTIME_TEXT_TOK_IMAGE_IMPL_H

#include "runtime/text/image_io.h"
#include "runtime/text/tok_impl.h"

typedef struct {
    image_io io;
    tok *t;
    weft_diag *dg;      /* reading */
    weft_status status; /* of a part that said itself what is wrong */
} tok_image;

/* tok_image_steps.c */
void image_norms(tok_image *i);
void image_pres(tok_image *i);
void image_decs(tok_image *i);

#endif
