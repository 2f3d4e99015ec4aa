/* uni_tables.h - what takes Unicode's tables, which are large: behind a table of functions, so that a built program can be without
 * (text_parts.h). Private to this folder. */
#ifndef WEFT_RUNTIME_TEXT_UNI_TABLES_H
#define WEFT_RUNTIME_TEXT_UNI_TABLES_H

#include "runtime/text/tok_unicode.h"
#include <utf8proc.h>

typedef struct {
    utf8proc_category_t (*category)(uint32_t cp);
    uint32_t (*lower)(uint32_t cp);
    uint32_t (*upper)(uint32_t cp);
    uint32_t (*title)(uint32_t cp);
    void (*normalize)(strbuf *out, str s, uni_form form);
} uni_tables;

extern const uni_tables uni_tables_whole;

#endif
