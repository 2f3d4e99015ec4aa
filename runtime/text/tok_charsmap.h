/* tok_charsmap.h - SentencePiece's precompiled table of replacements. Private to this folder.
 *
 * The blob is a length, a double-array tree (github.com/s-yata/darts-clone) in that many bytes, and
 * the replacements, each ended by a NUL. Any byte of it may be a stranger's. */
#ifndef WEFT_RUNTIME_TEXT_TOK_CHARSMAP_H
#define WEFT_RUNTIME_TEXT_TOK_CHARSMAP_H

#include "runtime/base/diag.h"

typedef struct {
    const unsigned char *units; /* n_unit of 4 bytes, little endian */
    size_t n_unit;
    str texts;
} charsmap;

/* View a blob, which must outlive the map; W1203 if its parts do not fit. An empty blob maps
 * nothing. */
weft_status charsmap_view(weft_diag *dg, str blob, charsmap *out_map) WEFT_MUST_USE;
/* Decode base64 into a; W1203. */
weft_status charsmap_base64(weft_diag *dg, arena *a, str text, str *out_blob) WEFT_MUST_USE;

/* The longest beginning of s that is replaced: its length, or 0, and what stands for it. */
size_t charsmap_find(const charsmap *m, str s, str *out_text);

#endif
