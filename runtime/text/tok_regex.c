/* tok_regex.c - PCRE2 with UTF, UCP and JIT, and limits on what a match may cost. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "runtime/text/tok_regex.h"

#include "runtime/base/mem.h"
#include "runtime/base/mem_scope.h"
#include "runtime/text/tok_unicode.h"
#include <pcre2.h>
#include <stdlib.h>

enum {
    PATTERN_DEPTH_MAX = 100,    /* of brackets */
    MATCH_STEPS_MAX = 20000000, /* and MATCH_STEPS_PER_BYTE: a long run of spaces takes three */
    MATCH_STEPS_PER_BYTE = 8,
    MATCH_HEAP_KIB_MAX = 1 << 18,
    JIT_STACK_START = 32 << 10,
    JIT_STACK_MAX = 8 << 20,
};

struct tok_regex {
    pcre2_code *code; /* NULL: a literal */
    pcre2_match_data *found;
    pcre2_match_context *limits;
    pcre2_jit_stack *stack;
    bool jit;
    str pattern; /* as the tokenizer has it, for messages; a literal's text */
};

static str copy(str s)
{
    char *p = mem_alloc(s.n + 1);
    memcpy(p, s.p, s.n);
    p[s.n] = '\0';
    return (str){p, s.n};
}

bool tok_regex_is_literal(const tok_regex *re)
{
    return !re->code;
}

str tok_regex_text(const tok_regex *re)
{
    return re->pattern;
}

static void destroy_undone(void *re)
{
    tok_regex_destroy(re);
}

tok_regex *tok_regex_literal(str text)
{
    tok_regex *re = mem_alloc(sizeof *re);
    *re = (tok_regex){.pattern = copy(text)};
    mem_scope_on_fail(destroy_undone, re);
    return re;
}

void tok_regex_destroy(tok_regex *re)
{
    if (!re)
        return;
    mem_scope_forget(destroy_undone, re);
    pcre2_jit_stack_free(re->stack);
    pcre2_match_context_free(re->limits);
    pcre2_match_data_free(re->found);
    pcre2_code_free(re->code);
    mem_free((char *)re->pattern.p);
    mem_free(re);
}

/* PCRE2's objects outlive the scopes they are made or grow in, and are released by tok_regex_destroy. */
static void *take(size_t bytes, void *none)
{
    (void)none;
    return mem_try_kept(bytes);
}

static void give_back(void *p, void *none)
{
    (void)none;
    free(p);
}

static pcre2_general_context *memory(void)
{
    pcre2_general_context *mem = pcre2_general_context_create(take, give_back, NULL);
    if (!mem)
        mem_exhausted(1);
    return mem;
}

static weft_status compile(weft_diag *dg, tok_regex *re, str translated)
{
    int error;
    PCRE2_SIZE at;
    pcre2_general_context *mem = memory();
    pcre2_compile_context *ctx = pcre2_compile_context_create(mem);
    pcre2_general_context_free(mem);
    if (!ctx)
        mem_exhausted(1);
    pcre2_set_newline(ctx, PCRE2_NEWLINE_LF);
    pcre2_set_parens_nest_limit(ctx, PATTERN_DEPTH_MAX);
    re->code = pcre2_compile((PCRE2_SPTR)translated.p, translated.n,
                             PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C,
                             &error, &at, ctx);
    pcre2_compile_context_free(ctx);
    if (re->code)
        return WEFT_OK;
    if (error == PCRE2_ERROR_HEAP_FAILED)
        mem_exhausted(translated.n);
    char reason[256];
    pcre2_get_error_message(error, (PCRE2_UCHAR *)reason, sizeof reason);
    return weft_fail(dg, W1204, WEFT_NOWHERE, "pattern '" STR_FMT "' cannot be used: %s",
                     STR_ARG(re->pattern), reason);
}

weft_status tok_regex_create(weft_diag *dg, str pattern, tok_regex **out_re)
{
    if (pattern.n > TOK_PATTERN_MAX)
        return weft_fail(dg, W1209, WEFT_NOWHERE, "a pattern has %zu bytes, at most %d are allowed",
                         pattern.n, TOK_PATTERN_MAX);
    tok_regex *re = tok_regex_literal(pattern);
    strbuf translated = {0};
    weft_status status = tok_onig_translate(dg, pattern, &translated);
    if (status == WEFT_OK)
        status = compile(dg, re, strbuf_view(&translated));
    strbuf_free(&translated);
    if (status != WEFT_OK) {
        tok_regex_destroy(re);
        return status;
    }
    re->jit = pcre2_jit_compile(re->code, PCRE2_JIT_COMPLETE) == 0;
    pcre2_general_context *mem = memory();
    re->found = pcre2_match_data_create(1, mem);
    re->limits = pcre2_match_context_create(mem);
    pcre2_general_context_free(mem);
    if (!re->found || !re->limits)
        mem_exhausted(1);
    pcre2_set_heap_limit(re->limits, MATCH_HEAP_KIB_MAX);
    if (re->jit && (re->stack = pcre2_jit_stack_create(JIT_STACK_START, JIT_STACK_MAX, NULL)))
        pcre2_jit_stack_assign(re->limits, NULL, re->stack);
    *out_re = re;
    return WEFT_OK;
}

static uint32_t steps_max(size_t n)
{
    size_t room = (UINT32_MAX - MATCH_STEPS_MAX) / MATCH_STEPS_PER_BYTE;
    return MATCH_STEPS_MAX + MATCH_STEPS_PER_BYTE * (uint32_t)(n < room ? n : room);
}

static weft_status search(weft_diag *dg, const tok_matches *m, bool *out_found)
{
    const tok_regex *re = m->re;
    PCRE2_SPTR text = (PCRE2_SPTR)m->text.p;
    int n = PCRE2_ERROR_JIT_STACKLIMIT;
    pcre2_set_match_limit(re->limits, steps_max(m->text.n));
    if (re->jit)
        n = pcre2_jit_match(re->code, text, m->text.n, m->from, 0, re->found, re->limits);
    if (n == PCRE2_ERROR_JIT_STACKLIMIT) /* the interpreter keeps its frames on the heap */
        n = pcre2_match(re->code, text, m->text.n, m->from, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT,
                        re->found, re->limits);
    *out_found = n >= 0;
    if (n == PCRE2_ERROR_NOMEMORY)
        mem_exhausted(m->text.n);
    if (n >= 0 || n == PCRE2_ERROR_NOMATCH)
        return WEFT_OK;
    char reason[256];
    pcre2_get_error_message(n, (PCRE2_UCHAR *)reason, sizeof reason);
    return weft_fail(dg, W1205, WEFT_NOWHERE,
                     "pattern '" STR_FMT "' takes too many steps on this text, from byte %zu on: "
                     "%s",
                     STR_ARG(re->pattern), m->from, reason);
}

static bool search_literal(tok_matches *m, size_t *out_begin, size_t *out_end)
{
    str want = m->re->pattern;
    const char *at = NULL;
    if (want.n == 1)
        at = memchr(m->text.p + m->from, want.p[0], m->text.n - m->from);
    else if (want.n)
        at = memmem(m->text.p + m->from, m->text.n - m->from, want.p, want.n);
    if (!at)
        return false;
    *out_begin = (size_t)(at - m->text.p);
    *out_end = m->from = *out_begin + want.n;
    return true;
}

weft_status tok_matches_next(weft_diag *dg, tok_matches *m, size_t *out_begin, size_t *out_end)
{
    *out_begin = SIZE_MAX;
    if (!m->re->code) {
        if (m->from < m->text.n)
            (void)search_literal(m, out_begin, out_end);
        return WEFT_OK;
    }
    while (m->from <= m->text.n) {
        bool found;
        WEFT_TRY(search(dg, m, &found));
        if (!found)
            break;
        const PCRE2_SIZE *span = pcre2_get_ovector_pointer(m->re->found);
        size_t begin = span[0], end = span[1];
        if (begin > end) /* \K in a lookahead */
            begin = end;
        bool again = begin == end && end == m->last_end;
        m->from = end;
        if (begin == end)
            m->from += end < m->text.n ? uni_len(m->text.p[end]) : 1;
        if (again)
            continue;
        m->last_end = end;
        *out_begin = begin;
        *out_end = end;
        return WEFT_OK;
    }
    m->from = m->text.n + 1;
    return WEFT_OK;
}

weft_status tok_bound_check(weft_diag *dg, const tok_bound *b, size_t n)
{
    if (n <= b->n_max)
        return WEFT_OK;
    return weft_fail(dg, W1214, WEFT_NOWHERE, "%s makes the text longer than the %zu bytes allowed",
                     b->what, b->n_max);
}

double tok_regex_growth(const tok_regex *re, size_t n)
{
    uint32_t least = 0; /* characters that a match is behind the last one's end */
    if (!re->code)      /* the text itself goes */
        return re->pattern.n && n > re->pattern.n ? (double)n / (double)re->pattern.n : 1;
    if (pcre2_pattern_info(re->code, PCRE2_INFO_MINLENGTH, &least) != 0 || least == 0)
        least = 1; /* an empty match at every byte */
    return 1 + (double)n / least;
}

weft_status tok_regex_replace(weft_diag *dg, tok_regex *re, str text, str with, const tok_bound *b,
                              strbuf *out)
{
    tok_matches m = tok_matches_of(re, text);
    size_t done = 0, begin, end;
    for (;;) {
        WEFT_TRY(tok_matches_next(dg, &m, &begin, &end));
        if (begin == SIZE_MAX)
            break;
        if (begin < done)
            continue;
        strbuf_put(out, (str){text.p + done, begin - done});
        strbuf_put(out, with);
        WEFT_TRY(tok_bound_check(dg, b, out->n));
        done = end;
    }
    strbuf_put(out, (str){text.p + done, text.n - done});
    return tok_bound_check(dg, b, out->n);
}
