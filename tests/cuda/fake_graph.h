/* fake_graph.h - graphs of the tests' card: launches that are kept, each behind the one before, and queued in a stream together. */
#ifndef WEFT_TESTS_CUDA_FAKE_GRAPH_H
#define WEFT_TESTS_CUDA_FAKE_GRAPH_H

#include "tests/cuda/fake_stream.h"

typedef struct {
    int nodes, overlaps; /* overlaps: nodes that may begin before the one before ends */
    int64_t phases;
} fake_graph_size;

cu_graph fake_graph_create(void);    /* NULL: no memory */
bool fake_graph_destroy(cu_graph g); /* false: it is not there */
bool fake_graph_is(cu_graph g);
/* Behind its last node, which `behind` has to be; NULL: it has none yet. NULL: not so, or no memory. */
cu_node fake_graph_add(cu_graph g, cu_node behind, bool overlaps, const fake_op *o);
cu_graph_exec fake_graph_instantiate(cu_graph g); /* NULL: no memory */
bool fake_graph_exec_destroy(cu_graph_exec x);    /* false: it is not there */
/* All of it, in a stream; how much that is. CU_INVALID_HANDLE: it is not there. */
cu_result fake_graph_launch(cu_graph_exec x, cu_stream s, fake_graph_size *out);
int fake_graphs(void);      /* of both kinds, that are alive */
void fake_graph_drop(void); /* all of them */

#endif
