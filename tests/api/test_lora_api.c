/* test_lora_api.c - adapters through the public interface: slots, mixes, generations that carry theirs, what is refused. */
#include "tests/base/suite.h"

#include "runtime/weft.h"

#define MODELS WEFT_SOURCE_DIR "/models"
#define DATA WEFT_SOURCE_DIR "/tests/golden/data"

typedef struct {
    weft_diag *dg;
    weft_model *m;
    weft_tokenizer *t;
    weft_adapter *pirate;
    weft_session *s;
} fixture;

static weft_session *session_of(fixture *f, int64_t slots, int64_t rank)
{
    weft_session *s = NULL;
    weft_session_options o = {.size = sizeof o,
                              .context = 128,
                              .sequences = 3,
                              .lora_slots = slots,
                              .lora_rank = rank,
                              .deterministic = true};
    if (weft_session_create(f->dg, f->m, &o, &s) != WEFT_OK)
        ck_abort_msg("%s", weft_diag_text(f->dg));
    return s;
}

static fixture begin(int64_t slots, int64_t rank)
{
    fixture f = {.dg = weft_diag_create()};
    ck_assert_int_eq(weft_model_open(f.dg, MODELS "/stories-7m", NULL, &f.m), WEFT_OK);
    ck_assert_int_eq(weft_tokenizer_of_model(f.dg, f.m, &f.t), WEFT_OK);
    ck_assert_int_eq(weft_adapter_open(f.dg, f.m, MODELS "/stories-7m-pirate", &f.pirate), WEFT_OK);
    f.s = session_of(&f, slots, rank);
    return f;
}

static void end(fixture *f)
{
    weft_session_destroy(f->s);
    weft_adapter_close(f->pirate);
    weft_tokenizer_close(f->t);
    weft_model_close(f->m);
    weft_diag_destroy(f->dg);
}

static weft_generation *generation_of(fixture *f, int64_t seq, int64_t n)
{
    weft_generation *g = NULL;
    weft_sampler_options pick = {.size = sizeof pick};
    weft_sampler_defaults(&pick);
    pick.temp = 0;
    weft_generation_options o = {.size = sizeof o, .seq = seq, .max_tokens = n, .sampler = &pick};
    if (weft_generation_create(f->dg, f->s, f->t, &o, &g) != WEFT_OK)
        ck_abort_msg("%s", weft_diag_text(f->dg));
    return g;
}

static void ask(fixture *f, weft_generation *g, const char *text)
{
    int32_t *ids;
    size_t n;
    ck_assert_int_eq(weft_encode(f->dg, f->t, text, strlen(text), WEFT_ADD_SPECIAL, &ids, &n),
                     WEFT_OK);
    ck_assert_int_eq(weft_generation_prompt(f->dg, g, ids, n), WEFT_OK);
    weft_free(ids);
}

/* What g says to its prompt; *out_read: tokens of the prompt that had to be evaluated. */
static void answer(fixture *f, weft_generation *g, char *out, size_t room, int64_t *out_read)
{
    size_t n = 0;
    out[0] = 0;
    for (const weft_piece *p = NULL; !p || !p->end;) {
        if (weft_step(f->dg, f->s, &g, 1) != WEFT_OK)
            ck_abort_msg("%s", weft_diag_text(f->dg));
        p = weft_generation_piece(g);
        n += (size_t)snprintf(out + n, room - n, "%.*s", (int)p->bytes, p->text);
        if (out_read)
            *out_read = p->prompt_total;
    }
}

static void use(fixture *f, int64_t seq, int32_t slot, float scale)
{
    weft_lora_use mix = {slot, scale};
    if (weft_lora_attach(f->dg, f->s, seq, &mix, slot > 0) != WEFT_OK)
        ck_abort_msg("%s", weft_diag_text(f->dg));
}

static const char prompt[] = "Once upon a time";

/* Two sequences step together, one with the adapter; what each says does not depend on the other. */
START_TEST(a_wee_lass_and_a_little_girl)
{
    fixture f = begin(2, 8);
    char text[2][400] = {"", ""}, alone[400];
    weft_generation *g[2] = {generation_of(&f, 0, 12), generation_of(&f, 1, 12)};
    ck_assert_int_eq(weft_adapter_rank(f.pirate), 8);
    ck_assert_int_eq(weft_lora_load(f.dg, f.s, 2, f.pirate), WEFT_OK);
    weft_adapter_close(f.pirate); /* the slot has a copy */
    f.pirate = NULL;
    use(&f, 1, 2, 1);
    for (int i = 0; i < 2; i++)
        ask(&f, g[i], prompt);
    for (bool more = true; more;) {
        ck_assert_int_eq(weft_step(f.dg, f.s, g, 2), WEFT_OK);
        more = false;
        for (int i = 0; i < 2; i++) {
            const weft_piece *p = weft_generation_piece(g[i]);
            size_t n = strlen(text[i]);
            snprintf(text[i] + n, sizeof text[i] - n, "%.*s", (int)p->bytes, p->text);
            more = more || !p->end;
        }
    }
    ck_assert_str_eq(text[0], ", there was a little girl named Lily. She loved to");
    ck_assert_str_eq(text[1], ", there was a wee lass named Lily. She");
    ask(&f, g[0], prompt);
    answer(&f, g[0], alone, sizeof alone, NULL);
    ck_assert_str_eq(alone, text[0]);
    for (int i = 0; i < 2; i++)
        weft_generation_destroy(g[i]);
    end(&f);
}
END_TEST

/* What a generation holds was computed with the mix of then: with another one it is evaluated anew, and no text that is kept
 * for others is taken that had one. A fork takes the mix along. */
START_TEST(no_text_of_another_mix)
{
    fixture f = begin(1, 8);
    char plain[400], pirate[400], again[400], other[400];
    int64_t all, read;
    weft_generation *g = generation_of(&f, 0, 12), *h = generation_of(&f, 1, 12);
    ck_assert_int_eq(weft_lora_load(f.dg, f.s, 1, f.pirate), WEFT_OK);
    ask(&f, g, prompt);
    answer(&f, g, plain, sizeof plain, &all);
    ask(&f, g, prompt);
    answer(&f, g, again, sizeof again, &read);
    ck_assert_str_eq(plain, again);
    ck_assert_int_eq(read, 1); /* the last token, for its logits */
    use(&f, 0, 1, 1);
    ask(&f, g, prompt);
    answer(&f, g, pirate, sizeof pirate, &read);
    ck_assert_int_eq(read, all);
    ck_assert_str_ne(plain, pirate);
    ask(&f, h, prompt);
    answer(&f, h, other, sizeof other, NULL);
    ck_assert_str_eq(other, plain);
    ck_assert_int_eq(weft_generation_fork(f.dg, g, h, true), WEFT_OK);
    answer(&f, h, other, sizeof other, NULL);
    ck_assert_str_eq(other, pirate);
    /* Switched in the middle of an answer and back: the text is of two mixes, and of no use to the next. */
    use(&f, 0, 0, 0);
    ask(&f, g, prompt);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(weft_step(f.dg, f.s, &g, 1), WEFT_OK);
    use(&f, 0, 1, 1);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(weft_step(f.dg, f.s, &g, 1), WEFT_OK);
    use(&f, 0, 0, 0);
    ask(&f, g, prompt);
    answer(&f, g, again, sizeof again, NULL);
    ck_assert_str_eq(again, plain);
    weft_generation_destroy(g);
    weft_generation_destroy(h);
    end(&f);
}
END_TEST

static void refused(fixture *f, weft_status got, const char *code, const char *part)
{
    const char *said = weft_diag_text(f->dg);
    if (got == WEFT_OK || !strstr(said, code) || !strstr(said, part))
        ck_abort_msg("expected %s and '%s': %s", code, part, said);
    weft_diag_clear(f->dg);
}

START_TEST(what_is_refused)
{
    fixture f = begin(1, 4);
    weft_model *other = NULL;
    weft_adapter *for_other = NULL;
    weft_session *none = session_of(&f, 0, 0), *wide = session_of(&f, 2, 0);
    weft_lora_use mix = {1, 1}, nine[9] = {{1, 1}};
    weft_row row = {.token = 5, .slot = 1, .want = true};
    ck_assert_int_eq(weft_model_open(f.dg, DATA "/llama-mha", NULL, &other), WEFT_OK);
    ck_assert_int_eq(weft_adapter_open(f.dg, other, DATA "/lora-llama", &for_other), WEFT_OK);
    refused(&f, weft_adapter_open(f.dg, f.m, DATA "/lora-llama", &f.pirate), "W070", "");
    refused(&f, weft_adapter_open(f.dg, f.m, "/nowhere", &f.pirate), "W1001", "/nowhere");
    refused(&f, weft_lora_load(f.dg, f.s, 1, f.pirate), "W0702",
            "has rank 8, the session's slots have room for 4");
    refused(&f, weft_lora_load(f.dg, wide, 1, for_other), "W0702", "another model");
    refused(&f, weft_lora_load(f.dg, none, 1, f.pirate), "W1407", "has no slots");
    refused(&f, weft_lora_load(f.dg, wide, 3, f.pirate), "W1407", "numbered 1 to 2");
    refused(&f, weft_lora_attach(f.dg, wide, 0, &mix, 1), "W1407", "slot 1 is empty");
    refused(&f, weft_eval(f.dg, wide, &row, 1), "W1407", "adapter slot 1");
    ck_assert_int_eq(weft_lora_load(f.dg, wide, 1, f.pirate), WEFT_OK);
    refused(&f, weft_lora_attach(f.dg, wide, 7, &mix, 1), "W1403", "no sequence 7");
    ck_assert_int_eq(weft_lora_attach(f.dg, wide, 2, &mix, 1), WEFT_OK);
    refused(&f, weft_lora_unload(f.dg, wide, 1), "W1417", "in use by sequence 2");
    refused(&f, weft_lora_load(f.dg, wide, 1, f.pirate), "W1417", "in use by sequence 2");
    for (int i = 0; i < 9; i++)
        nine[i] = (weft_lora_use){1, 0.125f}; /* one slot, however often, is one */
    ck_assert_int_eq(weft_lora_attach(f.dg, wide, 2, nine, 9), WEFT_OK);
    ck_assert_int_eq(weft_lora_attach(f.dg, wide, 2, NULL, 0), WEFT_OK);
    ck_assert_int_eq(weft_lora_unload(f.dg, wide, 1), WEFT_OK);
    refused(&f, weft_lora_load(f.dg, NULL, 1, f.pirate), "W1904", "");
    refused(&f, weft_lora_attach(f.dg, wide, 0, NULL, 1), "W1904", "");
    weft_session_info about = {.size = sizeof about};
    ck_assert_int_eq(weft_session_about(f.dg, wide, &about), WEFT_OK);
    ck_assert_int_eq(about.lora_slots, 2);
    ck_assert_int_eq(about.lora_rank, 16);
    ck_assert_uint_gt(about.adapters, 0);
    ck_assert_int_eq(weft_session_about(f.dg, none, &about), WEFT_OK);
    ck_assert_uint_eq(about.adapters, 0);
    weft_adapter_close(for_other);
    weft_session_destroy(none);
    weft_session_destroy(wide);
    weft_model_close(other);
    end(&f);
}
END_TEST

SUITE_MAIN("adapter", a_wee_lass_and_a_little_girl, no_text_of_another_mix, what_is_refused)
