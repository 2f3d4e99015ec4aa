/* cuda_nvrtc.h - the part of NVRTC that Weft uses, as a table of functions found at run time; and a text compiled by it.
 *
 * Nothing of NVIDIA's is needed to build: types are those of the public API, by its names. The library is libnvrtc.so.13, .12 or
 * any: the file that WEFT_NVRTC names ("off": none), else in the folders of LD_LIBRARY_PATH, in CUDA's own and in that of
 * `./dev setup cuda`, else wherever the system finds it. It takes tens of milliseconds to load, so it is found first and loaded
 * when there is something to compile. */
#ifndef WEFT_RUNTIME_EXEC_CUDA_NVRTC_H
#define WEFT_RUNTIME_EXEC_CUDA_NVRTC_H

#include "kernels/cuda/image.h"
#include "runtime/base/diag.h"
#include "runtime/base/str.h"
#include "runtime/exec/plan_code.h"

typedef struct _nvrtcProgram *nvrtc_program;

typedef struct {
#define NVRTC_FN(ret, name, args) ret(*name) args;
#include "runtime/exec/cuda_nvrtc.def"
#undef NVRTC_FN
} nvrtc;

/* Whether kernels are made for plans, and by what. The usual one is cuda_maker_usual; tests have theirs. */
typedef struct {
    /* The library's file, without loading it, and something that is another one whenever it is another library; empty: there is
     * none. */
    void (*find)(strbuf *out_path, strbuf *out_stamp);
    weft_status (*load)(weft_diag *dg, const nvrtc **out_n); /* W1613 */
} cuda_maker;
extern const cuda_maker cuda_maker_usual;

/* Has somebody asked for it to be left alone, by WEFT_NVRTC=off? */
bool cuda_nvrtc_is_off(void);
/* The usual one's file; empty: there is none. */
void cuda_nvrtc_path(strbuf *out);

/* The name under which phase.cu includes the shapes; and more code than any plan has. */
#define CUDA_SHAPES_FILE "shapes.inc"
enum { CUDA_MADE_BYTES_MAX = 256 << 20 };

/* What for: the kernels' texts, and the card. */
typedef struct {
    const cuda_texts *texts;
    int major, minor; /* of the card */
} cuda_target;

typedef struct {
    const char *shapes; /* what WEFT_SHAPES names */
    strbuf code;        /* what was made of it; empty if it failed */
} cuda_job;

/* The kernels compiled with the shapes of each job, all at once: machine code for the card, or, where the compiler does not know it,
 * PTX for the latest before it. `how` says who is told how far they are. W1613, with what the compiler has to say, if any has failed. */
weft_status cuda_nvrtc_compile(weft_diag *dg, const nvrtc *n, const cuda_target *t,
                               const code_options *how, cuda_job *job, int n_job) WEFT_MUST_USE;

#endif
