/* cgroup.h - the control groups that this process is in, where limits may be set.
 *
 * The format of the files is described in https://docs.kernel.org/admin-guide/cgroup-v2.html and
 * .../cgroup-v1/. Where there are no control groups nothing is visited. */
#ifndef WEFT_RUNTIME_BASE_CGROUP_H
#define WEFT_RUNTIME_BASE_CGROUP_H

#include "runtime/base/str.h"

/* A folder with the files of one group; v2 says which files those are. */
typedef void cgroup_visit(void *ctx, const char *dir, bool v2);

/* Visit the groups of this process that a controller ("cpu", "memory") may limit, each from its own
 * folder up to the mount point; one may come twice. Files are looked for below root, which is "" but
 * in tests. */
void cgroup_walk(const char *root, const char *controller, cgroup_visit *visit, void *ctx);

/* The whole of a small file in a folder, ended by a NUL; false if it cannot be read. */
bool cgroup_read(const char *dir, const char *name, strbuf *out);

#endif
