/* report_profile.h - what `weft profile` says, shows and draws. */
#ifndef WEFT_RUNTIME_CLI_REPORT_PROFILE_H
#define WEFT_RUNTIME_CLI_REPORT_PROFILE_H

#include "runtime/engine/profile.h"

void profile_as_text(const profile *f, strbuf *out);
void profile_as_json(const profile *f, strbuf *out);
/* report_profile_svg.c: the phases of a layer as a strip, and a bar for each line. */
void profile_as_svg(const profile *f, strbuf *out);

/* The text of a line, without the blanks around it. */
str profile_line_text(const profile_line *l);

#endif
