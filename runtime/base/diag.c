/* diag.c - collects diagnostics: each reported once, a bounded number kept. */
#include "runtime/base/diag_impl.h"

#include "runtime/base/mem.h"

enum {
    NOTES_MAX = 16,
    MESSAGE_HEAD = 700, /* a message keeps this much of its beginning */
    MESSAGE_TAIL = 300, /* and this much of its end */
    SEEN_FIRST = 64,
    SEEN_MAX = 1 << 16, /* past this many different ones, repeats are counted again */
};

const diag_row *diag_row_of(weft_code code)
{
    static const diag_row rows[DIAG_CODE_COUNT] = {
#define DIAG(code, status, severity, meaning, hint)                                                \
    [code] = {#code, WEFT_ERR_##status, DIAG_##severity, meaning, hint},
#include "runtime/base/diag.def"
#undef DIAG
    };
    WEFT_ASSERT((unsigned)code < DIAG_CODE_COUNT);
    return &rows[code];
}

weft_diag *diag_create(void)
{
    weft_diag *dg = mem_alloc(sizeof *dg);
    *dg = (weft_diag){.life = mem_life_now()};
    dg->home = arena_create();
    strbuf_start(&dg->scratch);
    return dg;
}

void diag_destroy(weft_diag *dg)
{
    if (!dg)
        return;
    arena_destroy(dg->home);
    strbuf_free(&dg->scratch);
    mem_free(dg->seen);
    mem_free(dg);
}

void diag_reset(weft_diag *dg)
{
    arena_reset(dg->home);
    dg->n_item = 0;
    dg->newest = NULL;
    dg->n_error = dg->n_warning = dg->n_failed = 0;
    if (dg->seen)
        memset(dg->seen, 0, dg->seen_cap * sizeof *dg->seen);
    dg->seen_n = 0;
    dg->short_text[0] = 0;
}

/* A name of a megabyte in a hostile file must not become a message of a megabyte. */
static str keep_message(weft_diag *dg, str s)
{
    if (s.n <= MESSAGE_HEAD + MESSAGE_TAIL)
        return arena_str(dg->home, s);
    size_t head = MESSAGE_HEAD, tail = s.n - MESSAGE_TAIL;
    while (head > MESSAGE_HEAD - 4 && (s.p[head] & 0xC0) == 0x80)
        head--; /* not within a character */
    while (tail < s.n - MESSAGE_TAIL + 4 && (s.p[tail] & 0xC0) == 0x80)
        tail++;
    return arena_printf(dg->home, "%.*s...%.*s", (int)head, s.p, (int)(s.n - tail), s.p + tail);
}

static uint64_t mix(uint64_t h, uint64_t x)
{
    /* The finaliser of splitmix64: every bit of x reaches every bit of the result. */
    h = (h ^ x) + 0x9e3779b97f4a7c15u;
    h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9u;
    h = (h ^ (h >> 27)) * 0x94d049bb133111ebu;
    return h ^ (h >> 31);
}

static uint64_t key_of(weft_code code, diag_severity severity, weft_loc loc, str message)
{
    uint64_t h = mix((uint64_t)severity, (uint64_t)code);
    if (loc.src) /* by its number: a later source may have its address */
        h = mix(mix(h, loc.src->serial), (uint64_t)loc.begin << 32 | loc.end);
    else
        h = mix(h, str_hash(message));
    return h ? h : 1;
}

static uint64_t *seen_slot(uint64_t *seen, size_t cap, uint64_t key)
{
    size_t i = (size_t)key & (cap - 1);
    while (seen[i] != 0 && seen[i] != key)
        i = (i + 1) & (cap - 1);
    return &seen[i];
}

static void seen_grow(weft_diag *dg)
{
    size_t cap = dg->seen_cap ? dg->seen_cap * 2 : SEEN_FIRST;
    uint64_t *seen = mem_alloc_for(dg->life, cap * sizeof *seen);
    memset(seen, 0, cap * sizeof *seen);
    for (size_t i = 0; i < dg->seen_cap; i++)
        if (dg->seen[i] != 0)
            *seen_slot(seen, cap, dg->seen[i]) = dg->seen[i];
    mem_free(dg->seen);
    dg->seen = seen;
    dg->seen_cap = cap;
}

/* The place of a key, with room for it; one that has come before is there. 64 bits make a false "before" improbable enough. */
static uint64_t *seen_place(weft_diag *dg, uint64_t key)
{
    if (dg->seen_n * 2 >= dg->seen_cap && dg->seen_n < SEEN_MAX)
        seen_grow(dg);
    return seen_slot(dg->seen, dg->seen_cap, key);
}

/* Takes all its memory before anything changes: a message for which there is none can be recorded later. */
static void record(weft_diag *dg, weft_code code, diag_severity severity, weft_loc loc,
                   const char *fmt, va_list ap)
{
    size_t *count = severity == DIAG_ERROR ? &dg->n_error : &dg->n_warning;
    diag_item *item = NULL;
    dg->newest = NULL;
    strbuf_reset(&dg->scratch);
    strbuf_vadd(&dg->scratch, fmt, ap);
    str message = strbuf_view(&dg->scratch);
    uint64_t key = key_of(code, severity, loc, message), *place = seen_place(dg, key);
    bool before = *place == key;
    if (!before && *count < DIAG_ERRORS_MAX) {
        item = ARENA_NEW(dg->home, diag_item);
        item->entry = (diag_entry){code, severity, loc, keep_message(dg, message)};
        item->place = diag_place_of(dg->home, &dg->scratch, loc);
        item->notes_end = &item->notes;
    }
    dg->n_failed += severity == DIAG_ERROR;
    *count += !before;
    if (!before && dg->seen_n < SEEN_MAX) {
        *place = key;
        dg->seen_n++;
    }
    if (item) {
        dg->items[dg->n_item++] = item;
        dg->newest = item;
    }
}

weft_status weft_fail(weft_diag *dg, weft_code code, weft_loc loc, const char *fmt, ...)
{
    const diag_row *row = diag_row_of(code);
    va_list ap;
    va_start(ap, fmt);
    record(dg, code, row->severity, loc, fmt, ap);
    va_end(ap);
    return row->status;
}

void weft_warn(weft_diag *dg, weft_code code, weft_loc loc, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    record(dg, code, DIAG_WARNING, loc, fmt, ap);
    va_end(ap);
}

weft_status diag_fail_memory(weft_diag *dg, size_t bytes)
{
    const diag_row *row = diag_row_of(W1110);
    diag_item *item = &dg->short_of;
    dg->n_failed++;
    dg->newest = NULL;
    bool first = dg->short_text[0] == 0;
    if (bytes < PTRDIFF_MAX)
        snprintf(dg->short_text, sizeof dg->short_text,
                 "not enough memory: %zu bytes are not available", bytes);
    else
        snprintf(dg->short_text, sizeof dg->short_text,
                 "not enough memory: more bytes than a process can have");
    *item = (diag_item){.entry = {W1110, row->severity, WEFT_NOWHERE, str_of(dg->short_text)}};
    if (first) {
        dg->items[dg->n_item++] = item;
        dg->n_error++;
    }
    return row->status;
}

static void add_note(weft_diag *dg, weft_loc loc, const char *fmt, va_list ap)
{
    diag_item *item = dg->newest;
    if (!item || item->n_note == NOTES_MAX)
        return;
    strbuf_reset(&dg->scratch);
    strbuf_vadd(&dg->scratch, fmt, ap);
    diag_note *note = ARENA_NEW(dg->home, diag_note);
    note->message = keep_message(dg, strbuf_view(&dg->scratch));
    note->place = diag_place_of(dg->home, &dg->scratch, loc);
    note->same_line =
        loc.src && item->entry.loc.src == loc.src && item->place.line == note->place.line;
    *item->notes_end = note;
    item->notes_end = &note->next;
    item->n_note++;
}

void weft_note(weft_diag *dg, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    add_note(dg, WEFT_NOWHERE, fmt, ap);
    va_end(ap);
}

bool weft_suggest(weft_diag *dg, const str_guess *best)
{
    if (best->name.n)
        weft_note(dg, "did you mean `" STR_FMT "`?", STR_ARG(best->name));
    return best->name.n > 0;
}

bool weft_suggest_word(weft_diag *dg, str want, const char *words)
{
    str_guess best = {0};
    for (const char *p = words; *p; p += strcspn(p, " "), p += *p == ' ')
        str_guess_try(&best, want, word_at(p, 0));
    return weft_suggest(dg, &best);
}

bool weft_suggest_from(weft_diag *dg, str want, const char *const *name, size_t n, size_t stride)
{
    str_guess best = {0};
    str_guess_rows(&best, want, name, n, stride);
    return weft_suggest(dg, &best);
}

void weft_note_at(weft_diag *dg, weft_loc loc, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    add_note(dg, loc, fmt, ap);
    va_end(ap);
}

void diag_note_code(weft_diag *dg, weft_code code, const char *text)
{
    diag_item *newest = dg->newest;
    for (size_t i = 0; i < dg->n_item; i++)
        if (dg->items[i]->entry.code == code) {
            dg->newest = dg->items[i];
            weft_note(dg, "%s", text);
        }
    dg->newest = newest;
}

void diag_keep_first(weft_diag *dg, size_t n)
{
    while (dg->n_item > n) {
        bool error = dg->items[--dg->n_item]->entry.severity == DIAG_ERROR;
        dg->n_error -= error;
        dg->n_failed -= error;
        dg->n_warning -= !error;
        if (dg->items[dg->n_item] == &dg->short_of)
            dg->short_text[0] = 0;
    }
    dg->newest = NULL;
    if (dg->seen) /* what was dropped may be recorded again */
        memset(dg->seen, 0, dg->seen_cap * sizeof *dg->seen);
    dg->seen_n = 0;
}

size_t diag_errors(const weft_diag *dg)
{
    return dg->n_error;
}

size_t diag_failed(const weft_diag *dg)
{
    return dg->n_failed;
}

size_t diag_warnings(const weft_diag *dg)
{
    return dg->n_warning;
}

size_t diag_count(const weft_diag *dg)
{
    return dg->n_item;
}

diag_entry diag_at(const weft_diag *dg, size_t i)
{
    WEFT_ASSERT(i < dg->n_item);
    return dg->items[i]->entry;
}

weft_status diag_status(const weft_diag *dg, size_t from)
{
    weft_status st = WEFT_OK;
    for (size_t i = 0, n = 0; i < dg->n_item && st == WEFT_OK; i++) {
        const diag_entry *e = &dg->items[i]->entry;
        if (e->severity == DIAG_ERROR && n++ >= from)
            st = diag_row_of(e->code)->status;
    }
    return st == WEFT_OK && dg->n_failed > from ? WEFT_ERR_LIMIT : st;
}
