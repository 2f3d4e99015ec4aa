/* pages.h - what else is made from the tables of verbs and flags: completion for shells, and man pages.
 *
 * The build writes them once into its tree, with `weft help --completion` and `weft help --man`. */
#ifndef WEFT_RUNTIME_CLI_PAGES_H
#define WEFT_RUNTIME_CLI_PAGES_H

#include "runtime/cli/cli.h"

void complete_bash(strbuf *out); /* a script for share/bash-completion/completions/weft */
void complete_zsh(strbuf *out);  /* a function for share/zsh/site-functions/_weft */

/* weft.1, or weft-<verb>.1, in the man macros of roff. */
void man_page(strbuf *out, const verb *v /* NULL: weft.1 */);

#endif
