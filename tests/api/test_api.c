/* test_api.c - the public interface: opening from a path, a descriptor and memory, errors, sessions. */
#include "tests/base/suite.h"

#include "runtime/weft.h"
#include <fcntl.h>
#include <sys/mman.h>

#if defined(__SANITIZE_THREAD__)
#define THREAD_SANITIZER true
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define THREAD_SANITIZER true
#endif
#endif
#if !defined(THREAD_SANITIZER)
#define THREAD_SANITIZER false
#endif

#define DATA WEFT_SOURCE_DIR "/tests/golden/data"

static weft_model *opened(weft_diag *dg, const char *path)
{
    weft_model *m = NULL;
    if (weft_model_open(dg, path, NULL, &m) != WEFT_OK)
        ck_abort_msg("%s", weft_diag_text(dg));
    return m;
}

/* The logits of one row, from a model opened in some way. */
static float first_logit(weft_diag *dg, weft_model *m)
{
    weft_session *s = NULL;
    weft_row row = {.token = 5, .want = true};
    weft_view v;
    ck_assert_int_eq(
        weft_session_create(dg, m,
                            &(weft_session_options){
                                .size = sizeof(weft_session_options), .context = 4, .threads = 3},
                            &s),
        WEFT_OK);
    ck_assert_int_eq(weft_eval(dg, s, &row, 1), WEFT_OK);
    ck_assert_int_eq(weft_output(dg, s, "logits", -1, &v), WEFT_OK);
    ck_assert_int_eq(v.rows, 1);
    float x = v.data[0];
    weft_session_destroy(s);
    return x;
}

START_TEST(three_ways_to_open)
{
    weft_diag *dg = weft_diag_create();
    const char *path = DATA "/llama-mha/model-bf16.gguf";
    weft_model *m = opened(dg, path), *by_fd = NULL, *in_memory = NULL;
    float want = first_logit(dg, m);
    int fd = open(path, O_RDONLY);
    struct stat st;
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(fstat(fd, &st), 0);
    void *data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    ck_assert_int_eq(weft_model_open_fd(dg, fd, "by descriptor", NULL, &by_fd), WEFT_OK);
    close(fd);
    ck_assert_int_eq(
        weft_model_open_memory(dg, data, (size_t)st.st_size, "in memory", NULL, &in_memory),
        WEFT_OK);
    ck_assert_float_eq(first_logit(dg, by_fd), want);
    ck_assert_float_eq(first_logit(dg, in_memory), want);
    weft_model_close(m);
    weft_model_close(by_fd);
    weft_model_close(in_memory);
    munmap(data, (size_t)st.st_size);
    m = NULL;
    ck_assert_int_eq(
        weft_model_open(dg, path,
                        &(weft_model_options){.size = sizeof(weft_model_options), .no_mmap = true},
                        &m),
        WEFT_OK);
    ck_assert_float_eq(first_logit(dg, m), want);
    weft_model_close(m);
    weft_diag_destroy(dg);
}
END_TEST

/* In the child of a fork: what of the parent's objects it may do. Its exit status says where it stopped. */
static int in_child(weft_model *m, weft_session *s, float want)
{
    weft_diag *dg = weft_diag_create();
    weft_row row = {.token = 5, .pos = (int32_t)weft_length(s, 0), .want = true};
    alarm(60); /* a thread that is not there may be waited for */
    if (weft_eval(dg, s, &row, 1) != WEFT_ERR_DEVICE || !strstr(weft_diag_text(dg), "W1604"))
        return 1;
    if (weft_length(s, 0) != row.pos)
        return 2;
    weft_session_destroy(s);
    for (int i = 0; i < 2; i++)
        if (first_logit(dg, m) != want)
            return 3;
    weft_model_close(m);
    weft_diag_destroy(dg);
    return 0;
}

START_TEST(a_child_has_sessions_of_its_own)
{
    if (THREAD_SANITIZER) /* which does not support threads in a child */
        return;
    weft_diag *dg = weft_diag_create();
    weft_model *m = opened(dg, DATA "/gemma2");
    weft_session *s = NULL;
    weft_row row = {.token = 5, .want = true};
    float want = first_logit(dg, m);
    weft_session_options how = {.size = sizeof how, .context = 8, .threads = 3};
    ck_assert_int_eq(weft_session_create(dg, m, &how, &s), WEFT_OK);
    ck_assert_int_eq(weft_eval(dg, s, &row, 1), WEFT_OK);
    for (int i = 0; i < 3; i++) {
        int status = -1;
        pid_t pid = fork();
        ck_assert_int_ge(pid, 0);
        if (pid == 0)
            _exit(in_child(m, s, want));
        ck_assert_int_eq(waitpid(pid, &status, 0), pid);
        ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the child ends with %d",
                      status);
        row.pos++; /* the parent's session goes on */
        ck_assert_int_eq(weft_eval(dg, s, &row, 1), WEFT_OK);
    }
    weft_session_destroy(s);
    ck_assert_float_eq(first_logit(dg, m), want);
    weft_model_close(m);
    weft_diag_destroy(dg);
}
END_TEST

START_TEST(what_a_model_tells)
{
    weft_diag *dg = weft_diag_create();
    weft_model *m = opened(dg, DATA "/gemma2");
    int64_t n = 0;
    double x = 0;
    ck_assert_str_eq(weft_model_name(m), "gemma2");
    ck_assert(weft_model_int(m, "vocab", &n) && n == 320);
    ck_assert(weft_model_float(m, "eps", &x) && x > 0 && x < 1e-5);
    ck_assert(!weft_model_int(m, "nonsense", &n));
    ck_assert_uint_gt(weft_model_bytes(m), 1000);
    ck_assert_int_eq(weft_model_check(dg, m), WEFT_OK);
    weft_model_close(m);
    weft_diag_destroy(dg);
}
END_TEST

START_TEST(errors_say_why_and_change_nothing)
{
    weft_diag *dg = weft_diag_create();
    weft_model *m = NULL;
    weft_session *s = NULL;
    weft_view v;
    ck_assert_int_eq(weft_model_open(dg, DATA "/nowhere", NULL, &m), WEFT_ERR_FILE);
    ck_assert_ptr_null(m);
    ck_assert_ptr_nonnull(strstr(weft_diag_text(dg), "W1001"));
    weft_diag_clear(dg);
    ck_assert_str_eq(weft_diag_text(dg), "");
    m = opened(dg, DATA "/llama-mha");
    const char *const none[] = {"nonsense"};
    ck_assert_int_ne(
        weft_session_create(
            dg, m,
            &(weft_session_options){
                .size = sizeof(weft_session_options), .context = 4, .outputs = none, .n_output = 1},
            &s),
        WEFT_OK);
    ck_assert_int_ne(
        weft_session_create(
            dg, m, &(weft_session_options){.size = sizeof(weft_session_options), .context = -1},
            &s),
        WEFT_OK);
    ck_assert_ptr_null(s);
    ck_assert_int_eq(
        weft_session_create(
            dg, m, &(weft_session_options){.size = sizeof(weft_session_options), .context = 4}, &s),
        WEFT_OK);
    ck_assert_uint_gt(weft_session_bytes(s), 1000);
    ck_assert_int_ne(weft_output(dg, s, "logits", -1, &v), WEFT_OK); /* nothing has run */
    weft_row bad[] = {{.token = 1, .want = true}, {.token = 99999, .pos = 1}};
    ck_assert_int_ne(weft_eval(dg, s, bad, 2), WEFT_OK);
    ck_assert_int_eq(weft_length(NULL, 0), -1);
    ck_assert_uint_eq(weft_session_bytes(NULL), 0);
    ck_assert_int_eq(weft_adapter_rank(NULL), 0);
    weft_prefixes_drop(NULL);
    ck_assert_int_eq(weft_length(s, 0), 0);
    ck_assert_int_eq(weft_eval(dg, s, bad, 1), WEFT_OK);
    ck_assert_int_eq(weft_length(s, 0), 1);
    ck_assert_int_ne(weft_truncate(dg, s, 0, 2), WEFT_OK);
    ck_assert_int_ne(weft_truncate(dg, s, 7, 0), WEFT_OK);
    weft_session_destroy(s);
    weft_model_close(m);
    weft_diag_destroy(dg);
}
END_TEST

/* Nothing where something has to be is an error, not a crash. */
/* A call never has more rows than all sequences hold, whatever is asked for. */
START_TEST(rows_that_cannot_be_used_take_no_memory)
{
    weft_diag *dg = weft_diag_create();
    weft_model *m = opened(dg, DATA "/llama-mha");
    static const int64_t batch[] = {64, 65, 1 << 21, INT32_MAX};
    uint64_t bytes = 0;
    for (size_t i = 0; i < COUNT_OF(batch); i++) {
        weft_session *s = NULL;
        weft_session_options how = {.size = sizeof how,
                                    .context = 32,
                                    .sequences = 2,
                                    .batch = batch[i],
                                    .wants = batch[i]};
        ck_assert_int_eq(weft_session_create(dg, m, &how, &s), WEFT_OK);
        weft_session_info about = {.size = sizeof about};
        ck_assert_int_eq(weft_session_about(dg, s, &about), WEFT_OK);
        ck_assert_int_eq(about.batch, 64);
        bytes = bytes ? bytes : weft_session_bytes(s);
        ck_assert_uint_eq(weft_session_bytes(s), bytes);
        weft_session_destroy(s);
    }
    weft_session *s = NULL;
    weft_session_options many = {.size = sizeof many, .context = 32, .sequences = INT64_MAX};
    ck_assert_int_eq(weft_session_create(dg, m, &many, &s), WEFT_ERR_LIMIT);
    many.sequences = INT32_MAX;
    ck_assert_int_eq(weft_session_create(dg, m, &many, &s), WEFT_ERR_LIMIT);
    weft_model_close(m);
    weft_diag_destroy(dg);
}
END_TEST

/* What state takes is known before there is a session, windows and storage included. */
START_TEST(state_is_told_before)
{
    static const char *const models[] = {DATA "/llama-mha", DATA "/gemma2", DATA "/gpt_oss"};
    weft_diag *dg = weft_diag_create();
    for (size_t i = 0; i < COUNT_OF(models); i++) {
        weft_model *m = opened(dg, models[i]);
        for (int k = 0; k < 8; k++) {
            weft_session *s = NULL;
            weft_session_options how = {.size = sizeof how,
                                        .context = k & 1 ? 200 : 256,
                                        .sequences = k & 2 ? 3 : 0,
                                        .batch = 8,
                                        .kv = k & 4 ? WEFT_KV_F32 : WEFT_KV_AUTO};
            ck_assert_int_eq(weft_session_create(dg, m, &how, &s), WEFT_OK);
            weft_session_info about = {.size = sizeof about};
            ck_assert_int_eq(weft_session_about(dg, s, &about), WEFT_OK);
            ck_assert_uint_eq(weft_state_bytes(m, &how), about.state);
            weft_session_destroy(s);
        }
        weft_session_options huge = {.size = sizeof huge, .context = INT64_MAX};
        ck_assert_uint_eq(weft_state_bytes(m, &huge), UINT64_MAX);
        weft_model_close(m);
    }
    weft_model *m = opened(dg, DATA "/llama-mha");
    ck_assert_int_eq(weft_model_context(m), 256);
    weft_session_options short_one = {.size = sizeof short_one, .context = 64};
    ck_assert_uint_eq(weft_model_token_bytes(m), weft_state_bytes(m, &short_one) / 64);
    weft_session_options rounded = short_one; /* by a card: whatever kernels the processor has */
    rounded.round_bf16 = true;
    setenv("WEFT_CPU", "c", 1);
    ck_assert_uint_eq(weft_state_bytes(m, &rounded), weft_state_bytes(m, &short_one));
    unsetenv("WEFT_CPU");
    weft_model_close(m);
    weft_diag_destroy(dg);
}
END_TEST

START_TEST(calls_without_arguments)
{
    weft_diag *dg = weft_diag_create();
    weft_model *m = NULL;
    weft_session *s = NULL;
    weft_view v;
    ck_assert_int_eq(weft_model_open(dg, NULL, NULL, &m), WEFT_ERR_USAGE);
    ck_assert_ptr_nonnull(strstr(weft_diag_text(dg), "weft_model_open was called without a path"));
    ck_assert_int_eq(weft_model_open(NULL, "x", NULL, &m), WEFT_ERR_USAGE);
    ck_assert_int_eq(weft_model_open_fd(dg, 0, NULL, NULL, &m), WEFT_ERR_USAGE);
    ck_assert_int_eq(weft_model_open_fd(dg, -1, "none", NULL, &m), WEFT_ERR_FILE);
    ck_assert_int_eq(weft_model_open_memory(dg, NULL, 10, "none", NULL, &m), WEFT_ERR_USAGE);
    ck_assert_int_eq(weft_model_open_memory(dg, "", 0, "none", NULL, &m), WEFT_ERR_FORMAT);
    ck_assert_ptr_null(m);
    ck_assert_int_eq(weft_model_check(dg, NULL), WEFT_ERR_USAGE);
    ck_assert_int_eq(weft_session_create(dg, NULL, NULL, &s), WEFT_ERR_USAGE);
    ck_assert_int_eq(weft_eval(dg, NULL, NULL, 1), WEFT_ERR_USAGE);
    ck_assert_int_eq(weft_output(dg, NULL, "logits", -1, &v), WEFT_ERR_USAGE);
    ck_assert_int_eq(weft_truncate(dg, NULL, 0, 0), WEFT_ERR_USAGE);
    ck_assert_int_eq(weft_fork(dg, NULL, 0, 1, 0), WEFT_ERR_USAGE);
    weft_model_close(NULL);
    weft_session_destroy(NULL);
    weft_diag_destroy(NULL);

    m = opened(dg, DATA "/llama-mha");
    const char *const hole[] = {"logits", NULL};
    weft_session_options wrong[] = {
        {.context = 4, .n_output = 1},
        {.context = 4, .n_output = 2, .outputs = hole},
        {.context = 4, .sequences = INT64_MAX},
        {.context = 4, .batch = INT64_MAX},
        {.context = INT32_MAX, .sequences = INT32_MAX, .batch = INT32_MAX},
        {.context = 4, .threads = INT64_MAX},
        {.context = 4, .wants = -1},
        {.context = 4, .exec = (weft_exec)7},
        {.context = 4, .kv = (weft_kv)-1},
        {.context = 4, .plan = "/nowhere"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        weft_diag_clear(dg);
        wrong[i].size = sizeof wrong[i];
        ck_assert_int_ne(weft_session_create(dg, m, &wrong[i], &s), WEFT_OK);
        ck_assert_str_ne(weft_diag_text(dg), "");
    }
    ck_assert_ptr_null(s);
    ck_assert_int_eq(
        weft_session_create(
            dg, m, &(weft_session_options){.size = sizeof(weft_session_options), .context = 4}, &s),
        WEFT_OK);
    weft_row row = {.token = 1, .want = true}, odd = {.token = -1}, far = {.pos = INT32_MAX},
             other = {.seq = INT32_MAX}, slot = {.slot = -1};
    ck_assert_int_eq(weft_eval(dg, s, NULL, 1), WEFT_ERR_USAGE);
    ck_assert_int_ne(weft_eval(dg, s, &row, 0), WEFT_OK);
    ck_assert_int_ne(weft_eval(dg, s, &row, -1), WEFT_OK);
    ck_assert_int_ne(weft_eval(dg, s, &row, INT64_MAX), WEFT_OK);
    ck_assert_int_ne(weft_eval(dg, s, &odd, 1), WEFT_OK);
    ck_assert_int_ne(weft_eval(dg, s, &far, 1), WEFT_OK);
    ck_assert_int_ne(weft_eval(dg, s, &other, 1), WEFT_OK);
    ck_assert_int_ne(weft_eval(dg, s, &slot, 1), WEFT_OK);
    ck_assert_int_eq(weft_output(dg, s, NULL, -1, &v), WEFT_ERR_USAGE);
    ck_assert_int_ne(weft_truncate(dg, s, INT64_MIN, -1), WEFT_OK);
    ck_assert_int_ne(weft_fork(dg, s, 0, INT64_MAX, -1), WEFT_OK);
    ck_assert_int_eq(weft_length(s, 0), 0);
    ck_assert_int_eq(weft_length(s, 1), -1);
    ck_assert_int_eq(weft_length(s, INT64_MIN), -1);
    weft_session_destroy(s);
    weft_model_close(m);
    weft_diag_destroy(dg);
}
END_TEST

/* The logits after `token` at the end of a sequence. */
static float next_logit(weft_diag *dg, weft_session *s, int32_t seq, int32_t token)
{
    weft_row row = {.token = token, .pos = (int32_t)weft_length(s, seq), .seq = seq, .want = true};
    weft_view v;
    ck_assert_int_eq(weft_eval(dg, s, &row, 1), WEFT_OK);
    ck_assert_int_eq(weft_output(dg, s, "logits", -1, &v), WEFT_OK);
    return v.data[7];
}

START_TEST(a_fork_goes_its_own_way)
{
    weft_diag *dg = weft_diag_create();
    weft_model *m = opened(dg, DATA "/gemma2");
    weft_session *s = NULL;
    weft_session_options how = {.size = sizeof how, .context = 16, .sequences = 3};
    ck_assert_int_eq(weft_session_create(dg, m, &how, &s), WEFT_OK);
    float want_9, want_11;
    for (int i = 0; i < 5; i++) {
        next_logit(dg, s, 0, 30 + i);
        next_logit(dg, s, 2, 30 + i);
    }
    want_9 = next_logit(dg, s, 2, 9);
    ck_assert_int_eq(weft_truncate(dg, s, 2, 5), WEFT_OK);
    want_11 = next_logit(dg, s, 2, 11);
    ck_assert_float_ne(want_9, want_11);

    ck_assert_int_eq(weft_fork(dg, s, 0, 1, 5), WEFT_OK);
    ck_assert_int_eq(weft_length(s, 1), 5);
    ck_assert_float_eq(next_logit(dg, s, 1, 11), want_11);
    ck_assert_float_eq(next_logit(dg, s, 0, 9), want_9);  /* it does not see what the fork wrote */
    ck_assert_int_eq(weft_fork(dg, s, 1, 0, 5), WEFT_OK); /* instead of what it held */
    ck_assert_float_eq(next_logit(dg, s, 0, 9), want_9);

    ck_assert_int_eq(weft_fork(dg, s, 0, 3, 1), WEFT_ERR_STATE);
    ck_assert_int_eq(weft_fork(dg, s, -1, 0, 1), WEFT_ERR_STATE);
    ck_assert_int_eq(weft_fork(dg, s, 0, 1, 7), WEFT_ERR_STATE);
    ck_assert_int_eq(weft_fork(dg, s, 0, 1, -1), WEFT_ERR_STATE);
    ck_assert_ptr_nonnull(strstr(weft_diag_text(dg), "W1402"));
    ck_assert_int_eq(weft_length(s, 0), 6);
    ck_assert_int_eq(weft_length(s, 1), 6);
    weft_session_destroy(s);
    weft_model_close(m);
    weft_diag_destroy(dg);
}
END_TEST

/* weft.h spells the statuses out, for strangers; status.def is where they come from. */
START_TEST(statuses_are_alike)
{
    FILE *f = fopen(WEFT_SOURCE_DIR "/runtime/weft.h", "r");
    char line[256];
    int n = 0;
    ck_assert_ptr_nonnull(f);
    while (fgets(line, sizeof line, f)) {
        char *text = strstr(line, "/* ");
        if (strncmp(line, "    WEFT_ERR_", 13) != 0 || !text)
            continue;
        n++;
        const char *says = weft_status_text((weft_status)n);
        ck_assert_msg(strncmp(text + 3, says, strlen(says)) == 0,
                      "status %d: weft.h says %s status.def %s", n, text, says);
    }
    ck_assert_int_eq(n, WEFT_STATUS_COUNT - 1);
    fclose(f);
}
END_TEST

/* A program compiled with another weft.h: its options end earlier, or later. */
START_TEST(options_of_other_versions)
{
    weft_diag *dg = weft_diag_create();
    weft_model *m = opened(dg, DATA "/llama-mha");
    weft_session *s = NULL;
    struct {
        size_t size;
        int64_t context;
    } old = {sizeof old, 7};
    struct {
        weft_session_options known;
        int64_t added;
    } next = {{.size = sizeof next, .context = 7}, 0};
    const void *fine[] = {&old, &next};
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(weft_session_create(dg, m, fine[i], &s), WEFT_OK);
        weft_row row = {.token = 1, .pos = 7};
        ck_assert_int_ne(weft_eval(dg, s, &row, 1), WEFT_OK); /* the context was understood */
        weft_session_destroy(s);
    }
    s = NULL;
    next.added = 1;
    weft_diag_clear(dg);
    ck_assert_int_eq(weft_session_create(dg, m, &next.known, &s), WEFT_ERR_USAGE);
    ck_assert_ptr_nonnull(strstr(weft_diag_text(dg), "newer weft.h"));
    weft_session_options unsized = {.context = 7};
    ck_assert_int_eq(weft_session_create(dg, m, &unsized, &s), WEFT_ERR_USAGE);
    ck_assert_ptr_nonnull(strstr(weft_diag_text(dg), "sizeof"));
    ck_assert_ptr_null(s);
    weft_model *again = NULL;
    struct {
        size_t size;
    } bare = {sizeof bare};
    ck_assert_int_eq(weft_model_open(dg, DATA "/llama-mha", (const void *)&bare, &again), WEFT_OK);
    weft_model_close(again);
    weft_model_close(m);
    weft_diag_destroy(dg);
}
END_TEST

SUITE_MAIN("api", rows_that_cannot_be_used_take_no_memory, state_is_told_before,
           options_of_other_versions, three_ways_to_open, what_a_model_tells,
           a_child_has_sessions_of_its_own, calls_without_arguments,
           errors_say_why_and_change_nothing, a_fork_goes_its_own_way, statuses_are_alike)
