/* attend_fhm.c - attend_neon.c once more, with f16 converted by fmlal. */
#define ATTEND_NAME k_attend_fhm
#include "kernels/neon/attend_neon.c"
