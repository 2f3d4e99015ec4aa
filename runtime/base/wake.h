/* wake.h - a pipe by which another thread, or a signal, wakes a thread that polls. */
#ifndef WEFT_RUNTIME_BASE_WAKE_H
#define WEFT_RUNTIME_BASE_WAKE_H

#include <stdbool.h>

typedef struct {
    int get, put; /* -1: not open */
} wake_pipe;

#define WAKE_NONE ((wake_pipe){-1, -1})

/* Closed in other programs; only wake_get waits. False: errno says why. */
bool wake_open(wake_pipe *w);
void wake_close(wake_pipe *w); /* fine where it is not open */
/* Safe in a signal handler. One that finds the pipe full is lost, and its reader is awake anyway. */
void wake_put(const wake_pipe *w, char what);
/* Wait for one; 0: there is none to come. */
char wake_get(const wake_pipe *w);
/* Take what came, after a poll said that something did. */
void wake_drain(const wake_pipe *w);

#endif
