/* elf_stamp.c - the spare program header becomes the image's segment, the note section its section. */
#include "runtime/build/elf_stamp.h"

#include "runtime/base/mem.h"

#include "runtime/program/stamp.h"
#include <elf.h>

typedef struct {
    weft_diag *dg;
    const char *name;
    strbuf *file;
} stamping;

static weft_status strange(const stamping *s, const char *what)
{
    return weft_fail(s->dg, W1705, WEFT_NOWHERE, "%s: the linked file %s", s->name, what);
}

/* n things of `size` bytes at offset `at`, all inside the file; NULL: they are not. */
static void *inside(const stamping *s, uint64_t at, uint64_t n, uint64_t size)
{
    bool fits = at <= s->file->n && (n == 0 || size <= (s->file->n - at) / n);
    return fits ? s->file->p + at : NULL;
}

/* What a file offset of the segments is for this address; UINT64_MAX: none. */
static uint64_t offset_of(const Elf64_Phdr *ph, int n, uint64_t address, uint64_t bytes)
{
    for (int i = 0; i < n; i++)
        if (ph[i].p_type == PT_LOAD && address >= ph[i].p_vaddr &&
            address - ph[i].p_vaddr <= ph[i].p_filesz &&
            bytes <= ph[i].p_filesz - (address - ph[i].p_vaddr))
            return ph[i].p_offset + (address - ph[i].p_vaddr);
    return UINT64_MAX;
}

/* The note of stamp.c: three words, a name of 8 bytes, and how far the stamp is from what follows. */
typedef struct {
    uint32_t name_bytes, bytes, type;
    char name[8];
    int64_t delta;
} __attribute__((packed)) stamp_note;

static Elf64_Phdr *find_note(const stamping *s, Elf64_Phdr *ph, int n, stamp_note *out)
{
    for (int i = 0; i < n; i++) {
        stamp_note *note = inside(s, ph[i].p_offset, 1, sizeof *note);
        if (ph[i].p_type != PT_NOTE || ph[i].p_filesz != sizeof *note || !note)
            continue;
        memcpy(out, note, sizeof *out);
        if (out->type == STAMP_NOTE_TYPE && strcmp(out->name, STAMP_NOTE_NAME) == 0)
            return &ph[i];
    }
    return NULL;
}

static uint64_t round_up(uint64_t x, uint64_t align)
{
    return (x + align - 1) / align * align;
}

/* The first address from `end` on that is as far from a large page's beginning as `offset` is: pages of the file can then be mapped by
 * large ones, and the file needs no gap for it. */
static uint64_t address_of(uint64_t end, uint64_t offset)
{
    uint64_t at = end / MEM_PAGE_LARGE * MEM_PAGE_LARGE + offset % MEM_PAGE_LARGE;
    return at < end ? at + MEM_PAGE_LARGE : at;
}

static void move_section(const stamping *s, const Elf64_Ehdr *eh, const Elf64_Phdr *was,
                         const Elf64_Phdr *to, uint64_t page)
{
    Elf64_Shdr *sh = inside(s, eh->e_shoff, eh->e_shnum, sizeof *sh);
    for (int i = 0; sh && i < eh->e_shnum; i++)
        if (sh[i].sh_type == SHT_NOTE && sh[i].sh_offset == was->p_offset &&
            sh[i].sh_size == was->p_filesz) {
            sh[i].sh_type = SHT_PROGBITS;
            sh[i].sh_addr = to->p_vaddr;
            sh[i].sh_offset = to->p_offset;
            sh[i].sh_size = to->p_filesz;
            sh[i].sh_addralign = page;
        }
}

weft_status elf_stamp(weft_diag *dg, const char *name, strbuf *elf, uint64_t image_bytes,
                      uint64_t image_sum)
{
    stamping s = {dg, name, elf};
    Elf64_Ehdr *eh = inside(&s, 0, 1, sizeof *eh);
    if (!eh || memcmp(eh->e_ident, ELFMAG, SELFMAG) != 0 || eh->e_ident[EI_CLASS] != ELFCLASS64 ||
        eh->e_ident[EI_DATA] != ELFDATA2LSB || eh->e_phentsize != sizeof(Elf64_Phdr) ||
        (eh->e_shnum && eh->e_shentsize != sizeof(Elf64_Shdr)))
        return strange(&s, "is not a little-endian ELF file of 64 bits");
    Elf64_Phdr *ph = inside(&s, eh->e_phoff, eh->e_phnum, sizeof *ph);
    stamp_note note;
    Elf64_Phdr *spare = ph ? find_note(&s, ph, eh->e_phnum, &note) : NULL;
    if (!spare)
        return strange(&s, "has no room for an image");
    uint64_t stamp_at = spare->p_vaddr + offsetof(stamp_note, delta) + (uint64_t)note.delta;
    uint64_t stamp_offset = offset_of(ph, eh->e_phnum, stamp_at, sizeof(program_stamp));
    program_stamp *stamp =
        stamp_offset == UINT64_MAX ? NULL : inside(&s, stamp_offset, 1, sizeof *stamp);
    if (!stamp || memcmp(stamp->magic, STAMP_MAGIC, sizeof STAMP_MAGIC) != 0)
        return strange(&s, "has no stamp where its note says");

    uint64_t page = eh->e_machine == EM_AARCH64 ? 65536 : 4096, end = 0;
    for (int i = 0; i < eh->e_phnum; i++)
        if (ph[i].p_type == PT_LOAD && ph[i].p_vaddr + ph[i].p_memsz > end)
            end = ph[i].p_vaddr + ph[i].p_memsz;
    Elf64_Phdr seg = {.p_type = PT_LOAD,
                      .p_flags = PF_R,
                      .p_offset = round_up(elf->n, page),
                      .p_filesz = image_bytes,
                      .p_memsz = image_bytes,
                      .p_align = MEM_PAGE_LARGE};
    seg.p_paddr = seg.p_vaddr = address_of(round_up(end, page), seg.p_offset);
    move_section(&s, eh, spare, &seg, page);
    *spare = seg;
    stamp->delta = (int64_t)(seg.p_vaddr - stamp_at);
    stamp->bytes = image_bytes;
    stamp->sum = image_sum;
    strbuf_fill(elf, 0,
                seg.p_offset - elf->n); /* moves the bytes: no pointer into them from here */
    return WEFT_OK;
}
