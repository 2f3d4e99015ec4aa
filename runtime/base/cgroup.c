/* cgroup.c - from /proc/self/cgroup to the folders that hold the limits. */
#include "runtime/base/cgroup.h"

#include "runtime/base/file.h"
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

enum { TEXT_MAX = 65536, DEPTH_MAX = 64 };

bool cgroup_read(const char *dir, const char *name, strbuf *out)
{
    char chunk[1024];
    ssize_t k = -1;
    strbuf path = {0};
    strbuf_add(&path, "%s/%s", dir, name);
    int fd = open(path.p, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    strbuf_free(&path);
    if (fd < 0)
        return false;
    file_hold(fd);
    strbuf_reset(out);
    while (out->n < TEXT_MAX) {
        k = read(fd, chunk, sizeof chunk);
        if (k > 0)
            strbuf_put(out, (str){chunk, (size_t)k});
        else if (k == 0 || errno != EINTR)
            break;
    }
    file_close(fd);
    strbuf_put(out, STR("")); /* ends in NUL even when empty */
    return k >= 0;
}

typedef struct {
    const char *root, *controller;
    cgroup_visit *visit;
    void *ctx;
} walk;

/* From mount/group up to mount itself. In a container the group's path may be the host's and not exist
 * here; then only what the mount point itself says counts. */
static void walk_up(const walk *w, const char *mount, str group, bool v2)
{
    strbuf dir = {0};
    strbuf_add(&dir, "%s%s", w->root, mount);
    size_t top = dir.n;
    strbuf_put(&dir, group);
    for (int depth = 0; depth < DEPTH_MAX; depth++) {
        while (dir.n > top && dir.p[dir.n - 1] == '/')
            dir.p[--dir.n] = 0;
        w->visit(w->ctx, dir.p, v2);
        if (dir.n == top)
            break;
        while (dir.n > top && dir.p[dir.n - 1] != '/')
            dir.p[--dir.n] = 0;
    }
    strbuf_free(&dir);
}

static str split_at(str *rest, char end)
{
    const char *e = rest->n ? memchr(rest->p, end, rest->n) : NULL;
    size_t n = e ? (size_t)(e - rest->p) : rest->n, skip = e ? n + 1 : n;
    str head = {rest->p, n};
    *rest = (str){rest->p + skip, rest->n - skip};
    return head;
}

static bool has_controller(str list, const char *name)
{
    while (list.n)
        if (str_eqz(split_at(&list, ','), name))
            return true;
    return false;
}

/* One line of /proc/self/cgroup: "0::/path" (v2), or "4:cpu,cpuacct:/path" (v1). */
static void walk_line(const walk *w, str line)
{
    str id = split_at(&line, ':'), controllers = split_at(&line, ':'), group = line;
    if (group.n == 0 || group.p[0] != '/' || str_starts(group, STR("/..")))
        group = STR("/"); /* outside this process's view of the tree */
    if (str_eqz(id, "0") && controllers.n == 0) {
        walk_up(w, "/sys/fs/cgroup", group, true);
        walk_up(w, "/sys/fs/cgroup/unified", group, true);
    } else if (has_controller(controllers, w->controller)) {
        strbuf mount = {0};
        strbuf_add(&mount, "/sys/fs/cgroup/%s", w->controller);
        walk_up(w, mount.p, group, false);
        strbuf_reset(&mount);
        strbuf_add(&mount, "/sys/fs/cgroup/" STR_FMT, STR_ARG(controllers));
        walk_up(w, mount.p, group, false);
        strbuf_free(&mount);
    }
}

void cgroup_walk(const char *root, const char *controller, cgroup_visit *visit, void *ctx)
{
    const walk w = {root, controller, visit, ctx};
    strbuf proc = {0}, text = {0};
    strbuf_add(&proc, "%s/proc/self", root);
    if (cgroup_read(proc.p, "cgroup", &text)) {
        str rest = strbuf_view(&text);
        while (rest.n)
            walk_line(&w, split_at(&rest, '\n'));
    }
    strbuf_free(&proc);
    strbuf_free(&text);
}
