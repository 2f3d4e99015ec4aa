/* cuda_nvrtc.c - libnvrtc found and loaded, and a program compiled by it. */
#include "runtime/exec/cuda_nvrtc.h"

#include "runtime/base/mem.h"
#include <dlfcn.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

/* ---- finding ---- */

#define NAMED "WEFT_NVRTC"
static const char *const files[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"};
enum { N_FILE = sizeof files / sizeof *files };

bool cuda_nvrtc_is_off(void)
{
    const char *given = getenv(NAMED);
    return given && strcmp(given, "off") == 0;
}

/* Whether the folder has it; its path then. */
static bool find_in(str folder, const char *behind, strbuf *out)
{
    struct stat st;
    for (int i = 0; i < N_FILE && folder.n > 0; i++) {
        strbuf_reset(out);
        strbuf_add(out, STR_FMT "%s/%s", STR_ARG(folder), behind, files[i]);
        if (stat(out->p, &st) == 0 && S_ISREG(st.st_mode))
            return true;
    }
    strbuf_reset(out);
    return false;
}

static bool find_in_list(const char *list, strbuf *out)
{
    for (const char *at = list; at && *at;) {
        size_t n = strcspn(at, ":");
        if (find_in((str){at, n}, "", out))
            return true;
        at += n + (at[n] == ':');
    }
    return false;
}

void cuda_nvrtc_path(strbuf *out)
{
    static const char *const usual[] = {"/usr/local/cuda/lib64", "/usr/local/cuda/lib"};
    static const char fetched[] = "/weft/cuda/nvidia/cu13/lib";
    const char *given = getenv(NAMED), *cuda = getenv("CUDA_HOME");
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (given && given[0]) {
        if (!cuda_nvrtc_is_off())
            strbuf_add(out, "%s", given);
        return;
    }
    strbuf path = {0};
    bool found = find_in_list(getenv("LD_LIBRARY_PATH"), &path) ||
                 (cuda && find_in(str_of(cuda), "/lib64", &path));
    for (size_t i = 0; i < sizeof usual / sizeof *usual && !found; i++)
        found = find_in(str_of(usual[i]), "", &path);
    if (!found && cache && cache[0])
        found = find_in(str_of(cache), fetched, &path);
    else if (!found && home && home[0]) {
        strbuf folder = {0};
        strbuf_add(&folder, "%s/.cache", home);
        found = find_in(strbuf_view(&folder), fetched, &path);
        strbuf_free(&folder);
    }
    if (found)
        strbuf_put(out, strbuf_view(&path));
    strbuf_free(&path);
}

/* ---- loading ---- */

static const char *const names[] = {
#define NVRTC_FN(ret, name, args) #name,
#include "runtime/exec/cuda_nvrtc.def"
#undef NVRTC_FN
};

enum { N_FN = sizeof names / sizeof *names };
_Static_assert(sizeof(nvrtc) == N_FN * sizeof(void *), "a table of functions, nothing else");

static void *open_file(const char *path)
{
    void *lib = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    for (int i = 0; i < N_FILE && !lib && !path; i++)
        lib = dlopen(files[i], RTLD_NOW | RTLD_LOCAL);
    return lib;
}

static weft_status load(weft_diag *dg, const char *path, nvrtc *to)
{
    void *lib = open_file(path);
    if (!lib)
        return weft_fail(dg, W1613, WEFT_NOWHERE, "%s", dlerror());
    nvrtc n;
    for (size_t i = 0; i < N_FN; i++) {
        void *found = dlsym(lib, names[i]);
        if (!found) {
            dlclose(lib);
            return weft_fail(dg, W1613, WEFT_NOWHERE, "%s has no %s: it is too old",
                             path ? path : files[0], names[i]);
        }
        memcpy((char *)&n + i * sizeof found, &found, sizeof found);
    }
    *to = n; /* and lib stays */
    return WEFT_OK;
}

static weft_status load_usual(weft_diag *dg, const nvrtc **out_n)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static nvrtc table; /* these two are guarded by the lock until loaded */
    static bool loaded;
    strbuf path = {0};
    cuda_nvrtc_path(&path);
    pthread_mutex_lock(&lock);
    weft_status st = loaded ? WEFT_OK : load(dg, path.n ? path.p : NULL, &table);
    loaded = st == WEFT_OK;
    pthread_mutex_unlock(&lock);
    strbuf_free(&path);
    if (st == WEFT_OK)
        *out_n = &table;
    return st;
}

/* One that only the system's loader finds has to be loaded to be known. */
static void find_loaded(strbuf *out)
{
    void *lib = open_file(NULL);
    void *function = lib ? dlsym(lib, names[0]) : NULL;
    Dl_info info;
    if (function && dladdr(function, &info) && info.dli_fname)
        strbuf_add(out, "%s", info.dli_fname);
    if (lib)
        dlclose(lib);
}

static void find_usual(strbuf *out_path, strbuf *out_stamp)
{
    struct stat st;
    cuda_nvrtc_path(out_path);
    if (out_path->n == 0)
        find_loaded(out_path);
    if (out_path->n == 0 || stat(out_path->p, &st) != 0)
        st = (struct stat){0};
    strbuf_add(out_stamp, "%s %" PRId64 " %" PRId64, out_path->n ? out_path->p : "",
               (int64_t)st.st_size, (int64_t)st.st_mtime);
}

const cuda_maker cuda_maker_usual = {find_usual, load_usual};

/* ---- compiling ---- */

enum { LOG_BYTES_MAX = 2000, OPTIONS_MAX = 16, OPTION_BYTES_MAX = 64, JOBS_MAX = 16 };

typedef struct {
    const char *option[OPTIONS_MAX];
    char text[OPTIONS_MAX][OPTION_BYTES_MAX];
    int n;
    bool ptx;
} options;

static void add_option(options *o, str word)
{
    WEFT_ASSERT(o->n < OPTIONS_MAX && word.n < OPTION_BYTES_MAX);
    memcpy(o->text[o->n], word.p, word.n);
    o->text[o->n][word.n] = 0;
    o->option[o->n] = o->text[o->n];
    o->n++;
}

/* The architecture that code is made for: the card's, with what only it has where that is used (sm_90a), or, as PTX, the latest
 * before it. False: there is none. */
static bool add_arch(const nvrtc *n, const cuda_target *t, options *o)
{
    enum { ARCHS_MAX = 256 };
    int archs[ARCHS_MAX], n_arch = 0, best = 0, card = t->major * 10 + t->minor;
    char text[OPTION_BYTES_MAX];
    if (n->nvrtcGetNumSupportedArchs(&n_arch) != 0 || n_arch < 1 || n_arch > ARCHS_MAX ||
        n->nvrtcGetSupportedArchs(archs) != 0)
        return false;
    for (int i = 0; i < n_arch; i++)
        best = archs[i] <= card && archs[i] > best ? archs[i] : best;
    o->ptx = best != card;
    snprintf(text, sizeof text, "-arch=%s_%d%s", o->ptx ? "compute" : "sm", best,
             !o->ptx && card == 90 ? "a" : "");
    add_option(o, str_of(text));
    return best > 0;
}

static weft_status choose_options(weft_diag *dg, const nvrtc *n, const cuda_target *t, options *o)
{
    if (!add_arch(n, t, o))
        return weft_fail(dg, W1613, WEFT_NOWHERE, "NVRTC has no code for sm_%d%d, nor before it",
                         t->major, t->minor);
    for (int i = 0; word_at(t->texts->flags, i).n > 0; i++)
        add_option(o, word_at(t->texts->flags, i));
    add_option(o, STR("-default-device")); /* declarations of the host's functions do no harm */
    add_option(o, STR("-DWEFT_SHAPES=\"" CUDA_SHAPES_FILE "\""));
    return WEFT_OK;
}

/* One program. Its thread has no scope of memory: it does nothing but compile. */
typedef struct {
    const nvrtc *n;
    const options *o;
    nvrtc_program program;
    pthread_t thread;
    bool apart; /* it has a thread */
    int result;
    atomic_int *done; /* counts */
} compiling;

static void *compile_one(void *ctx)
{
    compiling *c = ctx;
    c->result = c->n->nvrtcCompileProgram(c->program, c->o->n, c->o->option);
    atomic_fetch_add(c->done, 1);
    return NULL;
}

/* Each by a thread, and by the caller what has none; it says how far they are. */
static void compile_all(compiling *c, int n, const code_options *how)
{
    enum { LOOK_NS = 50000000 };
    atomic_int done = 0;
    for (int i = 0; i < n; i++) {
        c[i].done = &done;
        c[i].apart = pthread_create(&c[i].thread, NULL, compile_one, &c[i]) == 0;
    }
    for (int i = 0; i < n; i++)
        if (!c[i].apart)
            compile_one(&c[i]);
    while (how->compiling && atomic_load(&done) < n) {
        how->compiling(how->ctx, (uint64_t)atomic_load(&done), (uint64_t)n);
        nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL);
    }
    for (int i = 0; i < n; i++)
        if (c[i].apart)
            pthread_join(c[i].thread, NULL);
    if (how->compiling)
        how->compiling(how->ctx, (uint64_t)n, (uint64_t)n);
}

/* The compiler's own words: the end of what they have too much of is left out. */
static weft_status fail_compile(weft_diag *dg, const nvrtc *n, nvrtc_program p, int r)
{
    size_t bytes = 0;
    char *log = NULL;
    if (p && n->nvrtcGetProgramLogSize(p, &bytes) == 0 && bytes > 1 &&
        bytes < CUDA_MADE_BYTES_MAX) {
        log = mem_alloc(bytes + 1);
        log[bytes] = 0;
        if (n->nvrtcGetProgramLog(p, log) != 0)
            log[0] = 0;
    }
    const char *name = n->nvrtcGetErrorString(r);
    weft_status st = weft_fail(
        dg, W1613, WEFT_NOWHERE, "NVRTC does not compile the plan's kernels: %s%s%.*s",
        name ? name : "unknown error", log && log[0] ? ": " : "", LOG_BYTES_MAX, log ? log : "");
    mem_free(log);
    return st;
}

static weft_status take_code(weft_diag *dg, const compiling *c, strbuf *out)
{
    const nvrtc *n = c->n;
    size_t bytes = 0;
    int r = c->result;
    if (r == 0)
        r = c->o->ptx ? n->nvrtcGetPTXSize(c->program, &bytes)
                      : n->nvrtcGetCUBINSize(c->program, &bytes);
    if (r == 0 && (bytes == 0 || bytes > CUDA_MADE_BYTES_MAX))
        return weft_fail(dg, W1613, WEFT_NOWHERE, "NVRTC gives %zu bytes of code", bytes);
    if (r == 0) {
        strbuf_fill(out, 0, bytes);
        r = c->o->ptx ? n->nvrtcGetPTX(c->program, out->p) : n->nvrtcGetCUBIN(c->program, out->p);
    }
    if (r == 0)
        return WEFT_OK;
    strbuf_reset(out);
    return fail_compile(dg, n, c->program, r);
}

/* Texts and names of all files, the shapes last. */
typedef struct {
    const char **text, **name;
    int n;
} headers;

/* Nothing says that NVRTC copies a program's arrays, so each has its own; they are freed with `text`. */
static headers headers_make(const cuda_texts *t, const char *shapes)
{
    const size_t n = (size_t)t->n_file + 1;
    headers h = {.text = mem_alloc(mem_product(n, 2 * sizeof *h.text)), .n = (int)n};
    h.name = h.text + n;
    for (int i = 0; i < t->n_file; i++) {
        h.text[i] = t->file[i].text;
        h.name[i] = t->file[i].name;
    }
    h.text[n - 1] = shapes;
    h.name[n - 1] = CUDA_SHAPES_FILE;
    return h;
}

static int create(const nvrtc *n, const cuda_texts *t, const headers *h, nvrtc_program *out_p)
{
    const char *kernel = NULL;
    for (int i = 0; i < t->n_file; i++)
        kernel = strcmp(t->file[i].name, CUDA_KERNEL_FILE) == 0 ? t->file[i].text : kernel;
    WEFT_ASSERT(kernel);
    return n->nvrtcCreateProgram(out_p, kernel, CUDA_KERNEL_FILE, h->n, h->text, h->name);
}

weft_status cuda_nvrtc_compile(weft_diag *dg, const nvrtc *n, const cuda_target *t,
                               const code_options *how, cuda_job *job, int n_job)
{
    options o = {.n = 0};
    compiling all[JOBS_MAX] = {{0}};
    headers h[JOBS_MAX] = {{0}};
    int r = 0;
    WEFT_ASSERT(n_job <= JOBS_MAX);
    WEFT_TRY(choose_options(dg, n, t, &o));
    for (int i = 0; i < n_job && r == 0; i++) {
        h[i] = headers_make(t->texts, job[i].shapes);
        all[i] = (compiling){.n = n, .o = &o};
        r = create(n, t->texts, &h[i], &all[i].program);
    }
    weft_status st = r == 0 ? WEFT_OK : fail_compile(dg, n, NULL, r);
    if (st == WEFT_OK)
        compile_all(all, n_job, how);
    for (int i = 0; i < n_job; i++) {
        if (st == WEFT_OK)
            st = take_code(dg, &all[i], &job[i].code);
        if (all[i].program)
            n->nvrtcDestroyProgram(&all[i].program);
        mem_free(h[i].text);
    }
    return st;
}
