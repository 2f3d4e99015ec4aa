/* kfn.h - functions of headers that kernels of the CPU and of cards share. */
#ifndef WEFT_KERNELS_KFN_H
#define WEFT_KERNELS_KFN_H

#ifdef __CUDACC__
#define K_FN static inline __host__ __device__
#else
#define K_FN static inline
#endif

#endif
