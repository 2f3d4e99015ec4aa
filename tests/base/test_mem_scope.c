/* test_mem_scope.c - the suite of runtime/base/mem_scope.c. What a failed scope leaves behind, the leak check of the address sanitizer finds. */
#include "runtime/base/mem_scope.h"
#include "runtime/base/mem.h"
#include "runtime/base/vec.h"
#include "tests/base/suite.h"

typedef void work_fn(void *ctx);

/* Runs work in a scope; true if memory was short. */
static bool falls_short(work_fn *work, void *ctx)
{
    MEM_SCOPE(scope);
    if (sigsetjmp(scope.env, 0) != 0)
        return true;
    work(ctx);
    return false;
}

/* Any mixture of taking, growing and releasing; all of it is gone afterwards. */
static void churn(void *ctx)
{
    int n = *(int *)ctx;
    VEC(char *) blocks = {0};
    arena *a = arena_create();
    strbuf text = {0};
    for (int i = 0; i < n; i++) {
        VEC_PUSH(&blocks, mem_alloc((size_t)i % 97));
        arena_alloc(a, 1000);
        strbuf_add(&text, "%d ", i);
        if (i % 3 == 0) {
            mem_free(blocks.at[i / 2]);
            blocks.at[i / 2] = NULL;
        } else if (i % 3 == 1) {
            blocks.at[i / 2] = mem_realloc(blocks.at[i / 2], 5000);
        }
    }
    for (size_t i = 0; i < blocks.n; i++)
        mem_free(blocks.at[i]);
    VEC_FREE(&blocks);
    strbuf_free(&text);
    arena_destroy(a);
}

START_TEST(releases_what_it_took)
{
    int n = 300;
    for (int64_t i = 1; i < 4000; i += i < 200 ? 1 : 37) {
        mem_fail_after(i, i % 2);
        bool is_short = falls_short(churn, &n);
        ck_assert_int_eq(is_short, mem_fail_came());
        mem_fail_after(0, false);
        if (!is_short)
            return;
    }
    ck_abort_msg("it never ran to its end");
}
END_TEST

typedef struct {
    arena *a;
    VEC(int) list;
    strbuf text;
    char *block;
    mem_life life;
} object;

static void create(void *ctx)
{
    object *o = ctx;
    o->a = arena_create();
    o->life = mem_life_now();
    VEC_START(&o->list);
    strbuf_start(&o->text);
}

static void grow(void *ctx)
{
    object *o = ctx;
    for (int i = 0; i < 1000; i++) {
        VEC_PUSH(&o->list, i);
        strbuf_putc(&o->text, 'x');
        arena_alloc(o->a, 100);
        if (!o->block)
            o->block = mem_alloc_for(o->life, 10);
        mem_free(mem_alloc(50));
    }
}

static void destroy(object *o)
{
    arena_destroy(o->a);
    VEC_FREE(&o->list);
    strbuf_free(&o->text);
    mem_free(o->block);
}

/* An object of an earlier call is whole after each failure, and can be used and destroyed. */
START_TEST(keeps_what_was_there_before)
{
    object o = {0};
    ck_assert(!falls_short(create, &o));
    for (int64_t i = 1;; i++) {
        size_t n = o.list.n;
        mem_fail_after(i % 300 + 1, false);
        bool is_short = falls_short(grow, &o);
        mem_fail_after(0, false);
        ck_assert_uint_ge(o.list.n, n);
        for (size_t k = 0; k < o.list.n; k++)
            ck_assert_int_lt(o.list.at[k], 1000);
        ck_assert_uint_eq(strlen(o.text.p), o.text.n);
        if (i > 100)
            break;
        (void)is_short;
    }
    destroy(&o);
}
END_TEST

static void create_and_grow(void *ctx)
{
    create(ctx);
    grow(ctx);
}

/* One that is made and grows in the same call is released with it. */
START_TEST(releases_what_began_inside)
{
    for (int64_t i = 1;; i++) {
        object o = {0};
        mem_fail_after(i, false);
        bool is_short = falls_short(create_and_grow, &o);
        mem_fail_after(0, false);
        if (!is_short) {
            destroy(&o);
            return;
        }
        ck_assert_int_lt(i, 10000);
    }
}
END_TEST

typedef struct {
    char order[8];
    int n;
    pthread_mutex_t lock;
} witness;

static witness w;

static void note(void *ctx)
{
    w.order[w.n++] = *(const char *)ctx;
}

static void hold(void *ctx)
{
    static char a[] = "a", b[] = "b", c[] = "c";
    mem_scope_on_fail(note, a);
    mem_scope_on_fail(note, b);
    mem_scope_on_fail(note, c);
    mem_scope_forget(note, b);
    mem_scope_forget(note, b); /* is not there any more */
    mem_lock(&w.lock);
    if (*(bool *)ctx)
        mem_exhausted(1);
    mem_unlock(&w.lock);
}

START_TEST(releases_what_is_not_memory)
{
    w = (witness){.n = 0};
    pthread_mutex_init(&w.lock, NULL);
    for (int i = 0; i < 2; i++) {
        bool fail = i == 0;
        ck_assert_int_eq(falls_short(hold, &fail), fail);
        ck_assert_str_eq(w.order, "ca"); /* the last first; of a scope that succeeds, none */
        ck_assert_int_eq(pthread_mutex_trylock(&w.lock), 0);
        pthread_mutex_unlock(&w.lock);
    }
    mem_scope_on_fail(note, &w); /* nothing without a scope */
    ck_assert_int_eq(w.n, 2);
}
END_TEST

typedef struct {
    void *before, *kept;
    object o;
    bool inner_fails, inner_short;
} nest;

static void inner(void *ctx)
{
    nest *n = ctx;
    n->before = mem_realloc(n->before, 100000); /* of the scope around it, and stays there */
    grow(&n->o);
    mem_alloc(10);
    if (n->inner_fails)
        mem_exhausted(1);
}

static void outer(void *ctx)
{
    nest *n = ctx;
    n->before = mem_alloc(10);
    create(&n->o);
    n->inner_short = falls_short(inner, n);
    if (n->inner_short)
        mem_exhausted(2);
    destroy(&n->o);
    mem_free(n->before);
}

START_TEST(scopes_nest)
{
    nest n = {.inner_fails = true};
    ck_assert(falls_short(outer, &n));
    ck_assert(n.inner_short);
    ck_assert_ptr_null(mem_scope_now);
    void *kept = NULL;
    n = (nest){0};
    {
        MEM_SCOPE(scope);
        if (sigsetjmp(scope.env, 0) == 0)
            kept = mem_alloc(20);
    }
    memset(kept, 1, 20); /* a scope that ended keeps nothing back */
    mem_free(kept);
}
END_TEST

SUITE_MAIN("mem_scope", releases_what_it_took, keeps_what_was_there_before,
           releases_what_began_inside, releases_what_is_not_memory, scopes_nest)
