/* tok_image.c - tokens, models and ids of a tokenizer to bytes and back; the steps around them are in tok_image_steps.c. */
#include "runtime/text/tok_image.h"

#include "runtime/base/mem.h"
#include "runtime/text/text_parts.h"
#include "runtime/text/tok_image_impl.h"

enum { VERSION = 1 };
static const char magic[4] = {'W', 'T', 'O', 'K'};

/* ---- tokens ---- */

/* One number for each token: the bytes of its text, its flags, and what else there is to it. */
enum {
    HEAD_LEN_BITS = 17,
    HEAD_FLAGS = HEAD_LEN_BITS, /* 8 bits */
    HEAD_HOLE = 1 << 25,
};
_Static_assert(VOCAB_TEXT_MAX < 1 << HEAD_LEN_BITS, "a text fits");

static uint32_t head_of(const tok_vocab *v, size_t id)
{
    const vocab_token *t = &v->tokens.at[id];
    if (!t->text.p)
        return HEAD_HOLE;
    return (uint32_t)t->text.n | t->flags << HEAD_FLAGS;
}

static void write_texts(strbuf *out, const tok_vocab *v)
{
    for (size_t id = 0; id < v->tokens.n; id++)
        if (v->tokens.at[id].text.p)
            strbuf_put(out, v->tokens.at[id].text);
}

/* Heads, then all texts one after the other. */
static void write_vocab(image_io *x, const tok_vocab *v)
{
    strbuf texts = {0};
    (void)io_count(x, v->tokens.n, 4, VOCAB_ID_MAX + 1);
    for (size_t id = 0; id < v->tokens.n; id++) {
        uint32_t head = head_of(v, id);
        io_u32(x, &head);
    }
    write_texts(&texts, v);
    str all = strbuf_view(&texts);
    io_blob(x, &all);
    strbuf_free(&texts);
}

static void read_token(tok_image *i, tok_vocab *v, size_t id, uint32_t head, str all, size_t *at)
{
    image_io *x = &i->io;
    size_t n = head & ((1u << HEAD_LEN_BITS) - 1);
    uint32_t flags = head >> HEAD_FLAGS & 0xff;
    vocab_token *token = &v->tokens.at[id];
    if (head & HEAD_HOLE) {
        io_check(x, head == HEAD_HOLE, "has a token that is none");
        return;
    }
    bool fine = n <= VOCAB_TEXT_MAX && n <= all.n - *at && head >> 25 == 0 &&
                flags <= (TOKEN_SPECIAL | TOKEN_ADDED | TOKEN_BYTE | TOKEN_UNUSED);
    if (!fine) {
        io_fault(x, "has a token that cannot be");
        return;
    }
    str text = n ? (str){all.p + *at, n} : STR("");
    /* All of them together are UTF-8; so is each that begins and ends with a character. */
    io_check(x, !n || ((unsigned char)text.p[0] & 0xc0) != 0x80, "has a text that is not UTF-8");
    *at += n;
    *token = (vocab_token){text, text, flags};
    if (n > v->text_max)
        v->text_max = n;
}

static void read_vocab(tok_image *i, tok_vocab *v)
{
    image_io *x = &i->io;
    size_t n = io_count(x, 0, 4, VOCAB_ID_MAX + 1), at = 0, bad;
    const char *heads = x->in.p + x->at;
    x->at += n * sizeof(uint32_t);
    str all;
    io_blob(x, &all);
    io_check(x, all.n <= UINT32_MAX && uni_check(all, &bad), "has a text that is not UTF-8");
    if (x->fault)
        return;
    v->tokens.at = mem_alloc(mem_product(n + 1, sizeof *v->tokens.at));
    memset(v->tokens.at, 0, (n + 1) * sizeof *v->tokens.at);
    v->tokens.n = n;
    v->tokens.cap = n + 1;
    for (size_t id = 0; id < n && !x->fault; id++) {
        uint32_t head;
        memcpy(&head, heads + id * sizeof head, sizeof head);
        read_token(i, v, id, head, all, &at);
    }
    io_check(x, at == all.n, "has texts that no token has");
}

/* Tokens that decoders see otherwise than they are written. */
static void shown_io(tok_image *i)
{
    image_io *x = &i->io;
    tok_vocab *v = &i->t->vocab;
    size_t n = 0;
    for (size_t id = 0; id < v->tokens.n && !io_reads(x); id++)
        n += !str_eq(v->tokens.at[id].text, v->tokens.at[id].shown);
    n = io_count(x, n, 8, VOCAB_ID_MAX + 1);
    for (size_t k = 0, next = 0; k < n && !x->fault; k++) {
        while (!io_reads(x) && str_eq(v->tokens.at[next].text, v->tokens.at[next].shown))
            next++;
        int32_t id = (int32_t)next++;
        io_i32(x, &id, 0, (int32_t)v->tokens.n - 1);
        if (x->fault)
            return;
        io_text(x, &v->tokens.at[id].shown, VOCAB_SOUGHT_MAX);
        io_check(x, v->tokens.at[id].text.p, "shows a token that is none");
    }
}

/* Places of a table for n items: at most three quarters are taken, and one is free. */
static uint8_t table_bits(size_t n)
{
    uint8_t bits = 4;
    while (((size_t)1 << bits) * 3 / 4 <= n)
        bits++;
    return bits;
}

/* And how many may be taken one after the other: what is looked up stops at a free one. Tables of ours have hundreds at most. */
enum { TABLE_BITS_MAX = 28, RUN_MAX = 4096 };

static bool places_have_gaps(const int32_t *table, size_t n)
{
    size_t run = 0;
    for (size_t k = 0; k < n && run <= RUN_MAX; k++)
        run = table[k] == VOCAB_NONE ? 0 : run + 1;
    return run <= RUN_MAX;
}

/* Texts to ids, ready to be used. */
static void places_io(tok_image *i)
{
    image_io *x = &i->io;
    tok_vocab *v = &i->t->vocab;
    uint8_t bits = table_bits(v->tokens.n);
    int32_t *table = NULL;
    io_u8(x, &bits);
    io_check(x, bits <= TABLE_BITS_MAX, "has a table that cannot be");
    if (x->fault)
        return;
    size_t n = (size_t)1 << bits;
    if (!io_reads(x)) {
        table = mem_alloc(mem_product(n, sizeof *table));
        vocab_place(v, table, n);
    }
    const int32_t *placed = io_table(x, i->t->home, table, n, sizeof *table);
    mem_free(table);
    if (!io_reads(x) || x->fault)
        return;
    io_check(x, v->tokens.n > 0, "are none");
    io_check(x, places_have_gaps(placed, n), "have a table without gaps");
    v->placed = placed;
    v->n_place = n;
}

static void image_vocab(tok_image *i)
{
    i->io.part = "tokens";
    if (io_reads(&i->io))
        read_vocab(i, &i->t->vocab);
    else
        write_vocab(&i->io, &i->t->vocab);
    shown_io(i);
    places_io(i);
}

/* ---- added tokens ---- */

/* The text of a node's token is its way from the root, gathered in `text`. */
static void write_added(image_io *x, const tok_added *a, uint32_t node, strbuf *text)
{
    const added_node *at = &a->nodes.at[node];
    if (at->token >= 0) {
        added_token token = a->tokens.at[at->token];
        str s = strbuf_view(text);
        io_i32(x, &token.id, 0, VOCAB_ID_MAX);
        io_u32(x, &token.flags);
        io_blob(x, &s);
    }
    for (uint32_t child = at->child; child; child = a->nodes.at[child].next) {
        strbuf_putc(text, (char)a->nodes.at[child].byte);
        write_added(x, a, child, text);
        text->n--;
    }
}

static size_t count_added(const tok_added *a)
{
    size_t n = 0;
    for (size_t i = 0; i < a->nodes.n; i++)
        n += a->nodes.at[i].token >= 0;
    return n;
}

static void write_added_all(image_io *x, const tok_added *a)
{
    strbuf text = {0};
    (void)io_count(x, count_added(a), 12, VOCAB_ID_MAX + 1);
    for (int byte = 0; byte < 256; byte++) {
        if (!a->first[byte])
            continue;
        strbuf_putc(&text, (char)byte);
        write_added(x, a, a->first[byte], &text);
        text.n--;
    }
    strbuf_free(&text);
}

static void read_added_all(tok_image *i, tok_added *a)
{
    image_io *x = &i->io;
    size_t n = io_count(x, 0, 12, VOCAB_ID_MAX + 1);
    for (size_t k = 0; k < n && !x->fault; k++) {
        added_token token;
        str text;
        io_i32(x, &token.id, 0, (int32_t)i->t->vocab.tokens.n - 1);
        io_u32(x, &token.flags);
        io_text(x, &text, VOCAB_SOUGHT_MAX);
        io_check(x, token.flags < 2 * ADDED_SINGLE_WORD && text.n, "has a token that cannot be");
        if (!x->fault)
            added_put(a, text, token);
    }
}

static void image_added(tok_image *i)
{
    tok_added *both[] = {&i->t->added, &i->t->added_norm};
    i->io.part = "added tokens";
    for (int k = 0; k < 2; k++)
        if (io_reads(&i->io))
            read_added_all(i, both[k]);
        else
            write_added_all(&i->io, both[k]);
}

/* ---- models ---- */

/* An id of a token, or VOCAB_NONE. */
static void id_io(tok_image *i, int32_t *id)
{
    io_i32(&i->io, id, VOCAB_NONE, (int32_t)i->t->vocab.tokens.n - 1);
}

/* Merges as bpe.pairs has them. A half may be a character without a token, see bpe.extra. */
static const char *pairs_fault(const bpe_pair *table, size_t cap, int64_t tokens, int64_t halves,
                               size_t *out_n)
{
    size_t n = 0, run = 0;
    for (size_t k = 0; k < cap; k++) {
        const bpe_pair *p = &table[k];
        run = p->left == VOCAB_NONE ? 0 : run + 1;
        if (run > RUN_MAX)
            return "has a table without gaps";
        if (run == 0)
            continue;
        n++;
        if (p->left < 0 || p->left >= halves || p->right < 0 || p->right >= halves || p->id < 0 ||
            p->id >= tokens || p->rank >= INT32_MAX)
            return "has a merge that cannot be";
    }
    *out_n = n;
    return n < cap ? NULL : "has a table without an end";
}

static void pairs_io(tok_image *i, bpe *b)
{
    image_io *x = &i->io;
    uint8_t bits = table_bits(b->n);
    bpe_pair *table = NULL;
    io_u8(x, &bits);
    io_check(x, bits <= TABLE_BITS_MAX, "has a table that cannot be");
    if (x->fault)
        return;
    size_t cap = (size_t)1 << bits;
    if (!io_reads(x)) {
        table = mem_alloc(mem_product(cap, sizeof *table));
        bpe_pairs_place(b, table, cap);
    }
    const bpe_pair *pairs = io_table(x, i->t->home, table, cap, sizeof *table);
    mem_free(table);
    if (!io_reads(x) || x->fault)
        return;
    int64_t tokens = (int64_t)i->t->vocab.tokens.n;
    const char *fault = pairs_fault(pairs, cap, tokens, tokens + (int64_t)b->extra.n, &b->n);
    io_check(x, !fault, fault);
    b->pairs = (bpe_pair *)(uintptr_t)pairs;
    b->cap = cap;
    b->borrowed = true;
}

static void extra_io(tok_image *i, bpe *b)
{
    image_io *x = &i->io;
    size_t n = io_count(x, b->extra.n, 5, VOCAB_ID_MAX);
    b->extra_first = (int32_t)i->t->vocab.tokens.n;
    for (size_t k = 0; k < n && !x->fault; k++) {
        str text = io_reads(x) ? STR("") : b->extra.at[k];
        io_text(x, &text, 4);
        io_check(x, text.n && text.n == uni_len(text.p[0]), "has a character that is none");
        if (!io_reads(x) || x->fault)
            continue;
        VEC_PUSH(&b->extra, text);
        vocab_map_add(&b->extra_map, text, b->extra_first + (int32_t)k);
    }
}

static void bpe_io(tok_image *i)
{
    image_io *x = &i->io;
    bpe *b = &i->t->bpe;
    io_bool(x, &b->byte_fallback);
    io_bool(x, &b->fuse_unk);
    io_bool(x, &b->ignore_merges);
    id_io(i, &b->unk);
    io_text(x, &b->prefix, FIELDS_AFFIX_MAX);
    io_text(x, &b->suffix, FIELDS_AFFIX_MAX);
    for (int k = 0; k < 256; k++)
        id_io(i, &b->fallback[k]);
    extra_io(i, b);
    pairs_io(i, b);
}

static void unigram_io(tok_image *i)
{
    image_io *x = &i->io;
    unigram *u = &i->t->unigram;
    tok_vocab *v = &i->t->vocab;
    io_bool(x, &u->byte_fallback);
    id_io(i, &u->unk);
    io_u32(x, &u->skip);
    size_t n = io_count(x, u->scores.n, sizeof(double), VOCAB_ID_MAX + 1);
    for (size_t k = 0; k < n; k++) {
        double score = io_reads(x) ? 0 : u->scores.at[k];
        io_raw(x, &score, sizeof score);
        io_check(x, score == score, "has a score that is no number");
        if (io_reads(x))
            VEC_PUSH(&u->scores, score);
    }
    io_check(x, v->text_max <= VOCAB_SOUGHT_MAX || !io_reads(x), "has a token that is too long");
    if (io_reads(x) && !x->fault)
        unigram_finish(u, v, u->skip);
}

static void wordpiece_io(tok_image *i)
{
    enum { WORD_CHARS_MAX = 1 << 16 };
    wordpiece *w = &i->t->wordpiece;
    io_text(&i->io, &w->prefix, FIELDS_AFFIX_MAX);
    io_size(&i->io, &w->chars_max, WORD_CHARS_MAX);
    id_io(i, &w->unk);
}

static void image_model(tok_image *i)
{
    static void (*const io[])(tok_image * i) = {
        [TOK_BPE] = bpe_io, [TOK_UNIGRAM] = unigram_io, [TOK_WORDPIECE] = wordpiece_io};
    uint8_t model = (uint8_t)i->t->model;
    i->io.part = "model";
    io_u8(&i->io, &model);
    io_check(&i->io, model <= TOK_WORDPIECE, "is of no kind");
    if (i->io.fault)
        return;
    i->t->model = (tok_model)model;
    io[model](i);
}

/* ---- ids with a meaning ---- */

static void ids_io(tok_image *i, tok_ids *ids)
{
    enum { IDS_MAX = 4096 };
    size_t n = io_count(&i->io, ids->n, sizeof(int32_t), IDS_MAX);
    for (size_t k = 0; k < n && !i->io.fault; k++) {
        int32_t id = io_reads(&i->io) ? 0 : ids->at[k];
        io_i32(&i->io, &id, 0, (int32_t)i->t->vocab.tokens.n - 1);
        if (io_reads(&i->io) && !i->io.fault)
            VEC_PUSH(ids, id);
    }
}

static void image_ids(tok_image *i)
{
    i->io.part = "special tokens";
    ids_io(i, &i->t->before);
    ids_io(i, &i->t->after);
    ids_io(i, &i->t->ends);
    for (int k = 0; k < TOK_NAMED_COUNT; k++)
        id_io(i, &i->t->named[k]);
    if (!i->t->chat_template.p)
        i->t->chat_template = STR("");
    io_blob(&i->io, &i->t->chat_template);
}

static void image_all(tok_image *i)
{
    i->io.part = "header";
    io_head(&i->io, magic, VERSION);
    image_vocab(i);
    image_norms(i);
    image_pres(i);
    image_decs(i);
    image_added(i);
    image_model(i);
    image_ids(i);
}

void tok_image_write(const tok *t, strbuf *out)
{
    tok copy = *t; /* writing changes no more than empty texts in it */
    tok_image i = {.io = {.out = out, .base = out->n}, .t = &copy};
    image_all(&i);
    WEFT_ASSERT(!i.io.fault);
}

static bool added_needs_tables(const tok_added *a)
{
    for (size_t i = 0; i < a->tokens.n; i++)
        if (a->tokens.at[i].flags & ADDED_SINGLE_WORD)
            return true;
    return false;
}

bool tok_needs_tables(const tok *t)
{
    bool needs = added_needs_tables(&t->added) || added_needs_tables(&t->added_norm);
    for (size_t i = 0; i < t->norms.n && !needs; i++)
        needs = norm_needs_tables(&t->norms.at[i]);
    for (size_t i = 0; i < t->pres.n && !needs; i++)
        needs = pre_needs_tables(&t->pres.at[i]);
    return needs;
}

weft_status tok_image_open(weft_diag *dg, const char *name, str bytes, tok **out_tok)
{
    tok *t = tok_create();
    tok_image i = {.io = {.in = bytes}, .t = t, .dg = dg};
    image_all(&i);
    if (i.status == WEFT_OK)
        i.status = io_done(dg, &i.io, W1203, name, "tokenizer");
    if (i.status == WEFT_OK && tok_needs_tables(t) && !uni_tables_here())
        i.status = weft_fail(dg, W1203, WEFT_NOWHERE,
                             "%s: the tokenizer needs Unicode's tables, which this program was "
                             "linked without",
                             name);
    return tok_hand_over(dg, i.status, t, out_tok);
}
