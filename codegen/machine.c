/* machine.c - the processor that code is for: a target machine of LLVM's, and how wide its vectors are.
 *
 * Where a job names no features they are those of the plan's level (kernels/variants.def), not all that the machine at hand
 * has: WEFT_CPU then holds for generated code too, and the same plan gives the same code on every machine. */
#include "codegen/codegen_impl.h"

#include <llvm-c/Target.h>
#include <pthread.h>
#include <stdio.h>
#include "runtime/base/cpu.h"

static void targets_init(void)
{
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    LLVMInitializeAArch64TargetInfo();
    LLVMInitializeAArch64Target();
    LLVMInitializeAArch64TargetMC();
    LLVMInitializeAArch64AsmPrinter();
}

void machine_init(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, targets_init);
}

/* ---- features by level ---- */

/* LLVM's names of the features in cpu.def, where they differ. */
static const char *llvm_name(const char *name)
{
    static const char *const others[][2] = {
        {"avx-vnni", "avxvnni"},
        {"avx512-vbmi", "avx512vbmi"},
        {"avx512-vnni", "avx512vnni"},
        {"avx512-bf16", "avx512bf16"},
        {"avx512-fp16", "avx512fp16"},
        {"fp16", "fullfp16"},
        {"fhm", "fp16fml"},
    };
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (strcmp(others[i][0], name) == 0)
            return others[i][1];
    return name;
}

static uint32_t level_needs(const char *level)
{
#define VARIANT(name, arch, rounding, needs)                                                       \
    if (strcmp(level, #name) == 0)                                                                 \
        return (uint32_t)(needs);
#include "kernels/variants.def"
#undef VARIANT
    return 0;
}

enum { FEATURES_MAX = 512 };

/* clang-format off */
static const char *const feature_names[CPU_FEATURE_COUNT] = {
#define CPU_X86(name, text, ...) text,
#define CPU_ARM(name, text, ...) text,
#include "runtime/base/cpu.def"
#undef CPU_X86
#undef CPU_ARM
};
/* clang-format on */

static void level_features(const char *level, char out[FEATURES_MAX])
{
    uint32_t needs = level_needs(level);
    size_t n = 0;
    out[0] = 0;
    for (int i = 0; i < CPU_FEATURE_COUNT; i++)
        if (needs >> i & 1)
            n += (size_t)snprintf(out + n, FEATURES_MAX - n, "%s+%s", n ? "," : "",
                                  llvm_name(feature_names[i]));
}

/* ---- the machine ---- */

static bool has_feature(const char *features, const char *name)
{
    size_t n = strlen(name);
    for (const char *p = features; (p = strstr(p, name)); p++)
        if (p > features && p[-1] == '+' && (p[n] == 0 || p[n] == ','))
            return true;
    return false;
}

static int lanes_of(const char *features)
{
    return has_feature(features, "avx512f") ? 16 : has_feature(features, "avx2") ? 8 : 4;
}

weft_status machine_open(weft_diag *dg, const code_job *job, machine *out_to)
{
    machine_init();
    char *here = LLVMGetDefaultTargetTriple();
    char *triple = LLVMNormalizeTargetTriple(job->triple ? job->triple : here), *error = NULL;
    LLVMDisposeMessage(here);
    LLVMTargetRef target;
    if (LLVMGetTargetFromTriple(triple, &target, &error)) {
        LLVMDisposeMessage(triple);
        return llvm_fail(dg, "no such target", error);
    }
    char own[FEATURES_MAX];
    level_features(job->p ? job->p->level : "", own);
    const char *features = job->features ? job->features : own;
    const char *plain = strncmp(triple, "x86_64", 6) == 0 ? "x86-64" : "generic";
    LLVMTargetMachineRef tm =
        LLVMCreateTargetMachine(target, triple, job->cpu ? job->cpu : plain, features,
                                LLVMCodeGenLevelDefault, job->pic ? LLVMRelocPIC : LLVMRelocStatic,
                                job->pic ? LLVMCodeModelDefault : LLVMCodeModelSmall);
    if (!tm) {
        weft_status st = codegen_host_now->fail(dg, W1606, WEFT_NOWHERE,
                                                "LLVM cannot generate code for %s", triple);
        LLVMDisposeMessage(triple);
        return st;
    }
    *out_to = (machine){.tm = tm,
                        .layout = LLVMCreateTargetDataLayout(tm),
                        .triple = triple,
                        .lanes = lanes_of(features)};
    return WEFT_OK;
}

void machine_close(machine *to)
{
    LLVMDisposeTargetData(to->layout);
    LLVMDisposeTargetMachine(to->tm);
    LLVMDisposeMessage(to->triple);
}
