/* perf_map.c - an object's functions in the format of Linux's tools/perf/Documentation/jit-interface.txt.
 *
 * Both ways of linking keep the functions of an object together, so the address of one of them, a bucket's, says where all
 * are. The object is what LLVM made or the cache kept; whatever it is, only bytes of it are read. */
#include "runtime/jit/perf_map.h"

#include <elf.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Part of the object, NULL: it has no such bytes. */
static const void *part(str object, uint64_t offset, uint64_t bytes)
{
    return offset <= object.n && bytes <= object.n - offset ? object.p + offset : NULL;
}

typedef struct {
    str object;
    const char *symbols, *names; /* Elf64_Sym, at any address */
    uint64_t n_symbol, name_bytes;
} symbols;

static bool section_at(str object, const Elf64_Ehdr *head, uint64_t i, Elf64_Shdr *out)
{
    if (i >= head->e_shnum || head->e_shentsize != sizeof *out)
        return false;
    const void *at = part(object, head->e_shoff, (i + 1) * sizeof *out);
    if (at)
        memcpy(out, (const char *)at + i * sizeof *out, sizeof *out);
    return at;
}

static bool symbols_find(str object, symbols *out)
{
    Elf64_Ehdr head;
    Elf64_Shdr table, names;
    const void *at = part(object, 0, sizeof head);
    if (!at)
        return false;
    memcpy(&head, at, sizeof head);
    for (uint64_t i = 0; section_at(object, &head, i, &table); i++) {
        if (table.sh_type != SHT_SYMTAB || !section_at(object, &head, table.sh_link, &names))
            continue;
        *out = (symbols){.object = object,
                         .symbols = part(object, table.sh_offset, table.sh_size),
                         .names = part(object, names.sh_offset, names.sh_size),
                         .n_symbol = table.sh_size / sizeof(Elf64_Sym),
                         .name_bytes = names.sh_size};
        return out->symbols && out->names;
    }
    return false;
}

/* The name of symbol i if it is a function, else NULL. */
static const char *function_at(const symbols *s, uint64_t i, Elf64_Sym *out)
{
    memcpy(out, s->symbols + i * sizeof *out, sizeof *out);
    if (ELF64_ST_TYPE(out->st_info) != STT_FUNC || out->st_shndx == SHN_UNDEF ||
        out->st_name >= s->name_bytes ||
        !memchr(s->names + out->st_name, 0, s->name_bytes - out->st_name))
        return NULL;
    return s->names + out->st_name;
}

/* How far the functions of the bucket's section are from where the object has them. */
static bool distance(const symbols *s, const plan *p, const plan_code *code, uintptr_t *out,
                     uint16_t *out_section)
{
    int32_t b = 0;
    while (b < p->n_bucket && !code->bucket[b].run)
        b++;
    if (b == p->n_bucket)
        return false;
    char want[64];
    snprintf(want, sizeof want, "bucket_%d", (int)p->bucket[b].n_tok_max);
    for (uint64_t i = 0; i < s->n_symbol; i++) {
        Elf64_Sym sym;
        const char *name = function_at(s, i, &sym);
        if (!name || strcmp(name, want) != 0)
            continue;
        *out = (uintptr_t)code->bucket[b].run - sym.st_value;
        *out_section = sym.st_shndx;
        return true;
    }
    return false;
}

void perf_map_add(const plan *p, const plan_code *code, str object)
{
    symbols s;
    uintptr_t base;
    uint16_t section;
    char path[64];
    if (!getenv("WEFT_PERF") || !symbols_find(object, &s) ||
        !distance(&s, p, code, &base, &section))
        return;
    snprintf(path, sizeof path, "/tmp/perf-%d.map", (int)getpid());
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
    FILE *f = fd >= 0 ? fdopen(fd, "a") : NULL;
    if (!f) {
        if (fd >= 0)
            close(fd);
        return;
    }
    for (uint64_t i = 0; i < s.n_symbol; i++) {
        Elf64_Sym sym;
        const char *name = function_at(&s, i, &sym);
        if (name && sym.st_shndx == section)
            fprintf(f, "%" PRIxPTR " %" PRIx64 " %s\n", base + (uintptr_t)sym.st_value, sym.st_size,
                    name);
    }
    fclose(f);
}
