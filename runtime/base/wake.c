/* wake.c - a pipe that wakes a thread. */
#include "runtime/base/wake.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

bool wake_open(wake_pipe *w)
{
    int ends[2];
    if (pipe(ends) != 0)
        return false;
    for (int i = 0; i < 2; i++)
        (void)fcntl(ends[i], F_SETFD, FD_CLOEXEC);
    (void)fcntl(ends[1], F_SETFL, O_NONBLOCK);
    *w = (wake_pipe){ends[0], ends[1]};
    return true;
}

void wake_close(wake_pipe *w)
{
    if (w->get >= 0) {
        close(w->get);
        close(w->put);
    }
    *w = WAKE_NONE;
}

void wake_put(const wake_pipe *w, char what)
{
    int before = errno;
    ssize_t n = write(w->put, &what, 1);
    (void)n;
    errno = before;
}

char wake_get(const wake_pipe *w)
{
    char what = 0;
    ssize_t n;
    do
        n = read(w->get, &what, 1);
    while (n < 0 && errno == EINTR);
    return n == 1 ? what : 0;
}

void wake_drain(const wake_pipe *w)
{
    char many[64];
    ssize_t n = read(w->get, many, sizeof many);
    (void)n; /* what is left makes the next poll return at once */
}
