/* wgmma_tiles_cuda.cuh - matrix instructions of sm_90a for attention by tiles: 64 rows by 64, 128 or 256 columns, 16 deep, f16 or bf16
 * to f32. Queries and keys come from shared memory, weights from registers, and values from shared memory with their columns
 * side by side. */
#ifndef WEFT_KERNELS_CUDA_WGMMA_TILES_CUDA_CUH
#define WEFT_KERNELS_CUDA_WGMMA_TILES_CUDA_CUH

/* Operands 0 to 15 and so on. */
#define WORDS_0 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15"
#define WORDS_1 "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define WORDS_2 "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47"
#define WORDS_3 "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define WORDS_4 "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79"
#define WORDS_5 "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"
#define WORDS_6                                                                                    \
    "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111"
#define WORDS_7                                                                                    \
    "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, "   \
    "%127"
#define WORDS_OF_64 WORDS_0 ", " WORDS_1
#define WORDS_OF_128 WORDS_OF_64 ", " WORDS_2 ", " WORDS_3
#define WORDS_OF_256 WORDS_OF_128 ", " WORDS_4 ", " WORDS_5 ", " WORDS_6 ", " WORDS_7
#define SUM_1(i) "+f"(sum[i][0]), "+f"(sum[i][1]), "+f"(sum[i][2]), "+f"(sum[i][3])
#define SUM_4(i) SUM_1(i), SUM_1(i + 1), SUM_1(i + 2), SUM_1(i + 3)
#define SUMS_OF_64 SUM_4(0), SUM_4(4)
#define SUMS_OF_128 SUMS_OF_64, SUM_4(8), SUM_4(12)
#define SUMS_OF_256 SUMS_OF_128, SUM_4(16), SUM_4(20), SUM_4(24), SUM_4(28)

/* sum [COLS / 8][4]: two columns of two rows, of each 8 columns. */
template <int COLS, bool F16> struct wgmma_tiles;

/* logits: a and b say where the operands lie (lines_at); adds: to the sums there are, or they begin. values: a is a thread's part of 16
 * rows by 16, as mma.sync has it. Operands behind the sums have their numbers as the last four arguments. */
#define WGMMA_TILES(cols, f16, type, n0, n1, n2, n3, n4)                                           \
    template <> struct wgmma_tiles<cols, f16> {                                                    \
        static __device__ inline void logits(float (*sum)[4], uint64_t a, uint64_t b, int adds)    \
        {                                                                                          \
            asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" n2 ", 0;\n"                          \
                         "wgmma.mma_async.sync.aligned.m64n" #cols "k16.f32." type "." type        \
                         " {" WORDS_OF_##cols "}, %" n0 ", %" n1 ", p, 1, 1, 0, 0;\n}"             \
                         : SUMS_OF_##cols                                                          \
                         : "l"(a), "l"(b), "r"(adds));                                             \
        }                                                                                          \
        static __device__ inline void values(float (*sum)[4], const uint32_t *a, uint64_t b)       \
        {                                                                                          \
            asm volatile("wgmma.mma_async.sync.aligned.m64n" #cols "k16.f32." type "." type        \
                         " {" WORDS_OF_##cols "}, {%" n0 ", %" n1 ", %" n2 ", %" n3 "}, %" n4      \
                                              ", 1, 1, 1, 1;"                                      \
                         : SUMS_OF_##cols                                                          \
                         : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));                    \
        }                                                                                          \
    };
WGMMA_TILES(64, true, "f16", "32", "33", "34", "35", "36")
WGMMA_TILES(64, false, "bf16", "32", "33", "34", "35", "36")
WGMMA_TILES(128, true, "f16", "64", "65", "66", "67", "68")
WGMMA_TILES(128, false, "bf16", "64", "65", "66", "67", "68")
WGMMA_TILES(256, true, "f16", "128", "129", "130", "131", "132")
WGMMA_TILES(256, false, "bf16", "128", "129", "130", "131", "132")

#undef WGMMA_TILES
#undef WORDS_0
#undef WORDS_1
#undef WORDS_2
#undef WORDS_3
#undef WORDS_4
#undef WORDS_5
#undef WORDS_6
#undef WORDS_7
#undef WORDS_OF_64
#undef WORDS_OF_128
#undef WORDS_OF_256
#undef SUM_1
#undef SUM_4
#undef SUMS_OF_64
#undef SUMS_OF_128
#undef SUMS_OF_256

#endif
