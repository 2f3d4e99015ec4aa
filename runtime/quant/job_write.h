/* job_write.h - the state of a file being written; private to this folder. */
#ifndef WEFT_RUNTIME_QUANT_JOB_WRITE_H
#define WEFT_RUNTIME_QUANT_JOB_WRITE_H

#include "runtime/quant/job_impl.h"

struct job_writing {
    quant_job *j;
    const quant_write_options *how;
    size_t at; /* the tensor that is next */
    uint64_t done;
};

#endif
