/* metal_maps.h - the maps of a plan as text of shaders: straight code in place of instructions that a GPU would read one by one.
 *
 * The text takes the place of kernels/metal/maps.msl. Results are the same bits. WEFT_METAL_MAPS=off in the environment leaves maps to
 * the shader that reads instructions. */
#ifndef WEFT_RUNTIME_EXEC_METAL_MAPS_H
#define WEFT_RUNTIME_EXEC_METAL_MAPS_H

#include "kernels/kernels.h"
#include "runtime/base/str.h"

enum { METAL_MAPS_MAX = 512 }; /* of a plan; others are read as instructions */

/* {0} is none. */
typedef struct {
    strbuf bodies; /* functions, one behind the other */
    size_t *at;    /* [n + 1]: where each begins */
    int32_t n;
    bool all; /* every map that was asked for is here */
} metal_maps;

bool metal_maps_are_off(void);
void metal_maps_init(metal_maps *m);
void metal_maps_deinit(metal_maps *m);
/* The number of a step's map with instructions code [n_code], which is added where none is the same; -1: there are too many. */
int32_t metal_maps_add(metal_maps *m, const kargs *k, const kinstr *code);
/* All of them, as maps.msl has it; nothing for none. */
void metal_maps_text(const metal_maps *m, strbuf *out);

#endif
