/* test_tok_image.c - the suites of tok_image.c and chat_image.c: images that are damaged, in every place. That tokenizers are
 * the same after the way there and back, test_tok_goldens.c shows with all recorded cases. */
#include "runtime/text/chat_image.h"
#include "runtime/text/tok_image.h"
#include "tests/base/suite.h"
#include "tests/text/goldens.h"
#include <dirent.h>

#define CORPUS WEFT_SOURCE_DIR "/tests/fuzz/corpus/tokenizer"

/* The image of a tokenizer.json of the corpus; n is 0 where it is none. */
static strbuf image_of(weft_diag *dg, const char *file)
{
    char path[512];
    strbuf image = {0};
    tok *t;
    snprintf(path, sizeof path, "%s/%s", CORPUS, file);
    strbuf json = golden_read(path);
    if (tok_open_text(dg, file, strbuf_view(&json), &t) == WEFT_OK) {
        tok_image_write(t, &image);
        tok_close(t);
    }
    diag_reset(dg);
    strbuf_free(&json);
    return image;
}

/* Encode and decode something with all that a damaged image may be about. */
static void use(weft_diag *dg, tok *t)
{
    tok_ids ids = {0};
    strbuf out = {0};
    str text = STR("Hello \xc3\xa9 w\xe2\x96\x81rld 12345 ## <s> \xf0\x9f\x98\x80 aab");
    if (tok_encode(dg, t, text, TOK_ENCODE_DEFAULT, &ids) == WEFT_OK) {
        weft_status st = tok_decode(dg, t, ids.at, ids.n, false, &out);
        ck_assert(st == WEFT_OK || diag_errors(dg) > 0);
    }
    strbuf_free(&out);
    VEC_FREE(&ids);
}

/* A copy that ends where the bytes do, so that sanitizers see who reads on. */
static void try_image(weft_diag *dg, const char *bytes, size_t n, bool must_fail)
{
    char *copy = malloc(n + !n);
    tok *t = NULL;
    memcpy(copy, bytes, n);
    weft_status st = tok_image_open(dg, "a program", (str){copy, n}, &t);
    ck_assert(!must_fail || st == WEFT_ERR_TOKENIZER);
    ck_assert(st == WEFT_OK || diag_errors(dg) > 0);
    if (st == WEFT_OK)
        use(dg, t);
    tok_close(t);
    diag_reset(dg);
    free(copy);
}

static void damage(const char *file)
{
    weft_diag *dg = diag_create();
    strbuf image = image_of(dg, file);
    for (size_t n = 0; n < image.n; n++)
        try_image(dg, image.p, n, true);
    for (size_t i = 0; i < image.n; i++) {
        static const unsigned char changes[] = {0x01, 0x80, 0xff};
        for (size_t k = 0; k < COUNT_OF(changes); k++) {
            image.p[i] = (char)((unsigned char)image.p[i] ^ changes[k]);
            try_image(dg, image.p, image.n, i < 8);
            image.p[i] = (char)((unsigned char)image.p[i] ^ changes[k]);
        }
    }
    strbuf_free(&image);
    diag_destroy(dg);
}

START_TEST(damaged_images_are_refused_or_harmless)
{
    static const char *const files[] = {"byte_level.json", "byte_fallback.json", "unigram.json",
                                        "wordpiece.json", "others.json"};
    damage(files[_i]);
}
END_TEST

START_TEST(messages_say_what_and_where)
{
    weft_diag *dg = diag_create();
    strbuf image = image_of(dg, "byte_level.json");
    tok *t = NULL;
    ck_assert_uint_gt(image.n, 100);
    ck_assert_int_eq(tok_image_open(dg, "a program", (str){image.p, 30}, &t), WEFT_ERR_TOKENIZER);
    ck_assert_ptr_nonnull(strstr(diag_shown(dg), "tokens, near byte"));
    diag_reset(dg);
    strbuf_putc(&image, 'x');
    ck_assert_int_eq(tok_image_open(dg, "a program", strbuf_view(&image), &t), WEFT_ERR_TOKENIZER);
    ck_assert_ptr_nonnull(strstr(diag_shown(dg), "1 bytes follow its end"));
    diag_reset(dg);
    image.p[4]++;
    ck_assert_int_eq(tok_image_open(dg, "a program", strbuf_view(&image), &t), WEFT_ERR_TOKENIZER);
    ck_assert_ptr_nonnull(strstr(diag_shown(dg), "another kind or version"));
    ck_assert_ptr_null(t);
    strbuf_free(&image);
    diag_destroy(dg);
}
END_TEST

START_TEST(the_same_tokenizer_gives_the_same_bytes)
{
    weft_diag *dg = diag_create();
    strbuf a = image_of(dg, "unigram.json"), b = image_of(dg, "unigram.json"), c = {0};
    tok *t;
    ck_assert(str_eq(strbuf_view(&a), strbuf_view(&b)));
    ck_assert_int_eq(tok_image_open(dg, "a program", strbuf_view(&a), &t), WEFT_OK);
    tok_image_write(t, &c);
    ck_assert(str_eq(strbuf_view(&a), strbuf_view(&c)));
    tok_close(t);
    strbuf_free(&a);
    strbuf_free(&b);
    strbuf_free(&c);
    diag_destroy(dg);
}
END_TEST

/* ---- chat templates ---- */

static strbuf render(weft_diag *dg, const chat_template *ct)
{
    arena *a = arena_create();
    strbuf out = {0};
    const chat_message said[] = {{STR("system"), STR("Be brief.")}, {STR("user"), STR("Hi")}};
    value messages = chat_messages(a, said, 2);
    chat_request rq = {.messages = &messages, .generate = true};
    ck_assert_int_eq(chat_render(dg, ct, &rq, &out), WEFT_OK);
    arena_destroy(a);
    return out;
}

/* Those of real models, without what their folders say of special tokens. */
START_TEST(templates_of_models_are_the_same)
{
    weft_diag *dg = diag_create();
    DIR *d = opendir(WEFT_SOURCE_DIR "/tests/text/data/templates");
    int n = 0;
    ck_assert_ptr_nonnull(d);
    for (struct dirent *e; (e = readdir(d));) {
        char path[600];
        chat_template *ct, *again;
        strbuf image = {0}, second = {0};
        if (!str_ends(str_of(e->d_name), STR(".jinja")))
            continue;
        snprintf(path, sizeof path, "%s/tests/text/data/templates/%s", WEFT_SOURCE_DIR, e->d_name);
        ck_assert_int_eq(chat_open_file(dg, NULL, path, &ct), WEFT_OK);
        chat_image_write(ct, &image);
        ck_assert_int_eq(chat_image_open(dg, "a program", strbuf_view(&image), NULL, &again),
                         WEFT_OK);
        chat_image_write(again, &second);
        ck_assert(str_eq(strbuf_view(&image), strbuf_view(&second)));
        for (size_t i = 0; i < image.n; i += 1 + image.n / 200) { /* changed here and there */
            chat_template *other = NULL;
            image.p[i] = (char)((unsigned char)image.p[i] ^ 0x91);
            weft_status st = chat_image_open(dg, "a program", strbuf_view(&image), NULL, &other);
            ck_assert(st == WEFT_OK || diag_errors(dg) > 0);
            image.p[i] = (char)((unsigned char)image.p[i] ^ 0x91);
            chat_close(other);
            diag_reset(dg);
        }
        chat_close(ct);
        chat_close(again);
        strbuf_free(&image);
        strbuf_free(&second);
        n++;
    }
    closedir(d);
    ck_assert_int_gt(n, 5);
    diag_destroy(dg);
}
END_TEST

START_TEST(templates_are_the_same_after_the_way_there_and_back)
{
    weft_diag *dg = diag_create();
    for (size_t i = 0; i < chat_builtin_count(); i++) {
        chat_template *ct, *again, *other;
        strbuf image = {0}, second = {0};
        ck_assert_int_eq(chat_open(dg, NULL, chat_builtin_name(i), &ct), WEFT_OK);
        chat_image_write(ct, &image);
        ck_assert_int_eq(chat_image_open(dg, "a program", strbuf_view(&image), NULL, &again),
                         WEFT_OK);
        chat_image_write(again, &second);
        ck_assert(str_eq(strbuf_view(&image), strbuf_view(&second)));
        ck_assert_str_eq(chat_origin(ct), chat_origin(again));
        strbuf a = render(dg, ct), b = render(dg, again);
        ck_assert(str_eq(strbuf_view(&a), strbuf_view(&b)));
        ck_assert_int_eq(chat_image_open(dg, "a program", strbuf_view(&image), "chatml", &other),
                         WEFT_OK);
        ck_assert_str_eq(chat_origin(other), "chatml (built in)");
        for (size_t n = 1; n < image.n; n++) {
            chat_template *none = NULL;
            ck_assert_int_eq(chat_image_open(dg, "a program", (str){image.p, n}, NULL, &none),
                             WEFT_ERR_TEMPLATE);
            diag_reset(dg);
        }
        ck_assert_int_eq(chat_image_open(dg, "a program", STR(""), NULL, &other),
                         WEFT_ERR_TEMPLATE);
        diag_reset(dg);
        chat_close(ct);
        chat_close(again);
        chat_close(other);
        strbuf_free(&image);
        strbuf_free(&second);
        strbuf_free(&a);
        strbuf_free(&b);
    }
    diag_destroy(dg);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("tok_image");
    tcase_set_timeout(tc, 300);
    tcase_add_loop_test(tc, damaged_images_are_refused_or_harmless, 0, 5);
    tcase_add_test(tc, messages_say_what_and_where);
    tcase_add_test(tc, the_same_tokenizer_gives_the_same_bytes);
    tcase_add_test(tc, templates_of_models_are_the_same);
    tcase_add_test(tc, templates_are_the_same_after_the_way_there_and_back);
    return suite_run("tok_image", tc, SUITE_FORK);
}
