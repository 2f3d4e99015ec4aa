#include "runtime/base/library_path.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The folder of the program or library that has this function; empty: the system does not say. */
static void own_folder(strbuf *out)
{
    static const char here;
    Dl_info info;
    char *path = NULL;
    if (dladdr(&here, &info) && info.dli_fname)
        path = realpath(strchr(info.dli_fname, '/') ? info.dli_fname : "/proc/self/exe", NULL);
    char *end = path ? strrchr(path, '/') : NULL;
    if (end)
        strbuf_put(out, (str){path, (size_t)(end - path)});
    free(path);
}

/* Folders behind that one, in the order in which they are looked at. */
static const char *const places[] = {"", "/..", "/weft", "/../lib/weft",
                                     "/../" WEFT_LIBDIR "/weft"};

void library_path(const char *name, const char *named, strbuf *out)
{
    const char *given = getenv(named);
    if (given && given[0]) {
        strbuf_add(out, "%s", given);
        return;
    }
    strbuf folder = {0}, path = {0};
    own_folder(&folder);
    for (size_t i = 0; folder.n && path.n == 0 && i < sizeof places / sizeof *places; i++) {
        strbuf_put(&path, strbuf_view(&folder));
        strbuf_add(&path, "%s/%s", places[i], name);
        if (access(path.p, R_OK) != 0)
            strbuf_reset(&path);
    }
    if (path.n == 0)
        strbuf_add(&path, "%s/%s", WEFT_INSTALLED, name);
    if (access(path.p, R_OK) == 0)
        strbuf_put(out, strbuf_view(&path));
    strbuf_free(&folder);
    strbuf_free(&path);
}
