/* text_parts.c - a program that has all parts; a built one has runtime/program/text_parts_used.c in its place. */
#include "runtime/text/text_parts.h"

const uni_tables *uni_tables_here(void)
{
    return &uni_tables_whole;
}

const jinja_engine *jinja_here(void)
{
    return &jinja_whole;
}
