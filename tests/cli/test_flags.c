/* test_flags.c - the flag parser: every kind of row, every way to write a flag, every mistake. */
#include "runtime/cli/flags.h"
#include "tests/base/suite.h"

typedef struct {
    bool verbose, mmap;
    int64_t ubatch, layers, bytes;
    double temp;
    const char *system, *log;
    int color;
    flag_list lora;
} options;

/* clang-format off */
static const flag rows[] = {
    FLAG_ROW_BOOL  (options, verbose, "verbose",      "v",   "say more"),
    FLAG_ROW_SWITCH(options, mmap,    "mmap",         NULL,  "on", "map the file"),
    FLAG_ROW_INT   (options, ubatch,  "ubatch-size",  "ub",  "N", "512", 1, 65536, "tokens per step"),
    FLAG_ROW_INT   (options, layers,  "gpu-layers",   "ngl", "N", "-1", -1, 999, "layers on the GPU"),
    FLAG_ROW_SIZE  (options, bytes,   "cache",        NULL,  "SIZE", "1M", 0, 1e15, "cache size"),
    FLAG_ROW_FLOAT (options, temp,    "temp",         NULL,  "X", "0.8", -2, 2, "temperature"),
    FLAG_ROW_STR   (options, system,  "system",       "sys", "TEXT", NULL, "system prompt"),
    FLAG_ROW_STR   (options, log,     "log-file",     NULL,  "FILE", NULL, "log"),
    FLAG_ROW_CHOICE(options, color,   "color",        NULL,  "auto|always|never", "auto", "colour"),
    FLAG_ROW_LIST  (options, lora,    "lora",         NULL,  "FILE", "an adapter"),
    FLAG_ROW_END   (options),
};
/* clang-format on */

static options got;
static weft_diag *dg;
static char *argv[32];
static int operand_n;

static void setup(void)
{
    got = (options){0};
    dg = diag_create();
}

static void teardown(void)
{
    flags_deinit(&(flag_set){rows, &got}, 1);
    ck_assert_uint_eq(got.lora.n, 0);
    diag_destroy(dg);
}

/* Words are separated by single blanks; an empty one stands for an empty argument. */
static weft_status parse(const char *line)
{
    static char text[512];
    snprintf(text, sizeof text, "%s", line);
    int n = 0;
    for (char *at = text; at && *line;) {
        argv[n++] = at;
        at = strchr(at, ' ');
        if (at)
            *at++ = '\0';
    }
    flag_set set = {rows, &got};
    flags_init(&set, 1);
    return flags_parse(dg, "run", &set, 1, n, argv, &operand_n);
}

static void accept(const char *line)
{
    ck_assert_msg(parse(line) == WEFT_OK, "refused: %s", line);
}

static void refuse(const char *line, weft_code code, const char *message)
{
    diag_reset(dg);
    ck_assert_msg(parse(line) == WEFT_ERR_USAGE, "accepted: %s", line);
    ck_assert_uint_eq(diag_count(dg), 1);
    diag_entry e = diag_at(dg, 0);
    ck_assert_int_eq(e.code, code);
    ck_assert_msg(str_eqz(e.message, message), "%s: " STR_FMT, line, STR_ARG(e.message));
}

START_TEST(defaults_come_from_the_table)
{
    setup();
    accept("");
    ck_assert(!got.verbose && got.mmap);
    ck_assert_int_eq(got.ubatch, 512);
    ck_assert_int_eq(got.layers, -1);
    ck_assert_int_eq(got.bytes, 1 << 20);
    ck_assert(got.temp == 0.8);
    ck_assert_ptr_null(got.system);
    ck_assert_int_eq(got.color, 0);
    ck_assert_uint_eq(got.lora.n, 0);
    ck_assert_int_eq(operand_n, 0);
    teardown();
}
END_TEST

START_TEST(every_way_to_write_a_flag)
{
    setup();
    accept("-v -ub 64 -ngl=99 --temp 1.5 --system=be\tkind --color always --no-mmap --cache 3G");
    ck_assert(got.verbose && !got.mmap);
    ck_assert_int_eq(got.ubatch, 64);
    ck_assert_int_eq(got.layers, 99);
    ck_assert(got.temp == 1.5);
    ck_assert_str_eq(got.system, "be\tkind");
    ck_assert_int_eq(got.color, 1);
    ck_assert_int_eq(got.bytes, INT64_C(3) << 30);
    teardown();
}
END_TEST

START_TEST(operands_keep_their_order)
{
    setup();
    accept("a -v b - --temp 1 c -- --verbose -ub --");
    ck_assert_int_eq(operand_n, 7);
    static const char *const want[] = {"a", "b", "-", "c", "--verbose", "-ub", "--"};
    for (int i = 0; i < 7; i++)
        ck_assert_str_eq(argv[i], want[i]);
    teardown();
}
END_TEST

START_TEST(values_may_begin_with_a_dash)
{
    setup();
    accept("-ngl -1 --temp -0.5 -sys -hello --log-file -");
    ck_assert_int_eq(got.layers, -1);
    ck_assert(got.temp == -0.5);
    ck_assert_str_eq(got.system, "-hello");
    ck_assert_str_eq(got.log, "-");
    accept("--system=--verbose");
    ck_assert_str_eq(got.system, "--verbose");
    ck_assert(!got.verbose);
    accept("--system=a=b");
    ck_assert_str_eq(got.system, "a=b");
    accept("--system=");
    ck_assert_str_eq(got.system, "");
    teardown();
}
END_TEST

START_TEST(a_list_may_stand_often)
{
    setup();
    accept("--lora a --lora=b x --lora c");
    ck_assert_uint_eq(got.lora.n, 3);
    ck_assert_str_eq(got.lora.at[0], "a");
    ck_assert_str_eq(got.lora.at[2], "c");
    ck_assert_int_eq(operand_n, 1);
    teardown();
}
END_TEST

START_TEST(sizes_have_units)
{
    setup();
    static const struct {
        const char *line;
        int64_t want;
    } cases[] = {
        {"--cache 0", 0},
        {"--cache 7", 7},
        {"--cache 2k", 2048},
        {"--cache 2K", 2048},
        {"--cache 1T", INT64_C(1) << 40},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        accept(cases[i].line);
        ck_assert_int_eq(got.bytes, cases[i].want);
    }
    teardown();
}
END_TEST

START_TEST(unknown_flags)
{
    setup();
    refuse("--verbos", W1902, "run: unknown flag --verbos");
    refuse("-x", W1902, "run: unknown flag -x");
    refuse("-vv", W1902, "run: unknown flag -vv");
    refuse("-ub512", W1902, "run: unknown flag -ub512");
    refuse("--no-verbose", W1902, "run: unknown flag --no-verbose");
    refuse("--ubatch_size=4", W1902, "run: unknown flag --ubatch_size");
    refuse("--=1", W1902, "run: unknown flag --");
    refuse("-8", W1902, "run: unknown flag -8");
    teardown();
}
END_TEST

START_TEST(missing_and_repeated_values)
{
    setup();
    refuse("-ub", W1903, "run: -ub needs a value: N");
    refuse("--log-file --verbose", W1903, "run: --log-file needs a value: FILE");
    refuse("--log-file -v", W1903, "run: --log-file needs a value: FILE");
    refuse("--log-file --", W1903, "run: --log-file needs a value: FILE");
    refuse("-v --verbose", W1903, "run: --verbose is given twice");
    refuse("--mmap --no-mmap", W1903, "run: --no-mmap is given twice");
    refuse("--temp 1 --temp=1", W1903, "run: --temp is given twice");
    refuse("--verbose=yes", W1903, "run: --verbose takes no value");
    teardown();
}
END_TEST

START_TEST(wrong_values)
{
    setup();
    static const char int_want[] = "run: -ub takes a whole number from 1 to 65536, not '%s'";
    static const char *const ints[] = {"0",   "65537", "-1",  "1k", "1.5",
                                       "0x1", "abc",   "1e3", "",   "99999999999999999999"};
    for (size_t i = 0; i < sizeof ints / sizeof *ints; i++) {
        char line[64], want[128];
        snprintf(line, sizeof line, "-ub %s", ints[i]);
        snprintf(want, sizeof want, int_want, ints[i]);
        refuse(line, W1903, want);
    }
    static const char float_want[] = "run: --temp takes a number from -2 to 2, not '%s'";
    static const char *const floats[] = {"nan", "inf", "2.1", "0x1", "1.5f", "", "-", "1e999"};
    for (size_t i = 0; i < sizeof floats / sizeof *floats; i++) {
        char line[64], want[128];
        snprintf(line, sizeof line, "--temp=%s", floats[i]);
        snprintf(want, sizeof want, float_want, floats[i]);
        refuse(line, W1903, want);
    }
    refuse("--color alwys", W1903, "run: --color takes one of auto|always|never, not 'alwys'");
    refuse("--cache 9999999T", W1903,
           "run: --cache takes a whole number from 0 to 1000000000000000, with k, M, G or T, "
           "not '9999999T'");
    refuse("--cache 1kB", W1903,
           "run: --cache takes a whole number from 0 to 1000000000000000, with k, M, G or T, "
           "not '1kB'");
    teardown();
}
END_TEST

START_TEST(help_is_aligned_and_wrapped)
{
    setup();
    strbuf out = {0};
    flags_print(rows, 72, &out);
    ck_assert_ptr_nonnull(strstr(out.p, "  -v, --verbose                  say more\n"));
    ck_assert_ptr_nonnull(
        strstr(out.p, "      --[no-]mmap                map the file (default: on)\n"));
    ck_assert_ptr_nonnull(strstr(out.p, " -ub, --ubatch-size N "));
    for (const char *line = out.p; *line;) {
        size_t n = strcspn(line, "\n");
        ck_assert_uint_le(n, 72);
        line += n + (line[n] == '\n');
    }
    strbuf_reset(&out);
    flags_wrap("one two three", 4, 4, 12, &out);
    ck_assert_str_eq(out.p, "one two\n    three");
    strbuf_free(&out);
    teardown();
}
END_TEST

SUITE_MAIN("flags", defaults_come_from_the_table, every_way_to_write_a_flag,
           operands_keep_their_order, values_may_begin_with_a_dash, a_list_may_stand_often,
           sizes_have_units, unknown_flags, missing_and_repeated_values, wrong_values,
           help_is_aligned_and_wrapped)
