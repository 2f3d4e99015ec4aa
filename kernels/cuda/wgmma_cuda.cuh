/* wgmma_cuda.cuh - the matrix instruction of sm_90a that four warps issue together: 64 rows by 256 columns, 16 deep, bf16 or f16 to f32,
 * both operands in shared memory. */
#ifndef WEFT_KERNELS_CUDA_WGMMA_CUDA_CUH
#define WEFT_KERNELS_CUDA_WGMMA_CUDA_CUH

#define SUM_1(i) "+f"(sum[i][0]), "+f"(sum[i][1]), "+f"(sum[i][2]), "+f"(sum[i][3])
#define SUM_4(i) SUM_1(i), SUM_1(i + 1), SUM_1(i + 2), SUM_1(i + 3)

/* sum[32][4]: two columns of two rows, of each 8 columns. a and b: where the operands lie (lines_at). */
#define WGMMA(name, type)                                                                          \
    static __device__ inline void name(float(*sum)[4], uint64_t a, uint64_t b)                     \
    {                                                                                              \
        asm volatile(                                                                              \
            "wgmma.mma_async.sync.aligned.m64n256k16.f32." type "." type " {"                      \
            "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "               \
            "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "     \
            "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "     \
            "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "     \
            "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "     \
            "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "     \
            "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, "     \
            "%110, %111, "                                                                         \
            "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, "       \
            "%125, %126, %127}, %128, %129, 1, 1, 1, 0, 0;"                                        \
            : SUM_4(0), SUM_4(4), SUM_4(8), SUM_4(12), SUM_4(16), SUM_4(20), SUM_4(24), SUM_4(28)  \
            : "l"(a), "l"(b));                                                                     \
    }
WGMMA(wgmma_64x256x16, "bf16")
WGMMA(wgmma_64x256x16_f16, "f16")
#undef WGMMA

#undef SUM_1
#undef SUM_4

#endif
