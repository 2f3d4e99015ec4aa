/* http_watch.c - a thread that sleeps until a client hangs up or a request is overdue.
 *
 * libmicrohttpd does not look at a connection while an answer is being made for it, and its own timeout begins anew with every byte,
 * so that a client which sends one in a while holds a connection for good. This thread polls the former for a hang-up, and shuts
 * the latter down at its deadline. A client that only closes its sending half counts as gone, as with other servers: until
 * something is sent there is no telling the two apart. */
#include "runtime/http/http_impl.h"

#include "runtime/base/clock.h"
#include "runtime/base/mem.h"
#include "runtime/base/mem_scope.h"
#include "runtime/base/vec.h"
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

typedef VEC(struct pollfd) poll_list;

#ifndef POLLRDHUP
#define POLLRDHUP 0 /* there a client is gone when it has closed both halves */
#endif

/* What to poll; returns how long, in milliseconds. */
static int gather(http_server *s, poll_list *list)
{
    uint64_t now = clock_ns(), next = UINT64_MAX;
    list->n = 0;
    struct pollfd own = {.fd = s->wake.get, .events = POLLIN};
    VEC_PUSH(list, own);
    for (watched *w = s->watch.next; w != &s->watch; w = w->next) {
        if (w->waits) {
            struct pollfd p = {.fd = w->fd, .events = POLLRDHUP};
            VEC_PUSH(list, p);
        } else if (w->deadline_ns <= now) {
            (void)shutdown(w->fd, SHUT_RDWR); /* its owner closes it */
            w->deadline_ns = UINT64_MAX;
        } else if (w->deadline_ns < next) {
            next = w->deadline_ns;
        }
    }
    if (next == UINT64_MAX)
        return -1;
    return (int)((next - now) / 1000000) + 1;
}

/* Without memory for the list it looks again a little later. */
static int gather_safely(http_server *s, poll_list *list)
{
    MEM_SCOPE(scope);
    if (sigsetjmp(scope.env, 0) != 0) {
        list->n = 0;
        return 100;
    }
    return gather(s, list);
}

/* Asked again, since another connection may have got the number of one that was closed after the poll. */
static bool has_gone(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLRDHUP};
    return poll(&p, 1, 0) > 0 && (p.revents & (POLLRDHUP | POLLHUP | POLLERR | POLLNVAL));
}

/* Those that hung up. Their calls cannot go away while the lock is held: watch_wait(NULL) comes before that. */
static void look(http_server *s, const poll_list *list)
{
    for (size_t i = 1; i < list->n; i++) {
        if (!(list->at[i].revents & (POLLRDHUP | POLLHUP | POLLERR | POLLNVAL)))
            continue;
        for (watched *w = s->watch.next; w != &s->watch; w = w->next)
            if (w->fd == list->at[i].fd && w->waits && has_gone(w->fd)) {
                call_hang_up(w->waits);
                w->waits = NULL;
                w->deadline_ns = UINT64_MAX;
            }
    }
}

static void *watcher(void *arg)
{
    http_server *s = arg;
    poll_list list = {0};
    VEC_START(&list);
    pthread_mutex_lock(&s->watch_lock);
    while (!s->watch_stop) {
        int ms = gather_safely(s, &list);
        pthread_mutex_unlock(&s->watch_lock);
        int n = poll(list.at, list.n, ms);
        if (n > 0 && list.n && (list.at[0].revents & POLLIN))
            wake_drain(&s->wake);
        pthread_mutex_lock(&s->watch_lock);
        if (n > 0)
            look(s, &list);
    }
    pthread_mutex_unlock(&s->watch_lock);
    VEC_FREE(&list);
    return NULL;
}

weft_status watch_start(weft_diag *dg, http_server *s)
{
    s->watch.next = s->watch.before = &s->watch;
    pthread_mutex_init(&s->watch_lock, NULL);
    if (!wake_open(&s->wake) || pthread_create(&s->watcher, NULL, watcher, s) != 0)
        return weft_fail(dg, W1601, WEFT_NOWHERE, "the server's thread cannot be started: %s",
                         strerror(errno));
    s->watching = true;
    return WEFT_OK;
}

void watch_stop(http_server *s)
{
    if (s->watching) {
        pthread_mutex_lock(&s->watch_lock);
        s->watch_stop = true;
        pthread_mutex_unlock(&s->watch_lock);
        wake_put(&s->wake, 'W');
        pthread_join(s->watcher, NULL);
    }
    wake_close(&s->wake);
    pthread_mutex_destroy(&s->watch_lock);
}

static uint64_t receive_deadline(const http_server *s)
{
    return clock_ns() + (uint64_t)s->o.receive_s * 1000000000u;
}

watched *watch_add(http_server *s, int fd)
{
    watched *w = mem_try_alloc(sizeof *w);
    if (!w)
        return NULL; /* it is served, and only libmicrohttpd's own timeout watches it */
    *w = (watched){.fd = fd, .deadline_ns = receive_deadline(s)};
    pthread_mutex_lock(&s->watch_lock);
    w->next = &s->watch;
    w->before = s->watch.before;
    w->before->next = w;
    s->watch.before = w;
    pthread_mutex_unlock(&s->watch_lock);
    wake_put(&s->wake, 'W');
    return w;
}

void watch_remove(http_server *s, watched *w)
{
    pthread_mutex_lock(&s->watch_lock);
    w->next->before = w->before;
    w->before->next = w->next;
    pthread_mutex_unlock(&s->watch_lock);
    mem_free(w);
    wake_put(&s->wake, 'W');
}

void watch_rest(http_server *s, watched *w)
{
    if (!w)
        return;
    pthread_mutex_lock(&s->watch_lock);
    w->deadline_ns = UINT64_MAX;
    pthread_mutex_unlock(&s->watch_lock);
}

void watch_wait(http_server *s, watched *w, call *c)
{
    if (!w)
        return;
    pthread_mutex_lock(&s->watch_lock);
    w->waits = c;
    w->deadline_ns = receive_deadline(s);
    pthread_mutex_unlock(&s->watch_lock);
    wake_put(&s->wake, 'W');
}
