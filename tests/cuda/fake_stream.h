/* fake_stream.h - streams of the tests' card: operations that are queued, and run when somebody waits for them.
 *
 * An operation that runs may touch the card's memory alone, and host memory that the card sees; others are misuse
 * (fake_driver.h) and lose the card. What a stream still has when it is dropped never runs. One thread at a time. */
#ifndef WEFT_TESTS_CUDA_FAKE_STREAM_H
#define WEFT_TESTS_CUDA_FAKE_STREAM_H

#include "tests/cuda/fake_module.h"

enum {
    CU_INVALID_HANDLE = 400, /* a result of drivers */
    FAKE_OPS_MAX = 4096      /* that a stream has room for */
};

typedef enum {
    FAKE_OP_IN,
    FAKE_OP_OUT,
    FAKE_OP_WITHIN,
    FAKE_OP_SET,
    FAKE_OP_LAUNCH,
    FAKE_OP_CHOOSE,
    FAKE_OP_BEST,
    FAKE_OP_TOKENS
} fake_op_kind;

typedef struct {
    fake_op_kind kind;
    char *to;
    const char *from;
    void *snapshot; /* from, where that was memory that may change; freed with the op */
    size_t bytes;
    unsigned char value;
    union { /* the argument of a kernel */
        cuda_launch all;
        cuda_run run; /* its first part */
        cuda_choice choice;
        cuda_tokens tokens;
    };
    cu_function function;
    int blocks, more; /* more: threads of a block beside those that compute */
    size_t shared;
} fake_op;

/* No streams, and a card that is not lost, whose blocks have so many threads. */
void fake_stream_reset(int threads);
void fake_stream_lose_at(int64_t n);   /* fake_lose_at of fake_driver.h */
cu_stream fake_stream_create(void);    /* NULL: no memory */
bool fake_stream_destroy(cu_stream s); /* behind all it has; false: it is not there */
/* Behind what the stream has; waits where there is no room. The snapshot is the stream's from here on. */
cu_result fake_stream_add(cu_stream s, fake_op o);
/* Runs the next n operations; CU_LAUNCH_FAILED where the card is lost. */
cu_result fake_stream_drain(cu_stream s, int n);
void fake_stream_drain_all(void); /* of all streams: what frees memory waits for everything first */
int fake_stream_left(cu_stream s);
bool fake_stream_lost(void);      /* the card */
int64_t fake_stream_chosen(void); /* tokens, by the card */

#endif
