/* session_ranges.c - rows from one sequence to another, and rows out of the middle of one. */
#include "runtime/base/mem.h"
#include "runtime/base/mem_scope.h"
#include "runtime/exec/cell_rope.h"
#include "runtime/exec/session_parts.h"
#include <inttypes.h>

weft_status session_append_range(weft_diag *dg, session *of, int64_t from, int64_t to,
                                 int64_t begin, int64_t end)
{
    session_parts s = session_parts_of(of);
    if (session_lora_key(of, from) != session_lora_key(of, to))
        return weft_fail(dg, W1418, WEFT_NOWHERE,
                         "rows of sequence %" PRId64 " were computed with other adapters than "
                         "those of sequence %" PRId64,
                         from, to);
    return state_append_range(dg, s.st, from, to, begin, end);
}

weft_status session_remove_range(weft_diag *dg, session *of, int64_t seq, int64_t begin,
                                 int64_t end, bool *out_exact)
{
    session_parts s = session_parts_of(of);
    state_copies copy = session_copies(&s);
    int64_t length = session_length(of, seq);
    key_turn *turn = mem_alloc(mem_product((size_t)s.p->n_cell + 1, sizeof *turn));
    for (int32_t i = 0; i < s.p->n_cell; i++)
        turn[i] = cell_rope_of(s.p, i);
    MEM_SCOPE(scope); /* where memory is short in the middle, rows must not be left half moved */
    if (sigsetjmp(scope.env, 0) != 0) {
        if (state_has(s.st, seq) && begin >= 0 && begin < state_length(s.st, seq))
            WEFT_TRY(state_truncate(dg, s.st, seq, begin));
        return diag_fail_memory(dg, scope.bytes);
    }
    weft_status status = state_remove_range(dg, s.st, seq, begin, end, turn, &copy);
    mem_free(turn);
    if (status == WEFT_OK)
        *out_exact = begin == end || end == length;
    return status;
}
