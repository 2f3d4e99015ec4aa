/* direct_asm.h - what the loops of direct.h are written with. Their two sets of accumulators take turns: one is filled
 * while the other goes into the sums. */
#ifndef WEFT_KERNELS_NEON_DIRECT_ASM_H
#define WEFT_KERNELS_NEON_DIRECT_ASM_H

/* clang-format off */
#define EXPAND(macro, ...) macro(__VA_ARGS__)
#define SPREAD(macro, ...) macro(__VA_ARGS__) /* within EXPAND, which does not nest */
#define SET0 0, 1, 2, 3, 4, 5, 6, 7
#define SET1 8, 9, 10, 11, 12, 13, 14, 15
#define ZERO(v) "movi v" #v ".4s, #0\n"
#define ALL_VECTORS "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13", "v14", \
    "v15", "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26", "v27", "v28", "v29", "v30", "v31"
/* clang-format on */

#endif
