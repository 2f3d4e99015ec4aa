/* fake_nvrtc.h - an NVRTC for tests: compiles kernels with the system's C++ compiler (simt.h) into libraries that the tests' card
 * runs (fake_module.h). Nothing of kernels/ is found but what it is given, so a text that libweft_cuda lacks is an error. */
#ifndef WEFT_TESTS_CUDA_FAKE_NVRTC_H
#define WEFT_TESTS_CUDA_FAKE_NVRTC_H

#include "runtime/exec/cuda_nvrtc.h"

#include <stdlib.h>
#include <string.h>

/* What a program's texts say of sheets (phase.cu): for how many times eight rows; 0: for none. */
static inline int text_sheets(int n_header, const char *const *headers, const char *const *names)
{
    static const char word[] = "SHAPES_SHEETS = ";
    for (int i = 0; i < n_header; i++) {
        const char *at = strcmp(names[i], CUDA_SHAPES_FILE) == 0 ? strstr(headers[i], word) : NULL;
        if (at)
            return atoi(at + strlen(word));
    }
    return 0;
}

const nvrtc *fake_nvrtc(void);
/* Whose find says that there is this library, whose load gives that table. */
extern const cuda_maker fake_maker;

typedef struct {
    bool missing;       /* find finds nothing */
    bool load_fails;    /* load does */
    const char *breaks; /* a line added to what is compiled; NULL: none */
    const char *stamp;  /* of the library */
} fake_nvrtc_how;
extern fake_nvrtc_how fake_nvrtc_now;

int fake_nvrtc_compiled(void); /* programs so far; from any thread */
int fake_nvrtc_sheets(void);   /* of all that were asked for, those whose weights come in sheets */
/* Code goes into this folder, and comes from there when the same texts are compiled again, which takes no time then. NULL:
 * all is compiled. The folder must outlive its use. */
void fake_nvrtc_keep(const char *folder);

#endif
