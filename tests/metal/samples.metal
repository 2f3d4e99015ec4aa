/* samples.metal - what test_lanes.c and test_fake_metal.cpp run. Every barrier in it is needed: test_lanes.c removes each one in
 * turn and wants to be told. */
#include <metal_stdlib>
using namespace metal;

constant uint rows_per_simdgroup [[function_constant(0)]];
constant bool scaled [[function_constant(1)]];
constant float scale = scaled ? 2.0f : 1.0f;
constant float table[4] = {1.0, 2.0, 3.0, 4.0};

struct block_q8_0 {
    half d;
    char qs[32];
};

/* One threadgroup for each row. */
kernel void rms_norm(device const float *x [[buffer(0)]], device const float *w [[buffer(1)]],
                     device float *y [[buffer(2)]], constant uint &n [[buffer(3)]],
                     uint row [[threadgroup_position_in_grid]],
                     uint tid [[thread_position_in_threadgroup]],
                     uint threads [[threads_per_threadgroup]],
                     uint lane [[thread_index_in_simdgroup]],
                     uint simdgroup [[simdgroup_index_in_threadgroup]],
                     uint simdgroups [[simdgroups_per_threadgroup]])
{
    threadgroup float part[32];
    device const float4 *x4 = (device const float4 *)(x + row * n);
    float s = 0;
    for (uint i = tid; i < n / 4; i += threads)
        s += dot(x4[i], x4[i]);
    s = simd_sum(s);
    if (lane == 0)
        part[simdgroup] = s;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    s = simd_sum(lane < simdgroups ? part[lane] : 0.0f);
    float r = rsqrt(s / n + 1e-5f);
    for (uint i = tid; i < n; i += threads)
        y[row * n + i] = x[row * n + i] * r * w[i] * scale;
}

/* Rows of Q8_0 times a vector. */
template <int R>
kernel void gemv(device const block_q8_0 *w [[buffer(0)]], device const float *x [[buffer(1)]],
                 device float *y [[buffer(2)]], constant uint2 &size [[buffer(3)]],
                 uint group [[threadgroup_position_in_grid]],
                 ushort lane [[thread_index_in_simdgroup]],
                 ushort simdgroup [[simdgroup_index_in_threadgroup]],
                 uint simdgroups [[simdgroups_per_threadgroup]])
{
    const uint rows = size.x, blocks = size.y / 32, first = (group * simdgroups + simdgroup) * R;
    float sum[R] = {0};
    for (uint b = lane / 4; b < blocks; b += 8) {
        device const float4 *x4 = (device const float4 *)(x + b * 32 + lane % 4 * 8);
        for (int r = 0; r < R && first + r < rows; r++) {
            device const block_q8_0 &p = w[(first + r) * blocks + b];
            device const packed_char4 *q = (device const packed_char4 *)(p.qs + lane % 4 * 8);
            sum[r] += float(p.d) * (dot(float4(q[0]), x4[0]) + dot(float4(q[1]), x4[1]));
        }
    }
    for (int r = 0; r < R; r++) {
        float all = simd_sum(sum[r]);
        if (lane == 0 && first + r < rows)
            y[first + r] = all;
    }
}
template [[host_name("gemv_2")]] kernel void gemv<2>(device const block_q8_0 *,
                                                      device const float *, device float *,
                                                      constant uint2 &, uint, ushort, ushort, uint);
typedef decltype(gemv<4>) gemv_kernel;
template [[host_name("gemv_4")]] kernel gemv_kernel gemv<4>;

/* C[m, n] = A[m, k] B[n, k] transposed; tiles of 16 x 16 x 16 for four simdgroups, each 8 x 8. */
kernel void gemm(device const half *a [[buffer(0)]], device const half *b [[buffer(1)]],
                 device float *c [[buffer(2)]], constant uint3 &size [[buffer(3)]],
                 threadgroup half *tiles [[threadgroup(0)]],
                 uint2 group [[threadgroup_position_in_grid]],
                 ushort tid [[thread_index_in_threadgroup]],
                 ushort simdgroup [[simdgroup_index_in_threadgroup]])
{
    const uint m0 = group.y * 16, n0 = group.x * 16, n = size.y, k = size.z;
    const uint row = simdgroup / 2 * 8, col = simdgroup % 2 * 8;
    threadgroup half *ta = tiles, *tb = tiles + 16 * 16;
    simdgroup_half8x8 fa, fb;
    simdgroup_float8x8 sum = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
    for (uint k0 = 0; k0 < k; k0 += 16) {
        for (ushort i = tid; i < 16 * 4; i += 128) {
            uint at = i / 4 * k + k0 + i % 4 * 4;
            *(threadgroup half4 *)(ta + i * 4) = *(device const half4 *)(a + m0 * k + at);
            *(threadgroup half4 *)(tb + i * 4) = *(device const half4 *)(b + n0 * k + at);
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
        for (ushort kk = 0; kk < 16; kk += 8) {
            simdgroup_load(fa, ta + row * 16 + kk, 16);
            simdgroup_load(fb, tb + col * 16 + kk, 16, ulong2(0, 0), true);
            simdgroup_multiply_accumulate(sum, fa, fb, sum);
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    simdgroup_store(sum, c + (m0 + row) * n + n0 + col, n);
}

/* Steps that hold addresses: what a plan's phases are. */
struct step {
    device const float *x;
    device float *y;
    float add;
    uint n;
};
kernel void steps(device const step *s [[buffer(0)]], constant uint &count [[buffer(1)]],
                  uint tid [[thread_index_in_threadgroup]],
                  uint threads [[threads_per_threadgroup]])
{
    for (uint k = 0; k < count; k++) {
        device const step &one = s[k];
        for (uint i = tid; i < one.n; i += threads)
            one.y[i] = one.x[one.n - 1 - i] + one.add;
        threadgroup_barrier(mem_flags::mem_device);
    }
}

/* Neighbours, within a simdgroup and through threadgroup memory alone. */
kernel void neighbours(device float *y [[buffer(0)]], uint i [[thread_position_in_threadgroup]])
{
    threadgroup float t[64];
    t[i] = i;
    simdgroup_barrier(mem_flags::mem_threadgroup);
    y[i] = t[i ^ 1];
}

template <class T> T twice(T x)
{
    return T(x + x);
}

/* Everything with vectors, bits and lanes, a value of each in y[lane * 16 ..]. */
kernel void words(device const half4 *x [[buffer(0)]], device float *y [[buffer(1)]],
                  device bfloat *z [[buffer(2)]], device atomic_uint *n [[buffer(3)]],
                  uint i [[thread_index_in_simdgroup]])
{
    device float *out = y + i * 16;
    half4 v = x[i];
    v.xy = v.yx;
    float4 f = float4(v);
    out[0] = f.x;
    out[1] = simd_shuffle_xor(f.x, 1);
    out[2] = simd_shuffle_down(f.x, 1);
    out[3] = simd_max(f.x);
    out[4] = simd_broadcast(f.x, 5);
    out[5] = simd_prefix_exclusive_sum(1.0f);
    out[6] = popcount((uint)(ulong)simd_ballot(i % 3 == 0));
    out[7] = float(as_type<half2>(0x3c004000u).x);
    out[8] = dot(vec<float, 4>(f.zw, half2(v.xy)), float4(1));
    out[9] = float(twice(half2(1.5h, 2.0h)).x) + table[i % 4];
    out[10] = clamp(f.x, -1.0f, 1.0f);
    out[11] = simd_all(i < 32) && !simd_any(i > 31) ? 1 : 0;
    out[12] = is_function_constant_defined(rows_per_simdgroup) ? rows_per_simdgroup : 7;
    out[13] = float(bfloat(1.0f + 1.0f / 128 + 1.0f / 512));
    out[14] = extract_bits(0xabcdu, 4, 8);
    out[15] = simd_min(-f.x);
    z[i] = bfloat(f.x);
    atomic_fetch_add_explicit(n, i, memory_order_relaxed);
}
