/* check_emit.c - the maps of all cases of check_map.c compiled into one object for aarch64:
 *
 *   check_emit OBJECT KEYS
 *
 * KEYS becomes a C array with the hash of each function's key, in the order of the object's table. The cases themselves
 * are run with the portable kernel. */
#include "tests/kernels/check_jit.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include "codegen/codegen.h"

enum { STEPS_MAX = 4096 };

static struct {
    uint64_t hash[STEPS_MAX];
    plan_step step[STEPS_MAX];
    kinstr code[STEPS_MAX * MAP_CODE_MAX];
    int32_t n, n_code;
} all;

static const plan_kernel kernels[] = {{.name = "k_map_c", .op = KOP_map, .type = DT_COUNT},
                                      {.name = "k_map_neon", .op = KOP_map, .type = DT_COUNT}};

static void write_file(const char *path, const char *p, size_t n)
{
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(p, 1, n, f) != n || fclose(f) != 0) {
        perror(path);
        exit(2);
    }
}

static void write_all(void)
{
    static codegen_host host;
    void *lib = dlopen(WEFT_LLVM_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    weft_codegen_fn *entry = lib ? (weft_codegen_fn *)dlsym(lib, CODEGEN_ENTRY) : NULL;
    if (!entry) {
        fprintf(stderr, "check_emit: %s\n", dlerror());
        exit(2);
    }
    host = codegen_host_here();
    plan_bucket b = {.n_tok_max = 1, .n_step = all.n, .step = all.step};
    plan p = {.level = "neon",
              .n_kernel = 2,
              .kernel = kernels,
              .n_bucket = 1,
              .bucket = &b,
              .code = all.code,
              .n_code = all.n_code};
    code_job job = {.p = &p, .bucket = -1, .triple = "aarch64-linux-gnu", .pic = true};
    weft_diag *dg = diag_create();
    strbuf object = {0}, keys = {0};
    if (entry(&host)->compile(dg, &job, CODE_OBJECT, &object) != WEFT_OK) {
        fprintf(stderr, "check_emit: " STR_FMT "\n", STR_ARG(diag_at(dg, 0).message));
        exit(2);
    }
    strbuf_add(&keys, "static const uint64_t emitted_keys[] = {\n");
    for (int32_t i = 0; i < all.n; i++)
        strbuf_add(&keys, "    0x%016llxu,\n", (unsigned long long)all.hash[i]);
    strbuf_add(&keys, "};\n");
    write_file(getenv("CHECK_OBJECT"), object.p, object.n);
    write_file(getenv("CHECK_KEYS"), keys.p, keys.n);
    strbuf_free(&object);
    strbuf_free(&keys);
    diag_destroy(dg);
}

void jit_open(void)
{
    if (!getenv("CHECK_OBJECT") || !getenv("CHECK_KEYS")) {
        fprintf(stderr, "check_emit: CHECK_OBJECT and CHECK_KEYS name the files to write\n");
        exit(2);
    }
    atexit(write_all);
}

kernel_fn *jit_function(const kargs *k, const jit_level *level)
{
    map_key key = map_key_of(k);
    uint64_t hash = map_key_hash(&key, level);
    int32_t i = 0;
    while (i < all.n && all.hash[i] != hash)
        i++;
    if (i == all.n) {
        if (all.n == STEPS_MAX) {
            fprintf(stderr, "check_emit: more than %d maps\n", STEPS_MAX);
            exit(2);
        }
        all.hash[i] = hash;
        all.step[i] = map_step(k);
        all.step[i].kernel = strcmp(level->like, kernels[1].name) == 0;
        all.step[i].code = all.n_code;
        memcpy(all.code + all.n_code, k->code, (size_t)k->n_code * sizeof *k->code);
        all.n_code += (int32_t)k->n_code;
        all.n++;
    }
    return kernel_by_symbol("k_map_c")->fn;
}
