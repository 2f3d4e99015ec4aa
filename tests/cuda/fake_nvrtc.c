#include "tests/cuda/fake_nvrtc.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ERROR_COMPILATION = 6, ERROR_INVALID_PROGRAM = 4, PATH_BYTES = 512, LOG_BYTES = 8000 };

fake_nvrtc_how fake_nvrtc_now = {.stamp = "1"};
static atomic_int compiled, with_sheets;
static const char *kept; /* see fake_nvrtc_keep */

void fake_nvrtc_keep(const char *folder)
{
    kept = folder;
}

int fake_nvrtc_compiled(void)
{
    return atomic_load(&compiled);
}

int fake_nvrtc_sheets(void)
{
    return atomic_load(&with_sheets);
}

struct _nvrtcProgram {
    const char *text, *name;
    int n_header;
    const char *const *headers, *const *header_names;
    char folder[PATH_BYTES]; /* of the files */
    char *code;
    size_t bytes;
    char log[LOG_BYTES];
};

/* ---- files ---- */

/* Folders of a path, as far as they are not there. */
static void make_folders(char *path)
{
    for (char *at = strchr(path + 1, '/'); at; at = strchr(at + 1, '/')) {
        *at = 0;
        mkdir(path, 0700);
        *at = '/';
    }
}

static bool write_file(const char *folder, const char *name, const char *text)
{
    char path[2 * PATH_BYTES];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    make_folders(path);
    FILE *f = fopen(path, "w");
    if (!f)
        return false;
    bool fine = fputs(text, f) >= 0;
    return fclose(f) == 0 && fine;
}

static char *read_file(const char *folder, const char *name, size_t *out_n)
{
    char path[2 * PATH_BYTES];
    struct stat st;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "r");
    if (!f || fstat(fileno(f), &st) != 0)
        return NULL;
    char *p = malloc((size_t)st.st_size + 1);
    *out_n = fread(p, 1, (size_t)st.st_size, f);
    p[*out_n] = 0;
    fclose(f);
    return p;
}

/* The compiler here has the headers of the system itself. */
static bool is_of_system(const char *name)
{
    size_t n = strlen(name);
    return !strchr(name, '/') && n > 2 && strcmp(name + n - 2, ".h") == 0;
}

static const char wrapper[] =
    "#include \"tests/cuda/simt.h\"\n"
    "#include \"tests/cuda/simt_run.h\"\n"
    "#pragma GCC diagnostic error \"-Wpedantic\"\n" /* as NVRTC */
    "#include \"kernels/cuda/phase.cu\"\n"
    "static void call_phases(void *args) { weft_phases(*(const cuda_launch *)args); }\n"
    "extern \"C\" __attribute__((visibility(\"default\")))\n"
    "bool made_phases(const cuda_launch *all, int blocks, int threads, int more, size_t bytes,\n"
    "                 char *error)\n"
    "{\n"
    "    cuda_launch copy = *all;\n"
    "    simt_grid g = {blocks, threads, more, bytes, call_phases, &copy};\n"
    "    return simt_launch(&g, error);\n"
    "}\n";

static bool write_all(struct _nvrtcProgram *p)
{
    char path[2 * PATH_BYTES];
    bool fine =
        write_file(p->folder, p->name, p->text) && write_file(p->folder, "made.cpp", wrapper);
    for (int i = 0; i < p->n_header && fine; i++)
        if (!is_of_system(p->header_names[i]))
            fine = write_file(p->folder, p->header_names[i], p->headers[i]);
    if (fine && fake_nvrtc_now.breaks)
        fine = write_file(p->folder, "kernels/cuda/phase.cu", fake_nvrtc_now.breaks);
    snprintf(path, sizeof path, "%s/tests", p->folder);
    return fine && symlink(FAKE_SOURCES "/tests", path) == 0;
}

static int run_command(const char *folder, const char *const *args)
{
    int status = -1;
    pid_t child = fork();
    if (child == 0) {
        int log = -1;
        if (chdir(folder) == 0)
            log = open("log", O_WRONLY | O_CREAT | O_TRUNC, 0600);
        if (log >= 0)
            dup2(log, 2);
        unsetenv("LD_LIBRARY_PATH");
        execvp(args[0], (char *const *)(uintptr_t)args);
        _exit(127);
    }
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    return status;
}

/* ---- code that is kept ---- */

/* FNV-1a. */
static void hash_text(uint64_t *hash, const char *text)
{
    for (; *text; text++)
        *hash = (*hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    *hash = *hash * UINT64_C(0x100000001b3) + 1; /* where it ends */
}

/* The name of what is compiled, of all that its code depends on. */
static void kept_name(const struct _nvrtcProgram *p, const char *const *args, char *to,
                      size_t bytes)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    hash_text(&hash, p->text);
    hash_text(&hash, fake_nvrtc_now.breaks ? fake_nvrtc_now.breaks : "");
    for (int i = 0; i < p->n_header; i++) {
        hash_text(&hash, p->header_names[i]);
        hash_text(&hash, p->headers[i]);
    }
    for (; *args; args++)
        hash_text(&hash, *args);
    snprintf(to, bytes, "%016llx.so", (unsigned long long)hash);
}

/* ---- the functions ---- */

static const char *fake_nvrtcGetErrorString(int r)
{
    return r == ERROR_COMPILATION ? "NVRTC_ERROR_COMPILATION" : r ? "NVRTC_ERROR" : "NVRTC_SUCCESS";
}

static int fake_nvrtcVersion(int *out_major, int *out_minor)
{
    *out_major = 13;
    *out_minor = 0;
    return 0;
}

static const int archs[] = {80, 90};

static int fake_nvrtcGetNumSupportedArchs(int *out_n)
{
    *out_n = 2;
    return 0;
}

static int fake_nvrtcGetSupportedArchs(int *out_archs)
{
    memcpy(out_archs, archs, sizeof archs);
    return 0;
}

static int fake_nvrtcCreateProgram(nvrtc_program *out_p, const char *text, const char *name,
                                   int n_header, const char *const *headers,
                                   const char *const *header_names)
{
    nvrtc_program p = calloc(1, sizeof *p);
    if (text_sheets(n_header, headers, header_names) > 0)
        atomic_fetch_add(&with_sheets, 1);
    p->text = text;
    p->name = name;
    p->n_header = n_header;
    p->headers = headers;
    p->header_names = header_names;
    snprintf(p->folder, sizeof p->folder, "%s/weft-fake-nvrtc-XXXXXX",
             getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    *out_p = p;
    return mkdtemp(p->folder) ? 0 : ERROR_INVALID_PROGRAM;
}

static int fake_nvrtcDestroyProgram(nvrtc_program *p)
{
    const char *const args[] = {"rm", "-rf", (*p)->folder, NULL};
    run_command("/", args);
    free((*p)->code);
    free(*p);
    *p = NULL;
    return 0;
}

static int fake_nvrtcCompileProgram(nvrtc_program p, int n_option, const char *const *options)
{
    const char *args[64] = {FAKE_CXX,
                            "-std=gnu++17",
                            "-shared",
                            "-fPIC",
                            "-Og",
                            "-fno-exceptions",
                            "-fno-rtti",
                            "-fno-threadsafe-statics",
                            "-ffp-contract=off",
                            "-fvisibility=hidden",
                            "-ftls-model=initial-exec",
                            "-D_GNU_SOURCE",
                            "-I.",
                            "-Itests/cuda/toolkit"};
    int n = 0;
    atomic_fetch_add(&compiled, 1);
    while (args[n])
        n++;
    for (int i = 0; i < n_option; i++)
        if (strncmp(options[i], "-D", 2) == 0)
            args[n++] = options[i];
    const char *const last[] = {"made.cpp", FAKE_SIMT, "-Wl,-Bsymbolic", "-lm", "-o", "made.so"};
    for (size_t i = 0; i < sizeof last / sizeof *last; i++)
        args[n++] = last[i];
    char name[32], from[2 * PATH_BYTES], to[2 * PATH_BYTES];
    kept_name(p, args, name, sizeof name);
    if (kept && (p->code = read_file(kept, name, &p->bytes)))
        return 0;
    bool fine = write_all(p) && run_command(p->folder, args) == 0;
    if (fine)
        p->code = read_file(p->folder, "made.so", &p->bytes);
    if (p->code && kept) { /* another process may look for it */
        snprintf(from, sizeof from, "%s/made.so", p->folder);
        snprintf(to, sizeof to, "%s/%s", kept, name);
        (void)!rename(from, to);
    }
    size_t log_bytes = 0;
    char *log = read_file(p->folder, "log", &log_bytes);
    snprintf(p->log, sizeof p->log, "%s", log ? log : "");
    free(log);
    return p->code ? 0 : ERROR_COMPILATION;
}

static int fake_nvrtcGetCUBINSize(nvrtc_program p, size_t *out_bytes)
{
    *out_bytes = p->bytes;
    return 0;
}

static int fake_nvrtcGetCUBIN(nvrtc_program p, char *to)
{
    memcpy(to, p->code, p->bytes);
    return 0;
}

static int fake_nvrtcGetPTXSize(nvrtc_program p, size_t *out_bytes)
{
    return fake_nvrtcGetCUBINSize(p, out_bytes);
}

static int fake_nvrtcGetPTX(nvrtc_program p, char *to)
{
    return fake_nvrtcGetCUBIN(p, to);
}

static int fake_nvrtcGetProgramLogSize(nvrtc_program p, size_t *out_bytes)
{
    *out_bytes = strlen(p->log) + 1;
    return 0;
}

static int fake_nvrtcGetProgramLog(nvrtc_program p, char *to)
{
    strcpy(to, p->log);
    return 0;
}

/* ---- as a table, and as a library ---- */

const nvrtc *fake_nvrtc(void)
{
    static const nvrtc table = {
#define NVRTC_FN(ret, name, args) .name = fake_##name,
#include "runtime/exec/cuda_nvrtc.def"
#undef NVRTC_FN
    };
    return &table;
}

#ifdef FAKE_LIBRARY
/* By the names that cuda_nvrtc.c looks for. */
#define NVRTC_FN(ret, name, args)                                                                  \
    ret shown_##name args __asm__(#name)                                                           \
        __attribute__((alias("fake_" #name), visibility("default")));
#include "runtime/exec/cuda_nvrtc.def"
#undef NVRTC_FN
#else
static void find(strbuf *out_path, strbuf *out_stamp)
{
    if (!fake_nvrtc_now.missing)
        strbuf_add(out_path, "the tests' NVRTC");
    strbuf_add(out_stamp, "%s", fake_nvrtc_now.stamp);
}

static weft_status load(weft_diag *dg, const nvrtc **out_n)
{
    if (fake_nvrtc_now.load_fails)
        return weft_fail(dg, W1613, WEFT_NOWHERE, "the tests' NVRTC cannot be loaded");
    *out_n = fake_nvrtc();
    return WEFT_OK;
}

const cuda_maker fake_maker = {find, load};
#endif
