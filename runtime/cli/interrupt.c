/* interrupt.c - signals of the command line. */
#include "runtime/cli/interrupt.h"

#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <unistd.h>

/* Written by the main thread, read by the handler on it. */
static _Atomic(const char *) doomed;

static _Atomic(weft_cancel *) cancelled;

static volatile int holding, asked;

static const int signals[] = {SIGINT, SIGTERM, SIGHUP};

/* Of the main thread, which alone takes signals, before they had to wait. */
static sigset_t usual;
static bool waiting;

static void on_signal(int signal_number)
{
    if (signal_number == SIGINT && holding && !asked) {
        asked = 1;
        if (cancelled)
            weft_cancel_set(cancelled);
        return;
    }
    const char *path = doomed;
    if (path)
        unlink(path);
    _exit(128 + signal_number);
}

void interrupt_init(void)
{
    struct sigaction leave = {.sa_handler = on_signal};
    sigemptyset(&leave.sa_mask);
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        /* nohup and background jobs of a shell start with a signal ignored: it stays so. */
        struct sigaction old;
        if (sigaction(signals[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
            sigaction(signals[i], &leave, NULL);
    }
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    sigemptyset(&ignore.sa_mask);
    sigaction(SIGPIPE, &ignore, NULL);
    sigaction(SIGXFSZ, &ignore,
              NULL); /* a file past `ulimit -f` is a write error like a full disk */
}

void interrupt_hold(bool hold)
{
    asked = 0;
    holding = hold;
}

const volatile int *interrupt_flag(void)
{
    return &asked;
}

void interrupt_cancels(weft_cancel *c)
{
    cancelled = c;
}

void interrupt_removes(const char *path)
{
    doomed = path;
    if (waiting)
        pthread_sigmask(SIG_SETMASK, &usual, NULL);
    waiting = false;
}

void interrupt_waits(void)
{
    sigset_t all;
    if (waiting)
        return;
    sigemptyset(&all);
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        sigaddset(&all, signals[i]);
    waiting = pthread_sigmask(SIG_BLOCK, &all, &usual) == 0;
}
