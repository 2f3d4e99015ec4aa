/* panel_avxvnni.c - linear and experts for many rows with AVX2 and AVX-VNNI: stored weights as panels of 16 rows. */
#include "kernels/kernel_decls.h"

#include "kernels/x86/panel_stored.h"
#include "kernels/x86/panel_vnni.h"

#define KERNELS_32(...) STORED_KERNELS_32(__VA_ARGS__, 1, avxvnni)
STORED_32(KERNELS_32)
#define KERNELS_256(...) STORED_KERNELS_256(__VA_ARGS__, true, 1, avxvnni)
STORED_256(KERNELS_256)
