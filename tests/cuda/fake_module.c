#include "tests/cuda/fake_module.h"

#include "kernels/cuda/image.h"
#include <dlfcn.h>
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

const char fake_image[] = "an image of kernels";

struct CUmod_st {
    struct CUmod_st *next;
    struct CUfunc_st function[FAKE_FUNCTIONS];
    void *library; /* NULL: emulated.cpp */
    int fd;        /* that it was loaded from */
};

static cu_module modules;

/* What an image has. Any number of threads does, but those of weft_experts, weft_flash, weft_codes, weft_squares and weft_bulk have parts to play. */
static const struct {
    const char *name;
    fake_kernel kind;
    fake_run_fn *run;
    int threads;
} functions[FAKE_FUNCTIONS] = {
    {CUDA_KERNEL_NAME, FAKE_PHASES, emulated_phases, 0},
    {CUDA_KERNEL_CHOOSE, FAKE_CHOOSE, NULL, 0},
    {CUDA_KERNEL_BEST, FAKE_BEST, NULL, 0},
    {CUDA_KERNEL_TOKENS, FAKE_TOKENS, NULL, 0},
    {"weft_light", FAKE_PHASES, emulated_light, 0},
    {"weft_dots", FAKE_PHASES, emulated_dots, 0},
    {"weft_experts", FAKE_PHASES, emulated_experts, CUDA_SQUARES_BLOCK},
    {"weft_flash", FAKE_PHASES, emulated_flash, CUDA_FLASH_BLOCK},
    {"weft_codes", FAKE_PHASES, emulated_codes, CUDA_FLASH_BLOCK},
    {"weft_squares", FAKE_PHASES, emulated_squares, CUDA_SQUARES_BLOCK},
    {"weft_bulk", FAKE_PHASES, emulated_bulk, CUDA_SQUARES_BLOCK},
    {"weft_unpack", FAKE_PHASES, emulated_unpack, 0},
};

/* A library in memory, whose length it says itself. Its file stays open: the loader knows libraries by their names. */
static void *load_library(const void *image, int *out_fd)
{
    const Elf64_Ehdr *h = image;
    size_t bytes = (size_t)h->e_shoff + (size_t)h->e_shnum * h->e_shentsize;
    char path[64];
    int fd = memfd_create("made", MFD_CLOEXEC);
    if (fd < 0 || write(fd, image, bytes) != (ssize_t)bytes)
        return NULL;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        fprintf(stderr, "fake_module.c: %s\n", dlerror());
    *out_fd = fd;
    return library;
}

cu_module fake_module_open(const void *image)
{
    struct CUmod_st m = {.next = NULL};
    for (int i = 0; i < FAKE_FUNCTIONS; i++)
        m.function[i] = (struct CUfunc_st){
            .kind = functions[i].kind, .run = functions[i].run, .threads = functions[i].threads};
    if (image != fake_image) {
        if (memcmp(image, ELFMAG, SELFMAG) != 0 ||
            ((const Elf64_Ehdr *)image)->e_machine == EM_CUDA ||
            !(m.library = load_library(image, &m.fd)))
            return NULL;
        void *found = dlsym(m.library, FAKE_MADE_ENTRY);
        memcpy(&m.function[FAKE_PHASES].run, &found, sizeof found);
        if (!found) {
            dlclose(m.library);
            return NULL;
        }
    }
    cu_module to = malloc(sizeof *to);
    *to = m;
    to->next = modules;
    modules = to;
    return to;
}

static void release(cu_module m)
{
    if (m->library) {
        dlclose(m->library);
        close(m->fd);
    }
    free(m);
}

bool fake_module_close(cu_module m)
{
    for (cu_module *at = &modules; *at; at = &(*at)->next)
        if (*at == m) {
            *at = m->next;
            release(m);
            return true;
        }
    return false;
}

void fake_module_drop(void)
{
    while (modules) {
        cu_module m = modules;
        modules = m->next;
        release(m);
    }
}

cu_function fake_module_function(cu_module m, const char *name)
{
    for (cu_module at = modules; at; at = at->next)
        for (int i = 0; at == m && i < (at->library ? 1 : FAKE_FUNCTIONS); i++)
            if (strcmp(name, functions[i].name) == 0)
                return &at->function[i];
    return NULL;
}

bool fake_function_is(cu_function f)
{
    for (cu_module at = modules; at; at = at->next)
        for (int i = 0; i < FAKE_FUNCTIONS; i++)
            if (&at->function[i] == f)
                return true;
    return false;
}
