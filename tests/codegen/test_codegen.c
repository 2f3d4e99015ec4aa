/* test_codegen.c - the suite of codegen/: forms, targets, linking and what goes wrong. What maps compute is checked by
 * kernel_check_jit, what buckets compute by the models that run with --exec jit. */
#include "tests/exec/toy.h"

#include <dlfcn.h>
#include <elf.h>
#include <unistd.h>
#include "codegen/codegen.h"
#include "runtime/exec/plan_code.h"

static const codegen *gen;
static toy *t;

static void open_all(void)
{
    static codegen_host host;
    void *lib = dlopen(WEFT_LLVM_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    ck_assert_msg(lib, "%s", dlerror());
    weft_codegen_fn *entry = (weft_codegen_fn *)dlsym(lib, CODEGEN_ENTRY);
    ck_assert(entry);
    host = codegen_host_here();
    gen = entry(&host);
    ck_assert_str_eq(gen->build, codegen_build_id());
    t = toy_open();
}

/* The toy's plan with kernels of a level of any architecture. */
static const plan *plan_for(karch arch, const char *level)
{
    const backend *be = backend_cpu_for(arch, level);
    ck_assert(be);
    target limits = {.be = be, .n_tok_max = TOY_TOKENS};
    plan *p;
    ck_assert_int_eq(plan_make(t->dg, t->g, &limits, NULL, t->a, &p), WEFT_OK);
    return p;
}

static const Elf64_Ehdr *elf_of(const strbuf *b)
{
    const Elf64_Ehdr *h = (const Elf64_Ehdr *)(const void *)b->p;
    ck_assert(b->n > sizeof *h && memcmp(h->e_ident, ELFMAG, SELFMAG) == 0);
    ck_assert_int_eq(h->e_type, ET_REL);
    return h;
}

START_TEST(forms)
{
    open_all();
    code_job job = {
        .p = plan_for(KARCH_HERE, "c"), .bucket = -1, .prefix = "own_", .pic = true, .debug = true};
    strbuf object = {0}, again = {0}, llvm = {0}, text = {0};
    ck_assert_int_eq(gen->compile(t->dg, &job, CODE_OBJECT, &object), WEFT_OK);
    ck_assert_int_eq(gen->compile(t->dg, &job, CODE_OBJECT, &again), WEFT_OK);
    ck_assert_msg(str_eq(strbuf_view(&object), strbuf_view(&again)), "other bytes the second time");
    elf_of(&object);
    ck_assert_int_eq(gen->compile(t->dg, &job, CODE_LLVM, &llvm), WEFT_OK);
    ck_assert(strstr(llvm.p, "@own_code = constant"));
    ck_assert(strstr(llvm.p, "call void @k_linear_"));
    ck_assert_int_eq(gen->compile(t->dg, &job, CODE_ASM, &text), WEFT_OK);
    ck_assert(strstr(text.p, "own_code:"));
    strbuf_free(&object);
    strbuf_free(&again);
    strbuf_free(&llvm);
    strbuf_free(&text);
    toy_close(t);
}
END_TEST

START_TEST(targets)
{
    open_all();
    static const struct {
        const char *triple, *level;
        karch arch;
        int machine;
    } rows[] = {{"aarch64-linux-gnu", "neon", KARCH_AARCH64, EM_AARCH64},
                {"aarch64-linux-gnu", "i8mm", KARCH_AARCH64, EM_AARCH64},
                {"x86_64-linux-gnu", "avx2", KARCH_X86_64, EM_X86_64},
                {"x86_64-linux-gnu", "amx", KARCH_X86_64, EM_X86_64}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        code_job job = {.p = plan_for(rows[i].arch, rows[i].level),
                        .bucket = -1,
                        .triple = rows[i].triple,
                        .pic = true};
        strbuf object = {0};
        ck_assert_int_eq(gen->compile(t->dg, &job, CODE_OBJECT, &object), WEFT_OK);
        ck_assert_int_eq(elf_of(&object)->e_machine, rows[i].machine);
        strbuf_free(&object);
    }
    toy_close(t);
}
END_TEST

/* Code that is loaded without the kernels it needs. */
START_TEST(links)
{
    open_all();
    const code_symbol known[] = {{"k_map_c", (const void *)kernel_by_symbol("k_map_c")->fn}};
    strbuf object = {0};
    code *c = NULL;
    void *at = NULL;
    code_job job = {.p = plan_for(KARCH_HERE, "c"), .bucket = 0, .pic = true};
    ck_assert_int_eq(gen->compile(t->dg, &job, CODE_OBJECT, &object), WEFT_OK);
    ck_assert_int_eq(gen->load(t->dg, object.p, object.n, known, 1, &c), WEFT_OK);
    ck_assert_int_ne(gen->find(t->dg, c, CODE_SYMBOL, &at), WEFT_OK);
    ck_assert(diag_errors(t->dg) == 1);
    gen->unload(c);
    strbuf_free(&object);
    toy_close(t);
}
END_TEST

START_TEST(failures)
{
    open_all();
    strbuf out = {0};
    code *c = NULL;
    code_job job = {.p = plan_for(KARCH_HERE, "c"), .bucket = -1, .triple = "vax-dec-vms"};
    ck_assert_int_eq(gen->compile(t->dg, &job, CODE_OBJECT, &out), WEFT_ERR_DEVICE);
    ck_assert_int_eq(out.n, 0);
    ck_assert_int_eq(gen->load(t->dg, "not an object", 13, NULL, 0, &c), WEFT_ERR_DEVICE);
    ck_assert_ptr_null(c);
    ck_assert_int_eq(diag_errors(t->dg), 2);
    gen->unload(NULL);
    toy_close(t);
}
END_TEST

/* Buckets that were not asked for have nothing. */
START_TEST(one_bucket)
{
    open_all();
    const plan *p = plan_for(KARCH_HERE, "c");
    code_job job = {.p = p, .bucket = 0, .pic = true};
    strbuf llvm = {0};
    char other[64];
    ck_assert_int_ge(p->n_bucket, 2);
    ck_assert_int_eq(gen->compile(t->dg, &job, CODE_LLVM, &llvm), WEFT_OK);
    snprintf(other, sizeof other, "@bucket_%d(", (int)p->bucket[1].n_tok_max);
    ck_assert(strstr(llvm.p, "@bucket_1("));
    ck_assert(!strstr(llvm.p, other));
    strbuf_free(&llvm);
    toy_close(t);
}
END_TEST

SUITE_MAIN("codegen", forms, targets, links, failures, one_bucket)
