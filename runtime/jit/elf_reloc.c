/* elf_reloc.c - the relocations that LLVM writes for position-independent code: System V ABI of x86_64 (section 4.4), ELF for
 * the Arm 64-bit Architecture (section 5.7). S: the symbol, A: what is added, P: the place, G: its entry in the table of
 * addresses, Page(x): x without its lowest 12 bits. */
#include "runtime/jit/elf_reloc.h"

#include <string.h>

#if defined(__x86_64__) || defined(__aarch64__)

static bool put32(char *at, int64_t x)
{
    int32_t word = (int32_t)x;
    memcpy(at, &word, sizeof word);
    return word == x;
}

static bool put64(char *at, uint64_t x)
{
    memcpy(at, &x, sizeof x);
    return true;
}

#endif

#if defined(__x86_64__)

int elf_reloc_width(uint32_t type)
{
    switch (type) {
    case R_X86_64_64:
    case R_X86_64_PC64:
        return 8;
    case R_X86_64_PC32:
    case R_X86_64_PLT32:
    case R_X86_64_GOTPCREL:
    case R_X86_64_GOTPCRELX:
    case R_X86_64_REX_GOTPCRELX:
        return 4;
    }
    return 0;
}

bool elf_reloc_write(uint32_t type, const elf_place *p)
{
    uintptr_t s = p->symbol + (uintptr_t)p->add, at = (uintptr_t)p->at;
    switch (type) {
    case R_X86_64_64: /* S + A */
        return put64(p->at, s);
    case R_X86_64_PC64: /* S + A - P */
        return put64(p->at, s - at);
    case R_X86_64_PC32:
        return put32(p->at, (int64_t)(s - at));
    case R_X86_64_PLT32: /* of a call: what lies behind a stub will do */
        return put32(p->at, (int64_t)(s - at)) ||
               put32(p->at, (int64_t)(p->stub + (uintptr_t)p->add - at));
    default: /* G + A - P */
        return put32(p->at, (int64_t)(p->got + (uintptr_t)p->add - at));
    }
}

/* jmp *0(%rip), and the address. */
void elf_stub_write(char *at, uintptr_t target)
{
    static const unsigned char jump[6] = {0xff, 0x25, 0, 0, 0, 0};
    memcpy(at, jump, sizeof jump);
    memcpy(at + sizeof jump, &target, sizeof target);
}

#elif defined(__aarch64__)

int elf_reloc_width(uint32_t type)
{
    switch (type) {
    case R_AARCH64_ABS64:
    case R_AARCH64_PREL64:
        return 8;
    case R_AARCH64_PREL32:
    case R_AARCH64_CALL26:
    case R_AARCH64_JUMP26:
    case R_AARCH64_ADR_PREL_LO21:
    case R_AARCH64_ADR_PREL_PG_HI21:
    case R_AARCH64_ADD_ABS_LO12_NC:
    case R_AARCH64_LDST8_ABS_LO12_NC:
    case R_AARCH64_LDST16_ABS_LO12_NC:
    case R_AARCH64_LDST32_ABS_LO12_NC:
    case R_AARCH64_LDST64_ABS_LO12_NC:
    case R_AARCH64_LDST128_ABS_LO12_NC:
    case R_AARCH64_ADR_GOT_PAGE:
    case R_AARCH64_LD64_GOT_LO12_NC:
        return 4;
    }
    return 0;
}

/* Put `bits` into the instruction's field of n bits from bit `low` on. */
static void put_field(char *at, uint32_t bits, int low, int n)
{
    uint32_t word, mask = ((1u << n) - 1) << low;
    memcpy(&word, at, sizeof word);
    word = (word & ~mask) | (bits << low & mask);
    memcpy(at, &word, sizeof word);
}

/* adr and adrp: 21 bits in two fields. */
static bool put_adr(char *at, int64_t x)
{
    put_field(at, (uint32_t)x & 3, 29, 2);
    put_field(at, (uint32_t)(x >> 2), 5, 19);
    return x >= -(INT64_C(1) << 20) && x < INT64_C(1) << 20;
}

static bool put_page(char *at, uintptr_t target)
{
    return put_adr(at, (int64_t)(target >> 12) - (int64_t)((uintptr_t)at >> 12));
}

/* Bits 11 to `scale` of the address, of loads and stores of 1 << scale bytes. */
static bool put_low12(char *at, uintptr_t target, int scale)
{
    put_field(at, (uint32_t)(target & 0xfff) >> scale, 10, 12);
    return (target & ((1u << scale) - 1)) == 0;
}

static bool put_call(char *at, uintptr_t target)
{
    int64_t x = (int64_t)(target - (uintptr_t)at);
    put_field(at, (uint32_t)(x >> 2), 0, 26);
    return x >= -(INT64_C(1) << 27) && x < INT64_C(1) << 27;
}

bool elf_reloc_write(uint32_t type, const elf_place *p)
{
    uintptr_t s = p->symbol + (uintptr_t)p->add, at = (uintptr_t)p->at;
    switch (type) {
    case R_AARCH64_ABS64: /* S + A */
        return put64(p->at, s);
    case R_AARCH64_PREL64: /* S + A - P */
        return put64(p->at, s - at);
    case R_AARCH64_PREL32:
        return put32(p->at, (int64_t)(s - at));
    case R_AARCH64_CALL26:
    case R_AARCH64_JUMP26: /* of a call: what lies behind a stub will do */
        return put_call(p->at, s) || put_call(p->at, p->stub);
    case R_AARCH64_ADR_PREL_LO21:
        return put_adr(p->at, (int64_t)(s - at));
    case R_AARCH64_ADR_PREL_PG_HI21: /* Page(S + A) - Page(P) */
        return put_page(p->at, s);
    case R_AARCH64_ADR_GOT_PAGE:
        return put_page(p->at, p->got);
    case R_AARCH64_LD64_GOT_LO12_NC:
        return put_low12(p->at, p->got, 3);
    case R_AARCH64_LDST16_ABS_LO12_NC:
        return put_low12(p->at, s, 1);
    case R_AARCH64_LDST32_ABS_LO12_NC:
        return put_low12(p->at, s, 2);
    case R_AARCH64_LDST64_ABS_LO12_NC:
        return put_low12(p->at, s, 3);
    case R_AARCH64_LDST128_ABS_LO12_NC:
        return put_low12(p->at, s, 4);
    default: /* ADD and LDST8: all 12 bits */
        return put_low12(p->at, s, 0);
    }
}

/* ldr x16, .+8; br x16; and the address. */
void elf_stub_write(char *at, uintptr_t target)
{
    static const uint32_t jump[2] = {0x58000050, 0xd61f0200};
    memcpy(at, jump, sizeof jump);
    memcpy(at + sizeof jump, &target, sizeof target);
}

#else

int elf_reloc_width(uint32_t type)
{
    (void)type;
    return 0;
}

bool elf_reloc_write(uint32_t type, const elf_place *p)
{
    (void)type, (void)p;
    return false;
}

void elf_stub_write(char *at, uintptr_t target)
{
    (void)at, (void)target;
}

#endif
