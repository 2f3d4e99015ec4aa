/* plan_sum.h - what a plan will do, added up before anything runs: bytes, flops, phases, kernels.
 *
 * Reads the plan alone. Bytes count every operand of a step once, so they are what memory moves where
 * nothing stays in a cache; weights and state, nearly all of it, do not. */
#ifndef WEFT_RUNTIME_ENGINE_PLAN_SUM_H
#define WEFT_RUNTIME_ENGINE_PLAN_SUM_H

#include "compiler/plan.h"

/* A call of one sequence: n_tok rows from position `pos` on, of which n_out are asked for. */
typedef struct {
    int64_t pos, n_tok, n_out;
} plan_call;

typedef struct {
    double bytes, flops;
} plan_work;

plan_work plan_work_of_step(const plan_step *s, const plan_call *c);
plan_work plan_work_of_call(const plan *p, const plan_call *c);

/* Phases of a bucket, each counted for the layer of its shared work: how many the layers have, from the
 * one with the fewest to the one with the most, and how many stand outside. All 0 without layers. */
typedef struct {
    int32_t all, per_layer_min, per_layer_max, outside, layers;
} plan_phases;

plan_phases plan_phases_of(const plan_bucket *b);
/* The layer that a phase counts for; -1: none. */
int32_t plan_phase_layer(const plan_bucket *b, int32_t phase);

/* The layers that the plan of a part has, from *out_first on; how many they are. */
int32_t plan_layers_of(const plan *p, int32_t *out_first);

typedef struct {
    int32_t kernel; /* of the plan */
    int32_t n_step;
    plan_work work;
} plan_use;

/* The kernels of the bucket for such a call, those that move most first; returns how many there are.
 * The list lives in a. */
int32_t plan_uses_of_call(const plan *p, const plan_call *c, arena *a, const plan_use **out_uses);

#endif
