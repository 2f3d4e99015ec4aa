/* kfn.h - functions of headers that kernels of the CPU and of cards share. */
#ifndef WEFT_KERNELS_KFN_H
#define WEFT_KERNELS_KFN_H

#ifdef __CUDACC__
#define K_FN static inline __host__ __device__
#else
#define K_FN static inline
#endif

/* Whose result is a constant where its arguments are, in C++. */
#ifdef __cplusplus
#define K_CONST_FN constexpr K_FN
#else
#define K_CONST_FN K_FN
#endif

/* What C and C++ write differently, and NVRTC knows in C++'s words alone: a value of a structure, K_OF(type){..}; and the length of an
 * array at the end of a structure that has as much as it was allocated with. */
#ifdef __cplusplus
#define K_OF(type) type
#define K_ANY_LENGTH 1
#else
#define K_OF(type) (type)
#define K_ANY_LENGTH
#endif

#endif
