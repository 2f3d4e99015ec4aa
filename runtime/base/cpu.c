#include "runtime/base/cpu.h"

#include <stdatomic.h>
#include <stdio.h>

#if defined(__x86_64__)
#include <cpuid.h>
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif
#elif defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#elif defined(__APPLE__)
#include <sys/sysctl.h>
#endif

_Static_assert(CPU_FEATURE_COUNT <= 31, "a set of features is 32 bits wide");

static const char *const names[] = {
#define CPU_X86(name, text, ...) text,
#define CPU_ARM(name, text, ...) text,
#include "runtime/base/cpu.def"
#undef CPU_X86
#undef CPU_ARM
};

const char *cpu_feature_name(int bit)
{
    WEFT_ASSERT(bit >= 0 && bit < CPU_FEATURE_COUNT);
    return names[bit];
}

#if defined(__x86_64__)

/* Register state the system must save, as bits of XCR0 (Intel SDM vol. 1, section 13.3). */
enum { XCR0_NONE = 0, XCR0_AVX = 0x6, XCR0_AVX512 = 0xe6, XCR0_AMX = 0x60000 };
enum { EAX, EBX, ECX, EDX };

static uint32_t xcr0_read(void)
{
    uint32_t r[4];
    enum { OSXSAVE = 1 << 27 };
    if (!__get_cpuid(1, &r[EAX], &r[EBX], &r[ECX], &r[EDX]) || !(r[ECX] & OSXSAVE))
        return 0;
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
}

static const struct {
    uint32_t feature, leaf, subleaf, reg, bit, state;
} rows[] = {
#define CPU_X86(name, text, leaf, subleaf, reg, bit, state)                                        \
    {CPU_##name, leaf, subleaf, reg, bit, state},
#define CPU_ARM(...)
#include "runtime/base/cpu.def"
#undef CPU_X86
#undef CPU_ARM
};

/* Linux lets a process use the tiles of AMX once it has asked, all threads of it (Documentation/arch/x86/
 * xstate.rst). Other systems are not known to. */
static bool tiles_allowed(void)
{
#if defined(__linux__) && defined(SYS_arch_prctl)
    enum { ARCH_REQ_XCOMP_PERM = 0x1023, XFEATURE_XTILEDATA = 18 };
    return syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0;
#else
    return false;
#endif
}

static uint32_t find_features(void)
{
    uint32_t found = 0, xcr0 = xcr0_read(), r[4];
    /* Past its last subleaf a leaf reads as nonsense on some processors: the count is in EAX of 0. */
    uint32_t subleaf_max = 0;
    if (__get_cpuid_count(7, 0, &r[EAX], &r[EBX], &r[ECX], &r[EDX]))
        subleaf_max = r[EAX];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].subleaf <= subleaf_max && (xcr0 & rows[i].state) == rows[i].state &&
            __get_cpuid_count(rows[i].leaf, rows[i].subleaf, &r[EAX], &r[EBX], &r[ECX], &r[EDX]) &&
            (r[rows[i].reg] >> rows[i].bit & 1))
            found |= rows[i].feature;
    const uint32_t amx = CPU_AMX_TILE | CPU_AMX_INT8 | CPU_AMX_BF16;
    if ((found & amx) && !tiles_allowed())
        found &= ~amx;
    return found;
}

void cpu_name(strbuf *out)
{
    uint32_t r[13] = {0}; /* 48 characters in three leaves, and a NUL */
    for (uint32_t i = 0; i < 3; i++)
        if (!__get_cpuid(0x80000002u + i, &r[4 * i], &r[4 * i + 1], &r[4 * i + 2], &r[4 * i + 3]))
            return;
    const char *text = (const char *)r;
    text += strspn(text, " ");
    size_t n = strlen(text);
    while (n && text[n - 1] == ' ')
        n--;
    strbuf_put(out, (str){text, n});
}

#elif defined(__aarch64__)

#if defined(__linux__)

static bool feature_has(int word, int bit, const char *sysctl_name)
{
    (void)sysctl_name;
    return getauxval(word == 1 ? AT_HWCAP : AT_HWCAP2) >> bit & 1;
}

/* Of Arm's own cores, the parts met in servers and boards. */
static const struct {
    unsigned part;
    const char *name;
} arm_parts[] = {
    {0xd03, "Cortex-A53"},  {0xd05, "Cortex-A55"},  {0xd08, "Cortex-A72"},  {0xd0b, "Cortex-A76"},
    {0xd0c, "Neoverse-N1"}, {0xd40, "Neoverse-V1"}, {0xd49, "Neoverse-N2"}, {0xd4f, "Neoverse-V2"},
    {0xd84, "Neoverse-V3"}, {0xd8e, "Neoverse-N3"},
};

/* The name is not in a register; the kernel gives maker and part numbers (see MIDR_EL1). */
void cpu_name(strbuf *out)
{
    enum { MAKER_ARM = 0x41 };
    FILE *f = fopen("/sys/devices/system/cpu/cpu0/regs/identification/midr_el1", "r");
    unsigned long long midr;
    if (f && fscanf(f, "%llx", &midr) == 1) {
        unsigned maker = midr >> 24 & 0xff, part = midr >> 4 & 0xfff;
        for (size_t i = 0; i < sizeof arm_parts / sizeof arm_parts[0]; i++)
            if (maker == MAKER_ARM && part == arm_parts[i].part)
                strbuf_add(out, "%s, ", arm_parts[i].name);
        strbuf_add(out, "implementer 0x%02x part 0x%03x", maker, part);
    }
    if (f)
        fclose(f);
}

#elif defined(__APPLE__)

static bool feature_has(int word, int bit, const char *sysctl_name)
{
    (void)word, (void)bit;
    char key[64];
    snprintf(key, sizeof key, "hw.optional.%s", sysctl_name);
    int value = 0;
    size_t bytes = sizeof value;
    return sysctlbyname(key, &value, &bytes, NULL, 0) == 0 && value;
}

void cpu_name(strbuf *out)
{
    char text[128];
    size_t bytes = sizeof text;
    if (sysctlbyname("machdep.cpu.brand_string", text, &bytes, NULL, 0) == 0)
        strbuf_add(out, "%s", text);
}

#else

static bool feature_has(int word, int bit, const char *sysctl_name)
{
    (void)sysctl_name;
    return word == 1 && bit == 1; /* Advanced SIMD belongs to the architecture */
}

void cpu_name(strbuf *out)
{
    (void)out;
}

#endif

static uint32_t find_features(void)
{
    uint32_t found = 0;
#define CPU_X86(...)
#define CPU_ARM(name, text, word, bit, sysctl_name)                                                \
    if (feature_has(word, bit, sysctl_name))                                                       \
        found |= CPU_##name;
#include "runtime/base/cpu.def"
#undef CPU_X86
#undef CPU_ARM
    return found;
}

#else

static uint32_t find_features(void)
{
    return 0;
}

void cpu_name(strbuf *out)
{
    (void)out;
}

#endif

/* Asking costs tens of microseconds where a virtual machine answers for the processor, so once is enough.
 * The highest bit says that the others are known; no feature has it. */
uint32_t cpu_features(void)
{
    static atomic_uint_least32_t known;
    _Static_assert(CPU_FEATURE_COUNT < 32, "one bit is left to say that the others are known");
    const uint32_t asked = UINT32_C(1) << 31;
    uint32_t found = atomic_load_explicit(&known, memory_order_relaxed);
    if (!(found & asked)) {
        found = find_features() | asked;
        atomic_store_explicit(&known, found, memory_order_relaxed);
    }
    return found & ~asked;
}
