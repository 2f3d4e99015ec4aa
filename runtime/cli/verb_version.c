/* verb_version.c - `weft version`: what a bug report or a benchmark has to name. */
#include <stdlib.h>
#include <sys/utsname.h>

#include "compiler/backend.h"
#include "runtime/base/cpu.h"
#include "runtime/base/json_write.h"
#include "runtime/cli/cli.h"
#include "runtime/cli/version.h"
#include "runtime/exec/cuda_device.h"
#include "runtime/exec/metal_device.h"
#include "runtime/jit/jit_library.h"

typedef struct {
    char none;
} version_options;

static const flag version_flags[] = {FLAG_ROW_END(version_options)};

static const char *const examples[] = {
    "weft version", "one fact per line", "weft version --json", "the same for programs", NULL,
};

const verb_page version_verb_page = {version_flags, NULL, examples};

#if defined(__clang__)
#define COMPILER "Clang " __clang_version__
#elif defined(__GNUC__)
#define COMPILER "GCC " __VERSION__
#else
#define COMPILER "unknown"
#endif

enum { CARDS_MAX = 16 };

/* The CUDA cards; or why there are none, as one line. */
static int find_cards(cuda_card *card, strbuf *why)
{
    weft_diag *dg = diag_create();
    int n = 0;
    if (cuda_cards(dg, card, CARDS_MAX, &n) != WEFT_OK)
        strbuf_put(why, diag_at(dg, 0).message);
    diag_destroy(dg);
    return n < CARDS_MAX ? n : CARDS_MAX;
}

static void card_text(const cuda_card *c, strbuf *out)
{
    strbuf_add(out, "%s, %.1f GiB, sm_%d%d", c->name, (double)c->bytes / (1 << 30), c->major,
               c->minor);
}

/* The GPUs that Metal has; nobody expects them elsewhere. */
static int find_gpus(metal_facts *gpu)
{
    weft_diag *dg = diag_create();
    int n = 0;
    if (metal_gpus(dg, gpu, CARDS_MAX, &n) != WEFT_OK)
        n = 0;
    diag_destroy(dg);
    return n < CARDS_MAX ? n : CARDS_MAX;
}

static void gpu_text(const metal_facts *g, strbuf *out)
{
    strbuf_add(out, "%s, %.1f GiB, apple%d", g->name, (double)g->working_set / (1 << 30),
               g->family);
}

static void json_devices(json_writer *w)
{
    cuda_card card[CARDS_MAX];
    metal_facts gpu[CARDS_MAX];
    strbuf text = {0}, library = {0};
    int n = find_cards(card, &text), n_gpu = find_gpus(gpu);
    json_key_open(w, "devices", '[');
    json_str(w, STR("cpu"));
    for (int i = 0; i < n; i++) {
        strbuf_reset(&text);
        strbuf_add(&text, "cuda:%d", i);
        json_str(w, strbuf_view(&text));
    }
    for (int i = 0; i < n_gpu; i++) {
        strbuf_reset(&text);
        strbuf_add(&text, "metal:%d", i);
        json_str(w, strbuf_view(&text));
    }
    json_close(w, ']');
    json_key_open(w, "cards", '[');
    for (int i = 0; i < n; i++) {
        strbuf_reset(&text);
        card_text(&card[i], &text);
        json_str(w, strbuf_view(&text));
    }
    for (int i = 0; i < n_gpu; i++) {
        strbuf_reset(&text);
        gpu_text(&gpu[i], &text);
        json_str(w, strbuf_view(&text));
    }
    json_close(w, ']');
    cuda_library_path(&library);
    json_key_text(w, "cuda_kernels", library.n ? library.p : NULL);
    strbuf_reset(&library);
    cuda_nvrtc_path(&library);
    json_key_text(w, "cuda_compiler", library.n ? library.p : NULL);
    strbuf_free(&library);
    strbuf_free(&text);
}

static void text_devices(strbuf *out)
{
    cuda_card card[CARDS_MAX];
    metal_facts gpu[CARDS_MAX];
    strbuf why = {0}, library = {0};
    int n = find_cards(card, &why), n_gpu = find_gpus(gpu);
    strbuf_add(out, "  devices   cpu");
    for (int i = 0; i < n; i++) {
        strbuf_add(out, ", cuda:%d (", i);
        card_text(&card[i], out);
        strbuf_putc(out, ')');
    }
    for (int i = 0; i < n_gpu; i++) {
        strbuf_add(out, ", metal:%d (", i);
        gpu_text(&gpu[i], out);
        strbuf_putc(out, ')');
    }
    if (n + n_gpu == 0)
        strbuf_add(out, "; %s", why.n ? why.p : "there is no CUDA card");
    cuda_library_path(&library);
    strbuf_add(out, "\n  cuda      %s\n",
               library.n ? library.p : "needs libweft_cuda.so, which is not there");
    strbuf_reset(&library);
    cuda_nvrtc_path(&library);
    strbuf_add(out, "  nvrtc     %s\n",
               library.n             ? library.p
               : cuda_nvrtc_is_off() ? "off, by WEFT_NVRTC: no kernels are made for plans"
                                     : "needs libnvrtc.so.13, which is not there: no kernels are "
                                       "made for plans");
    strbuf_free(&library);
    strbuf_free(&why);
}

static void print_json(strbuf *out, const struct utsname *os, const char *cpu)
{
    json_writer w = {.out = out};
    const char *const facts[][2] = {
        {"version", build_version}, {"commit", build_commit}, {"compiler", COMPILER},
        {"os", os->sysname},        {"arch", os->machine},    {"cpu", cpu},
    };
    json_open(&w, '{');
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++)
        json_key_text(&w, facts[i][0], facts[i][1]);
    strbuf llvm = {0};
    jit_library_path(&llvm);
    json_key_text(&w, "code_generator", llvm.n ? llvm.p : NULL);
    strbuf_free(&llvm);
    json_key_open(&w, "cpu_features", '[');
    for (int i = 0; i < CPU_FEATURE_COUNT; i++)
        if (cpu_features() >> i & 1)
            json_str(&w, str_of(cpu_feature_name(i)));
    json_close(&w, ']');
    json_key_open(&w, "backends", '[');
    json_open(&w, '{');
    json_key_str(&w, "name", STR("cpu"));
    json_key_open(&w, "kernels", '[');
    for (int i = 0; backend_cpu_at(i); i++)
        json_str(&w, str_of(backend_cpu_at(i)->level));
    json_close(&w, ']');
    json_close(&w, '}');
    json_close(&w, ']');
    json_devices(&w);
    if (getenv("WEFT_CPU"))
        json_key_text(&w, "weft_cpu", getenv("WEFT_CPU"));
    json_close(&w, '}');
    strbuf_putc(out, '\n');
}

static void print_text(strbuf *out, const struct utsname *os, const char *cpu)
{
    strbuf_add(out, "weft %s\n", build_version);
    strbuf_add(out, "  commit    %s\n", build_commit);
    strbuf_add(out, "  compiler  %s\n", COMPILER);
    strbuf_add(out, "  system    %s %s\n", os->sysname, os->machine);
    strbuf_add(out, "  cpu       %s\n", *cpu ? cpu : "unnamed");
    strbuf_add(out, "  features ");
    size_t at = out->n;
    for (int i = 0; i < CPU_FEATURE_COUNT; i++)
        if (cpu_features() >> i & 1)
            strbuf_add(out, " %s", cpu_feature_name(i));
    strbuf_add(out, "%s\n", out->n == at ? " none" : "");
    strbuf_add(out, "  back end  cpu, kernels:");
    for (int i = 0; backend_cpu_at(i); i++)
        strbuf_add(out, " %s", backend_cpu_at(i)->level);
    strbuf_putc(out, '\n');
    strbuf llvm = {0};
    jit_library_path(&llvm);
    strbuf_add(out, "  code      %s\n",
               llvm.n ? llvm.p : "needs libweft_llvm.so, which is not there");
    strbuf_free(&llvm);
    text_devices(out);
    if (getenv("WEFT_CPU"))
        strbuf_add(out, "  WEFT_CPU  %s, the last of them that plans may use\n",
                   getenv("WEFT_CPU"));
}

int verb_version(cli *c)
{
    struct utsname os;
    if (uname(&os) != 0)
        os = (struct utsname){.sysname = "unknown", .machine = "unknown"};
    strbuf out = {0}, cpu = {0};
    strbuf_add(&cpu, "%s", "");
    cpu_name(&cpu);
    (c->common.json ? print_json : print_text)(&out, &os, cpu.p);
    cli_print_all(c, &out);
    strbuf_free(&cpu);
    return CLI_DONE;
}
