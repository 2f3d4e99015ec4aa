/* build.c - the stages of `weft build`: tools, plans, weights, linking, writing. */
#include "runtime/build/build.h"

#include "compiler/plan_file.h"
#include "runtime/base/file.h"
#include "runtime/base/pack.h"
#include "runtime/build/build_code.h"
#include "runtime/build/program_file.h"
#include "runtime/formats/out_file.h"
#include "runtime/jit/jit_library.h"
#include "runtime/program/adapter_image.h"
#include "runtime/program/facts.h"
#include "runtime/text/chat_image.h"
#include "runtime/text/tok_image.h"
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BUILD_ADAPTERS_MAX = 16 };

typedef struct {
    const char *level;
    api_plan plan;
    const struct plan *carried; /* the same, with its weights in the image */
} level_plan;

typedef struct {
    weft_diag *dg;
    const weft_model *m;
    const build_options *opt;
    build_result *out;
    arena *a;
    link_tools tools;
    build_choice choice;
    level_plan plan[BUILD_LEVELS_MAX]; /* from plain to fast */
    int n_plan;
    build_weights weights;
    VEC(const char *) alias; /* two of each: see link_job */
    strbuf name;             /* of a library */
    strbuf part_bytes[IMAGE_PARTS_MAX];
    image_part part[IMAGE_PARTS_MAX];
    int n_part;
    char *folder; /* for files that linking needs; NULL: none yet */
} building;

/* Between stages, and between weights. */
static weft_status go_on(const building *b)
{
    return b->opt->stop && *b->opt->stop ? weft_fail(b->dg, W1412, WEFT_NOWHERE, "cancelled")
                                         : WEFT_OK;
}

/* ---- plans ---- */

/* What the program's tables have (runtime/program/kernel_rows_used.c, text_parts_used.c) is there as used_NAME. */
static void want(building *b, const char *name)
{
    for (size_t i = 1; i < b->alias.n; i += 2)
        if (strcmp(b->alias.at[i], name) == 0)
            return;
    VEC_PUSH(&b->alias, arena_printf(b->a, "used_%s", name).p);
    VEC_PUSH(&b->alias, name);
}

static const backend *backend_of(const building *b, const char *level)
{
    return backend_cpu_for(karch_find(b->opt->to->machine), level);
}

/* The plan of a level, with its weights in the image. *out_fits: it adds no more than `most` bytes of weights; else it adds nothing. */
static weft_status make_plan(building *b, const char *level, uint64_t most, level_plan *out,
                             bool *out_fits)
{
    api_wanted w = b->opt->session;
    build_weights *all = &b->weights;
    uint64_t bytes = all->bytes;
    size_t n = all->list.n;
    w.be = backend_of(b, level);
    w.how.no_repack = b->choice.lie == BUILD_STORED;
    if (b->choice.lie == BUILD_LIKE)
        w.laid_for = backend_of(b, b->choice.like);
    *out = (level_plan){.level = level};
    WEFT_TRY(api_plan_open(b->dg, b->m, &w, &out->plan));
    weft_status st = build_weights_add(b->dg, all, out->plan.p, &out->carried);
    *out_fits = st == WEFT_OK && all->bytes - bytes <= most;
    if (!*out_fits) {
        build_weights_cut(all, n, bytes);
        api_plan_close(&out->plan);
    }
    return st;
}

/* Levels stand from plain to fast. */
static void keep_plan(building *b, const level_plan *p)
{
    int at = b->n_plan++;
    for (; at > 0 && backend_cpu_rank(b->plan[at - 1].level) > backend_cpu_rank(p->level); at--)
        b->plan[at] = b->plan[at - 1];
    b->plan[at] = *p;
    for (int32_t k = 0; k < p->carried->n_kernel; k++)
        want(b, p->carried->kernel[k].name);
}

/* The one that the weights lie for comes first, then the others from fast to plain. */
static weft_status make_plans(building *b)
{
    const build_choice *c = &b->choice;
    const char *first = c->like ? c->like : c->level[c->n_level - 1];
    uint64_t most = UINT64_MAX;
    for (int i = c->n_level; i >= 0; i--) {
        const char *level = i == c->n_level ? first : c->level[i];
        bool fits;
        level_plan made;
        if (i < c->n_level && strcmp(level, first) == 0)
            continue;
        uint64_t before = b->weights.bytes;
        WEFT_TRY(go_on(b));
        WEFT_TRY(make_plan(b, level, most, &made, &fits));
        if (fits)
            keep_plan(b, &made);
        else
            b->out->left_out[b->out->n_left_out++] = level;
        if (c->lie == BUILD_LIKE)
            most = i == c->n_level ? BUILD_TWICE_MAX : most - (b->weights.bytes - before);
    }
    for (int i = 0; i < b->n_plan; i++)
        b->out->level[i] = b->plan[i].level;
    b->out->n_level = b->n_plan;
    return WEFT_OK;
}

/* ---- parts of the image ---- */

/* A new part; its bytes go to the buffer that is returned. */
static strbuf *add_part(building *b, image_kind kind, const char *name)
{
    WEFT_ASSERT(b->n_part < IMAGE_PARTS_MAX - 2);
    image_part *p = &b->part[b->n_part];
    p->kind = kind;
    snprintf(p->name, sizeof p->name, "%s", name);
    return &b->part_bytes[b->n_part++];
}

static void add_facts(building *b)
{
    static const char *const names[] = {"vocab", "layers",   "d",        "ff",
                                        "heads", "kv_heads", "head_dim", "eps"};
    facts f = {.weft = weft_version(),
               .name = weft_model_name(b->m),
               .context = b->plan[0].plan.run.n_ctx,
               .param = ARENA_ARRAY(b->a, fact_param, sizeof names / sizeof *names)};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const value *v = b->m->kind->param(b->m, names[i]);
        if (v)
            f.param[f.n_param++] = (fact_param){names[i], *v};
    }
    facts_write(&f, add_part(b, IMAGE_FACTS, "facts"));
}

static weft_status add_tokenizer(building *b)
{
    tok *t;
    WEFT_TRY(b->m->kind->tokenizer(b->dg, b->m, &t));
    tok_image_write(t, add_part(b, IMAGE_TOKENIZER, "tokenizer"));
    if (tok_needs_tables(t))
        want(b, "uni_tables_whole");
    tok_close(t);
    return WEFT_OK;
}

/* The template that was chosen, else that of the model; a model without one is one without a chat. */
static weft_status add_template(building *b)
{
    chat_template *ct = NULL;
    weft_diag *quiet = diag_create();
    const char *choice = b->opt->chat_template;
    weft_status st = b->m->kind->chat(choice ? b->dg : quiet, b->m, choice, &ct);
    diag_destroy(quiet);
    if (st != WEFT_OK)
        return choice ? st : WEFT_OK;
    chat_image_write(ct, add_part(b, IMAGE_TEMPLATE, "template"));
    want(b, "jinja_whole"); /* which needs Unicode's tables */
    chat_close(ct);
    return WEFT_OK;
}

static void add_plan(building *b, int i)
{
    strbuf bytes = {0};
    plan_write(b->plan[i].carried, b->m->weights->kind->identity(b->m->weights), &bytes);
    bytes_pack(strbuf_view(&bytes), add_part(b, IMAGE_PLAN, b->out->level[i]));
    strbuf_free(&bytes);
}

static weft_status make_parts(building *b)
{
    const build_options *opt = b->opt;
    add_facts(b);
    WEFT_TRY(add_tokenizer(b));
    WEFT_TRY(add_template(b));
    if (opt->n_adapter > BUILD_ADAPTERS_MAX)
        return weft_fail(b->dg, W1406, WEFT_NOWHERE,
                         "a program carries %d adapters at most, not %zu", BUILD_ADAPTERS_MAX,
                         opt->n_adapter);
    for (size_t i = 0; i < opt->n_adapter; i++)
        adapter_image_write(opt->adapter[i], opt->scale[i],
                            add_part(b, IMAGE_ADAPTER, arena_printf(b->a, "lora%zu", i + 1).p));
    for (int i = 0; i < b->out->n_level; i++)
        add_plan(b, i);
    for (int i = 0; i < b->n_part; i++) {
        b->part[i].data = (const unsigned char *)b->part_bytes[i].p;
        b->part[i].bytes = b->part_bytes[i].n;
    }
    return WEFT_OK;
}

/* ---- code ---- */

/* Why there is no code, in one line. */
static void say_without(building *b, weft_diag *quiet)
{
    str why = diag_count(quiet) ? diag_at(quiet, 0).message : STR("");
    snprintf(b->out->without, sizeof b->out->without, STR_FMT, STR_ARG(why));
}

static weft_status make_code(building *b, link_job *job)
{
    const codegen *cg;
    if (b->opt->code == BUILD_CODE_NONE)
        return WEFT_OK;
    weft_diag *quiet = diag_create();
    weft_status st = jit_library(b->opt->code == BUILD_CODE_AUTO ? quiet : b->dg, &cg);
    if (st != WEFT_OK && b->opt->code == BUILD_CODE_AUTO) {
        say_without(b, quiet);
        diag_destroy(quiet);
        return WEFT_OK;
    }
    diag_destroy(quiet);
    const char **object = ARENA_ARRAY(b->a, const char *, BUILD_LEVELS_MAX);
    for (int i = 0; i < b->out->n_level && st == WEFT_OK; i++) {
        object[i] = arena_printf(b->a, "%s/%s.o", b->folder, b->out->level[i]).p;
        st = build_code(b->dg, cg, b->plan[i].carried, b->opt->to->name, !b->opt->strip, object[i]);
    }
    job->object = object;
    job->n_object = b->out->n_level;
    b->out->code = st == WEFT_OK;
    return st;
}

/* ---- linking ---- */

static weft_status make_folder(building *b)
{
    const char *tmp = getenv("TMPDIR");
    char *path =
        (char *)(uintptr_t)arena_printf(b->a, "%s/weft-build-XXXXXX", tmp && *tmp ? tmp : "/tmp").p;
    if (!mkdtemp(path))
        return weft_fail(b->dg, W1004, WEFT_NOWHERE, "cannot make a folder %s: %s", path,
                         file_reason_of(errno).text);
    b->folder = path;
    return WEFT_OK;
}

static void remove_folder(const char *path)
{
    DIR *d = opendir(path);
    for (struct dirent *e; d && (e = readdir(d));) {
        char file[4096];
        snprintf(file, sizeof file, "%s/%s", path, e->d_name);
        if (e->d_name[0] != '.')
            unlink(file);
    }
    if (d)
        closedir(d);
    rmdir(path);
}

/* clang-format off */
static const char *const lib_functions[] = {"open", "sampling", "prompt", "next", "error", "close"};
/* clang-format on */
enum { LIB_FUNCTIONS = sizeof lib_functions / sizeof *lib_functions };

static weft_status lib_exports(building *b, link_job *job)
{
    strbuf map = {0};
    strbuf_add(&map, "{ global:");
    for (int i = 0; i < LIB_FUNCTIONS; i++) {
        VEC_PUSH(&b->alias, arena_printf(b->a, "%s_%s", b->name.p, lib_functions[i]).p);
        VEC_PUSH(&b->alias, arena_printf(b->a, "program_lib_%s", lib_functions[i]).p);
        strbuf_add(&map, " %s_%s;", b->name.p, lib_functions[i]);
    }
    strbuf_add(&map, " local: *; };\n");
    job->exports = arena_printf(b->a, "%s/exports.map", b->folder).p;
    weft_status st = out_file_write(b->dg, job->exports, strbuf_view(&map));
    strbuf_free(&map);
    return st;
}

static weft_status discard_script(building *b, link_job *job)
{
    job->discard = arena_printf(b->a, "%s/discard.ld", b->folder).p;
    return out_file_write(b->dg, job->discard, str_of(link_discard));
}

static weft_status read_linked(building *b, const char *path, strbuf *out)
{
    int fd;
    uint64_t bytes;
    size_t n = 0;
    WEFT_TRY(file_open(b->dg, path, &fd, &bytes));
    strbuf_fill(out, 0, (size_t)bytes);
    weft_status st = file_read(b->dg, fd, path, out->p, (size_t)bytes, &n);
    file_close(fd);
    return st;
}

static weft_status link_all(building *b, strbuf *out_elf)
{
    const char *slash = strrchr(b->opt->out, '/');
    link_job job = {.strip = b->opt->strip, .name = slash ? slash + 1 : b->opt->out};
    WEFT_TRY(make_folder(b));
    job.out = arena_printf(b->a, "%s/linked", b->folder).p;
    if (b->opt->tools.lib)
        WEFT_TRY(lib_exports(b, &job));
    else if (job.strip)
        WEFT_TRY(discard_script(b, &job));
    WEFT_TRY(make_code(b, &job));
    WEFT_TRY(go_on(b));
    job.alias = b->alias.at;
    job.n_alias = (int)b->alias.n / 2;
    WEFT_TRY(link_run(b->dg, b->a, &b->tools, &job));
    return read_linked(b, job.out, out_elf);
}

/* ---- writing ---- */

/* Begins the header of a library. */
static weft_status write_header(building *b, out_file **out)
{
    const char *slash = strrchr(b->opt->out, '/');
    const char *path = arena_printf(b->a, "%.*s%s.h", slash ? (int)(slash + 1 - b->opt->out) : 0,
                                    b->opt->out, b->name.p)
                           .p;
    strbuf text = {0};
    lib_header(b->name.p, slash ? slash + 1 : b->opt->out, &text);
    weft_status st = out_file_create(b->dg, path, out);
    if (st == WEFT_OK)
        st = out_file_put(b->dg, *out, text.p, text.n);
    strbuf_free(&text);
    return st;
}

static weft_status write_all(building *b, strbuf *elf)
{
    program_file f = {.path = b->opt->out,
                      .elf = elf,
                      .weights = &b->weights,
                      .identity = b->m->weights->kind->identity(b->m->weights),
                      .part = b->part,
                      .n_part = b->n_part,
                      .external = b->opt->external,
                      .lib = b->opt->tools.lib,
                      .report = b->opt->report,
                      .ctx = b->opt->ctx,
                      .stop = b->opt->stop};
    out_file *header = NULL; /* both or neither */
    weft_status status = b->opt->tools.lib ? write_header(b, &header) : WEFT_OK;
    if (status == WEFT_OK)
        status = program_file_write(b->dg, &f);
    if (status == WEFT_OK && header)
        status = out_file_finish(b->dg, header);
    out_file_destroy(header);
    struct stat st;
    b->out->bytes = stat(b->opt->out, &st) == 0 ? (uint64_t)st.st_size : 0;
    b->out->weights = b->weights.bytes;
    return status;
}

static weft_status make(building *b)
{
    strbuf elf = {0};
    lib_name(b->opt->out, &b->name);
    WEFT_TRY(build_levels(b->dg, b->opt->to, b->opt->cpu, &b->choice));
    WEFT_TRY(link_tools_find(b->dg, b->a, b->opt->to, &b->opt->tools, &b->tools));
    WEFT_TRY(make_plans(b));
    WEFT_TRY(make_parts(b));
    weft_status st = link_all(b, &elf);
    if (st == WEFT_OK)
        st = write_all(b, &elf);
    strbuf_free(&elf);
    return st;
}

weft_status build_program(weft_diag *dg, const weft_model *m, const build_options *opt,
                          build_result *out)
{
    *out = (build_result){0};
    building b = {.dg = dg, .m = m, .opt = opt, .out = out, .a = arena_create()};
    b.weights = (build_weights){.src = m->weights, .a = b.a};
    weft_status st = make(&b);
    if (b.folder)
        remove_folder(b.folder);
    for (int i = 0; i < b.n_plan; i++)
        api_plan_close(&b.plan[i].plan);
    for (int i = 0; i < b.n_part; i++)
        strbuf_free(&b.part_bytes[i]);
    VEC_FREE(&b.alias);
    strbuf_free(&b.name);
    build_weights_free(&b.weights);
    arena_destroy(b.a);
    return st;
}
