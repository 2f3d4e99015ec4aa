/* interrupt.h - leaving cleanly on Ctrl-C and on a closed pipe. */
#ifndef WEFT_RUNTIME_CLI_INTERRUPT_H
#define WEFT_RUNTIME_CLI_INTERRUPT_H

#include "runtime/weft.h"
#include <stdbool.h>

/* SIGINT ends the process with status 130 (SIGTERM 143, SIGHUP 129); SIGPIPE becomes a write error. */
void interrupt_init(void);

/* While held, SIGINT only raises the flag, so that work can end by itself with what it has; a second one ends
 * the process. */
void interrupt_hold(bool hold);
const volatile int *interrupt_flag(void);
/* What the held SIGINT sets as well; NULL for nothing. It must outlive its use here. */
void interrupt_cancels(weft_cancel *c);

/* A file to remove if that happens: one at a time, NULL for none. The path must stay valid. */
void interrupt_removes(const char *path);
/* Signals wait from here on until that is called: so a file is never there that would not be removed. */
void interrupt_waits(void);

#endif
