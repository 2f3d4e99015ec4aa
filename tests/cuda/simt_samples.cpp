/* simt_samples.cpp - small kernels in CUDA's words: see simt_samples.h. */
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include "tests/cuda/simt_samples.h"

__device__ static float warp_sum(float v)
{
    for (int by = 16; by > 0; by /= 2)
        v += __shfl_xor_sync(0xffffffff, v, by);
    return v;
}

/* In a template, in static shared memory and in dynamic. */
template <bool WAITS> static __device__ float block_sum(float v)
{
    __shared__ float part[32];
    float *dynamic = (float *)simt_dynamic();
    v = warp_sum(v);
    if (threadIdx.x % warpSize == 0)
        part[threadIdx.x / warpSize] = dynamic[threadIdx.x / warpSize] = v;
    if (WAITS)
        __syncthreads();
    float sum = 0;
    for (unsigned i = 0; i < blockDim.x / warpSize; i++)
        sum += (part[i] + dynamic[i]) / 2;
    return sum;
}

template <bool WAITS> static __global__ void sum_of(const sample_args *a)
{
    float v = 0;
    for (int i = (int)threadIdx.x; i < a->n; i += (int)blockDim.x)
        v += __ldg(&a->x[(int)blockIdx.x * a->n + i]);
    v = block_sum<WAITS>(v);
    if (threadIdx.x == blockDim.x - 1 || threadIdx.x == 0)
        a->y[blockIdx.x * 2 + (threadIdx.x != 0)] = v;
}

void sample_sum(void *args)
{
    sum_of<true>((const sample_args *)args);
}

void sample_sum_racy(void *args)
{
    sum_of<false>((const sample_args *)args);
}

void sample_lanes(void *args)
{
    int32_t *i = ((sample_args *)args)->i + threadIdx.x;
    int me = (int)threadIdx.x, lane = me % 32, n = (int)blockDim.x;
    i[0 * n] = __shfl_sync(0xffffffff, me, 3);
    i[1 * n] = __shfl_sync(0xffffffff, me, 3, 8);
    i[2 * n] = __shfl_up_sync(0xffffffff, me, 5);
    i[3 * n] = __shfl_down_sync(0xffffffff, me, 5, 16);
    i[4 * n] = __shfl_xor_sync(0xffffffff, me, 7);
    i[5 * n] = (int)__ballot_sync(0xffffffff, lane % 3 == 0);
    i[6 * n] = __any_sync(0xffffffff, me == 40) * 2 + __all_sync(0xffffffff, me < 64);
    i[7 * n] = __reduce_add_sync(0xffffffff, me);
    i[8 * n] = __reduce_max_sync(0xffffffff, -me);
    unsigned half = lane < 16 ? 0xffffu : 0xffff0000u;
    i[9 * n] = __reduce_add_sync(half, 1 << (lane % 16));
    i[10 * n] = __syncthreads_or(me == 70) * 2 + __syncthreads_and(me != 70);
    i[11 * n] = __syncthreads_count(me % 5 == 0);
    i[12 * n] = lane < 16 ? (__syncwarp(0xffffu), __shfl_sync(0xffffu, me, 15)) : -1;
}

/* As blocks that are all resident wait for each other: one thread counts and waits for them. */
static __device__ void gate_wait(uint32_t *gate, uint32_t blocks)
{
    __syncthreads();
    if (threadIdx.x == 0) {
        atomicAdd(gate, 1);
        while (__ldcg(gate) < blocks)
            __nanosleep(20);
    }
    __syncthreads();
}

void sample_gate(void *args)
{
    const sample_args *a = (const sample_args *)args;
    __shared__ int mine[64];
    int threads = (int)blockDim.x, all = threads * (int)gridDim.x;
    int me = (int)blockIdx.x * threads + (int)threadIdx.x;
    mine[threadIdx.x] = me;
    a->i[all + me] = me * 3;
    gate_wait(a->gate, gridDim.x);
    a->i[me] = mine[threadIdx.x] == me ? a->i[all + (me + threads) % all] : -1;
}

void sample_gate_shut(void *args)
{
    gate_wait(((sample_args *)args)->gate, gridDim.x + 1);
}

void sample_barrier_ended(void *)
{
    if (threadIdx.x == 5)
        return;
    __syncthreads();
}

void sample_barrier_two(void *)
{
    if (threadIdx.x < 32)
        __syncthreads();
    else
        __syncthreads();
}

void sample_shuffle_lost(void *args)
{
    int32_t *i = ((sample_args *)args)->i;
    if (threadIdx.x == 9)
        __syncthreads();
    else
        i[threadIdx.x] = __shfl_sync(0xffffffff, (int)threadIdx.x, 0);
}

void sample_shuffle_masks(void *args)
{
    int32_t *i = ((sample_args *)args)->i;
    unsigned mask = threadIdx.x % 2 ? 0xffffu : 0xffffffffu;
    i[threadIdx.x] = __shfl_sync(mask | 1u << threadIdx.x % 32, (int)threadIdx.x, 0);
}

void sample_halves(void *args)
{
    const sample_args *a = (const sample_args *)args;
    for (int k = (int)threadIdx.x; k < a->n; k += (int)blockDim.x) {
        __half h = __float2half(a->x[k]);
        __nv_bfloat16 b = __float2bfloat16(a->x[k]);
        a->i[k] = __half_as_ushort(h) | (int32_t)__bfloat16_as_ushort(b) << 16;
        a->y[2 * k] = __half2float(h);
        a->y[2 * k + 1] = __bfloat162float(b);
    }
}

void sample_bytes(void *args)
{
    int32_t *i = ((sample_args *)args)->i;
    if (threadIdx.x > 0)
        return;
    i[0] = __dp4a((int)0xff02fe80, (int)0x03fd807f, 10); /* -1*3 + 2*-3 + -2*-128 + -128*127 + 10 */
    i[1] = (int)__dp4a(0xff02fe80u, 0x03fd807fu, 10u);
    i[2] = (int)__byte_perm(0x83828180, 0x07060504, 0x9e40);
    i[3] = (int)__vsub4(0x10203040, 0x01ff0241);
    i[4] = __float2int_rn(2.5f) * 100 + __float2int_rn(-3.5f);
}

/* A lane's part of products [16][8]. */
template <typename T> static void put_products(T *to, const T *sum)
{
    const int row = simt_lane() / 4, col = simt_lane() % 4 * 2;
    for (int k = 0; k < 4; k++)
        to[(row + k / 2 * 8) * 8 + col + k % 2] = sum[k];
}

void sample_products(void *args)
{
    const sample_args *s = (const sample_args *)args;
    const int row = simt_lane() / 4, word = simt_lane() % 4;
    uint32_t a[4], b[2];
    float half[4] = {}, bfloat[4] = {};
    int bytes[4] = {}, few[4] = {};
    for (int k = 0; k < 4; k++)
        a[k] = s->gate[(row + k % 2 * 8) * 8 + word + k / 2 * 4];
    for (int k = 0; k < 2; k++)
        b[k] = s->gate[(16 + row) * 8 + word + k * 4];
    simt_mma(half, a, b, simt_half_float);
    simt_mma(bfloat, a, b, simt_bfloat_float);
    simt_mma_s8(bytes, a, b, 32);
    simt_mma_s8(few, a, b, 16);
    put_products(s->y, half);
    put_products(s->y + 16 * 8, bfloat);
    put_products(s->i, bytes);
    put_products(s->i + 16 * 8, few);
}

void sample_copies(void *args)
{
    __shared__ int32_t to[2][4];
    static const int32_t from[2][4] = {{1, 2, 3, 4}, {5, 6, 7, 8}};
    int32_t *i = ((sample_args *)args)->i;
    if (threadIdx.x > 0)
        return;
    for (int k = 0; k < 2; k++) {
        simt_copy(to[k], from[k], k ? 8 : 16, 16);
        simt_copies_group();
    }
    for (int left = 2; left >= 0; left--) {
        simt_copies_wait(left);
        memcpy(i + (2 - left) * 8, to, sizeof to);
    }
}
