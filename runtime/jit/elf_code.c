/* elf_code.c - sections laid out, symbols resolved, places patched, pages made what they are to be.
 *
 * One mapping: instructions and stubs, then on pages of their own data and the table of addresses (GOT). Kernels may be
 * farther away than a call reaches: such a call goes to a stub, which jumps to the address behind it. */
#include "runtime/jit/elf_code.h"

#include "runtime/base/mem.h"
#include "runtime/jit/elf_reloc.h"
#include <elf.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { OBJECT_BYTES_MAX = 1 << 30, SECTION_ALIGN_MAX = 4096, STUB_BYTES = 16 };

struct elf_code {
    char *base;
    size_t bytes;
    char *names; /* copies of the names of what it defines, each ended by 0 */
    size_t names_bytes;
    struct {
        const char *name;
        const void *at;
    } * symbol;
    size_t n_symbol;
};

/* An object being loaded. */
typedef struct {
    weft_diag *dg;
    const char *name;
    const unsigned char *at;
    size_t n;
    const Elf64_Shdr *section;
    size_t n_section;
    const Elf64_Sym *sym;
    size_t n_sym;
    const char *strings;
    size_t strings_bytes;
    size_t *place;     /* [n_section]: offset in the mapping; SIZE_MAX: it is not loaded */
    uintptr_t *value;  /* [n_sym]: address; 0: none */
    size_t code_bytes; /* sections of instructions and stubs, whole pages */
    size_t stub_at, got_at;
    const code_symbol *given;
    size_t n_given;
    elf_code *to;
} loading;

static weft_status bad(const loading *l, const char *what)
{
    return weft_fail(l->dg, W1509, WEFT_NOWHERE, "%s: %s", l->name, what);
}

/* ---- reading ---- */

/* n things of `each` bytes at `offset`, all within the object, aligned; NULL if not. */
static const void *part(const loading *l, uint64_t offset, uint64_t n, size_t each)
{
    if (offset > l->n || offset % sizeof(uint64_t) || n > (l->n - offset) / each)
        return NULL;
    return l->at + offset;
}

static weft_status read_head(loading *l)
{
    const Elf64_Ehdr *h = part(l, 0, 1, sizeof *h);
    if (!h || memcmp(h->e_ident, ELFMAG, SELFMAG) != 0 || h->e_ident[EI_CLASS] != ELFCLASS64 ||
        h->e_ident[EI_DATA] != ELFDATA2LSB || h->e_type != ET_REL)
        return bad(l, "not an object file");
    if (h->e_machine != ELF_RELOC_MACHINE)
        return bad(l, "an object file for another architecture");
    if (h->e_shentsize != sizeof *l->section || h->e_shnum == 0)
        return bad(l, "an object file without sections");
    l->n_section = h->e_shnum;
    l->section = part(l, h->e_shoff, l->n_section, sizeof *l->section);
    return l->section ? WEFT_OK : bad(l, "its table of sections is cut off");
}

static weft_status read_symbols(loading *l)
{
    for (size_t i = 0; i < l->n_section; i++) {
        const Elf64_Shdr *s = &l->section[i];
        if (s->sh_type != SHT_SYMTAB)
            continue;
        l->n_sym = s->sh_size / sizeof *l->sym;
        l->sym = part(l, s->sh_offset, l->n_sym, sizeof *l->sym);
        if (!l->sym || s->sh_link >= l->n_section)
            return bad(l, "its table of symbols is cut off");
        const Elf64_Shdr *t = &l->section[s->sh_link];
        if (t->sh_offset > l->n || t->sh_size > l->n - t->sh_offset || t->sh_size == 0 ||
            l->at[t->sh_offset + t->sh_size - 1] != 0)
            return bad(l, "its names are cut off");
        l->strings = (const char *)l->at + t->sh_offset;
        l->strings_bytes = t->sh_size;
        return WEFT_OK;
    }
    return bad(l, "it has no symbols");
}

static const char *symbol_name(const loading *l, const Elf64_Sym *s)
{
    return s->st_name < l->strings_bytes ? l->strings + s->st_name : "";
}

/* ---- layout ---- */

static bool is_loaded(const Elf64_Shdr *s)
{
    return s->sh_flags & SHF_ALLOC && (s->sh_type == SHT_PROGBITS || s->sh_type == SHT_NOBITS);
}

static size_t round_up(size_t n, size_t to)
{
    return (n + to - 1) / to * to;
}

static weft_status place_sections(loading *l, bool runs, size_t *at)
{
    for (size_t i = 0; i < l->n_section; i++) {
        const Elf64_Shdr *s = &l->section[i];
        if (!is_loaded(s) || !(s->sh_flags & SHF_EXECINSTR) == runs)
            continue;
        size_t align = s->sh_addralign ? s->sh_addralign : 1;
        if (align > SECTION_ALIGN_MAX || (align & (align - 1)) || s->sh_size > OBJECT_BYTES_MAX ||
            (s->sh_type == SHT_PROGBITS &&
             (s->sh_offset > l->n || s->sh_size > l->n - s->sh_offset)))
            return bad(l, "a section is cut off");
        *at = round_up(*at, align);
        l->place[i] = *at;
        *at += s->sh_size;
        if (*at > OBJECT_BYTES_MAX)
            return bad(l, "its sections are too large");
    }
    return WEFT_OK;
}

/* Stubs for symbols that are not its own, and a place in the table of addresses for each. */
static weft_status lay_out(loading *l)
{
    size_t at = 0, page = (size_t)sysconf(_SC_PAGESIZE);
    for (size_t i = 0; i < l->n_section; i++)
        l->place[i] = SIZE_MAX;
    WEFT_TRY(place_sections(l, true, &at));
    l->stub_at = at = round_up(at, STUB_BYTES);
    l->code_bytes = at = round_up(at + l->n_sym * STUB_BYTES, page);
    WEFT_TRY(place_sections(l, false, &at));
    l->got_at = at = round_up(at, sizeof(uint64_t));
    l->to->bytes = round_up(at + l->n_sym * sizeof(uint64_t), page);
    void *map =
        mmap(NULL, l->to->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED)
        return weft_fail(l->dg, W0902, WEFT_NOWHERE, "%s: no memory for %zu bytes of code", l->name,
                         l->to->bytes);
    l->to->base = map;
    for (size_t i = 0; i < l->n_section; i++)
        if (l->place[i] != SIZE_MAX && l->section[i].sh_type == SHT_PROGBITS)
            memcpy(l->to->base + l->place[i], l->at + l->section[i].sh_offset,
                   l->section[i].sh_size);
    return WEFT_OK;
}

/* ---- symbols ---- */

static const void *given_address(const loading *l, const char *name)
{
    for (size_t i = 0; i < l->n_given; i++)
        if (strcmp(l->given[i].name, name) == 0)
            return l->given[i].address;
    return NULL;
}

static void write_stub(loading *l, size_t i)
{
    elf_stub_write(l->to->base + l->stub_at + i * STUB_BYTES, l->value[i]);
}

static weft_status resolve(loading *l)
{
    for (size_t i = 1; i < l->n_sym; i++) {
        const Elf64_Sym *s = &l->sym[i];
        uintptr_t at = 0;
        if (s->st_shndx == SHN_UNDEF) {
            at = (uintptr_t)given_address(l, symbol_name(l, s)); /* 0: unless it is used */
        } else if (s->st_shndx < l->n_section && l->place[s->st_shndx] != SIZE_MAX) {
            if (s->st_value > l->section[s->st_shndx].sh_size)
                return bad(l, "a symbol is outside its section");
            at = (uintptr_t)l->to->base + l->place[s->st_shndx] + s->st_value;
        }
        l->value[i] = at;
        memcpy(l->to->base + l->got_at + i * sizeof at, &at, sizeof at);
        write_stub(l, i);
    }
    return WEFT_OK;
}

/* ---- places ---- */

static weft_status patch(loading *l, const Elf64_Shdr *table, const Elf64_Shdr *target, char *base)
{
    size_t n = table->sh_size / sizeof(Elf64_Rela);
    const Elf64_Rela *r = part(l, table->sh_offset, n, sizeof *r);
    if (!r)
        return bad(l, "a table of relocations is cut off");
    for (size_t i = 0; i < n; i++) {
        size_t sym = ELF64_R_SYM(r[i].r_info);
        uint32_t type = (uint32_t)ELF64_R_TYPE(r[i].r_info);
        int width = elf_reloc_width(type);
        if (width == 0)
            return weft_fail(l->dg, W1509, WEFT_NOWHERE, "%s: relocations of type %u are not known",
                             l->name, type);
        if (sym < l->n_sym && l->value[sym] == 0 && l->sym[sym].st_shndx == SHN_UNDEF)
            return weft_fail(l->dg, W1509, WEFT_NOWHERE, "%s: it needs %.100s, which is not there",
                             l->name, symbol_name(l, &l->sym[sym]));
        if (sym >= l->n_sym || l->value[sym] == 0 || target->sh_size < (size_t)width ||
            r[i].r_offset > target->sh_size - (size_t)width)
            return bad(l, "a relocation is outside its section, or of nothing");
        elf_place at = {.at = base + r[i].r_offset,
                        .symbol = l->value[sym],
                        .add = r[i].r_addend,
                        .got = (uintptr_t)l->to->base + l->got_at + sym * sizeof(uint64_t),
                        .stub = (uintptr_t)l->to->base + l->stub_at + sym * STUB_BYTES};
        if (!elf_reloc_write(type, &at))
            return weft_fail(l->dg, W1509, WEFT_NOWHERE,
                             "%s: %.100s is too far away for a relocation of type %u", l->name,
                             symbol_name(l, &l->sym[sym]), type);
    }
    return WEFT_OK;
}

static weft_status patch_all(loading *l)
{
    for (size_t i = 0; i < l->n_section; i++) {
        const Elf64_Shdr *s = &l->section[i];
        if (s->sh_type == SHT_REL && s->sh_info < l->n_section && l->place[s->sh_info] != SIZE_MAX)
            return bad(l, "relocations without addends");
        if (s->sh_type != SHT_RELA || s->sh_info >= l->n_section ||
            l->place[s->sh_info] == SIZE_MAX)
            continue;
        WEFT_TRY(patch(l, s, &l->section[s->sh_info], l->to->base + l->place[s->sh_info]));
    }
    return WEFT_OK;
}

/* ---- the whole ---- */

static bool is_defined(const loading *l, size_t i)
{
    return l->value[i] && l->sym[i].st_shndx != SHN_UNDEF &&
           ELF64_ST_BIND(l->sym[i].st_info) == STB_GLOBAL;
}

/* The names that it defines, for elf_code_find. */
static void keep_names(loading *l)
{
    elf_code *c = l->to;
    size_t n = 0, bytes = 0;
    for (size_t i = 1; i < l->n_sym; i++)
        if (is_defined(l, i)) {
            n++;
            bytes += strlen(symbol_name(l, &l->sym[i])) + 1;
        }
    c->symbol = mem_alloc(mem_product(n + 1, sizeof *c->symbol));
    c->names = mem_alloc(bytes + 1);
    char *to = c->names;
    for (size_t i = 1; i < l->n_sym; i++)
        if (is_defined(l, i)) {
            const char *name = symbol_name(l, &l->sym[i]);
            size_t size = strlen(name) + 1;
            c->symbol[c->n_symbol].name = memcpy(to, name, size);
            c->symbol[c->n_symbol++].at = (const void *)l->value[i];
            to += size;
        }
}

static weft_status load(loading *l)
{
    WEFT_TRY(read_head(l));
    WEFT_TRY(read_symbols(l));
    l->place = mem_alloc(mem_product(l->n_section, sizeof *l->place));
    l->value = mem_alloc(mem_product(l->n_sym + 1, sizeof *l->value));
    memset(l->value, 0, (l->n_sym + 1) * sizeof *l->value);
    WEFT_TRY(lay_out(l));
    WEFT_TRY(resolve(l));
    WEFT_TRY(patch_all(l));
    keep_names(l);
    elf_code *c = l->to;
    __builtin___clear_cache(c->base, c->base + l->code_bytes);
    if (mprotect(c->base, l->code_bytes, PROT_READ | PROT_EXEC) != 0 ||
        mprotect(c->base + l->code_bytes, c->bytes - l->code_bytes, PROT_READ) != 0)
        return bad(l, "the system lets no memory be code");
    return WEFT_OK;
}

weft_status elf_code_load(weft_diag *dg, const char *name, const void *object, size_t n,
                          const code_symbol *symbols, size_t n_symbol, elf_code **out_c)
{
    elf_code *c = mem_alloc(sizeof *c);
    *c = (elf_code){0};
    loading l = {.dg = dg,
                 .name = name,
                 .at = object,
                 .n = n,
                 .given = symbols,
                 .n_given = n_symbol,
                 .to = c};
    weft_status st = load(&l);
    mem_free(l.place);
    mem_free(l.value);
    if (st == WEFT_OK)
        *out_c = c;
    else
        elf_code_unload(c);
    return st;
}

const void *elf_code_find(const elf_code *c, const char *symbol)
{
    for (size_t i = 0; i < c->n_symbol; i++)
        if (strcmp(c->symbol[i].name, symbol) == 0)
            return c->symbol[i].at;
    return NULL;
}

size_t elf_code_bytes(const elf_code *c)
{
    return c->bytes;
}

void elf_code_unload(elf_code *c)
{
    if (!c)
        return;
    if (c->base)
        munmap(c->base, c->bytes);
    mem_free(c->symbol);
    mem_free(c->names);
    mem_free(c);
}
