/* check_rest.c - cases for the ops that are no contraction. */
#include "tests/kernels/check.h"

const check_op check_ops_rest[] = {
    {NULL, NULL, NULL},
};
