/* text_parts_used.c - which parts of runtime/text a built program has: those that the linker was told of, as
 * used_jinja_whole=jinja_whole. Other references stay weak and without a definition, and their parts are left out. */
#include "runtime/text/text_parts.h"

extern const uni_tables used_uni_tables_whole __attribute__((weak));
extern const jinja_engine used_jinja_whole __attribute__((weak));

const uni_tables *uni_tables_here(void)
{
    return &used_uni_tables_whole;
}

const jinja_engine *jinja_here(void)
{
    return &used_jinja_whole;
}
