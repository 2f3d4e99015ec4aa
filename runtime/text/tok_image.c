/* tok_image.c - tokens, models and ids of a tokenizer to bytes and back; the steps around them are in tok_image_steps.c. */
#include "runtime/text/tok_image.h"

#include "runtime/base/mem.h"
#include "runtime/text/tok_image_impl.h"
#include "runtime/text/tok_unicode.h"
#include <stdlib.h>

enum { VERSION = 1 };
static const char magic[4] = {'W', 'T', 'O', 'K'};

/* ---- tokens ---- */

/* One number for each token: the bytes of its text, its flags, and what else there is to it. */
enum {
    HEAD_LEN_BITS = 17,
    HEAD_FLAGS = HEAD_LEN_BITS, /* 8 bits */
    HEAD_HOLE = 1 << 25,
    HEAD_FOUND = 1 << 26, /* its text means it, not another token with the same text */
};
_Static_assert(VOCAB_TEXT_MAX < 1 << HEAD_LEN_BITS, "a text fits");

static uint32_t head_of(const tok_vocab *v, size_t id)
{
    const vocab_token *t = &v->tokens.at[id];
    if (!t->text.p)
        return HEAD_HOLE;
    bool found = t->text.n && vocab_find(v, t->text) == (int32_t)id;
    return (uint32_t)t->text.n | t->flags << HEAD_FLAGS | (found ? HEAD_FOUND : 0);
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
    bool fine = n <= VOCAB_TEXT_MAX && n <= all.n - *at && head >> 27 == 0 &&
                flags <= (TOKEN_SPECIAL | TOKEN_ADDED | TOKEN_BYTE | TOKEN_UNUSED) &&
                (n || !(head & HEAD_FOUND));
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
    if (head & HEAD_FOUND)
        vocab_map_add(&v->map, text, (int32_t)id);
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
    vocab_map_reserve(&v->map, n);
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

static void image_vocab(tok_image *i)
{
    i->io.part = "tokens";
    if (io_reads(&i->io))
        read_vocab(i, &i->t->vocab);
    else
        write_vocab(&i->io, &i->t->vocab);
    shown_io(i);
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

static int by_rank(const void *a, const void *b)
{
    const bpe_pair *x = a, *y = b;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    if (x->left != y->left)
        return x->left < y->left ? -1 : 1;
    return (x->right > y->right) - (x->right < y->right);
}

/* By rank, so that the same merges give the same bytes. */
static void write_pairs(image_io *x, const bpe *b)
{
    bpe_pair *list = mem_alloc(mem_product(b->n + 1, sizeof *list));
    size_t n = 0;
    for (size_t k = 0; k < b->cap; k++)
        if (b->pairs[k].left != VOCAB_NONE)
            list[n++] = b->pairs[k];
    qsort(list, n, sizeof *list, by_rank);
    (void)io_count(x, n, sizeof *list, UINT32_MAX);
    io_raw(x, list, n * sizeof *list);
    mem_free(list);
}

/* left, right, rank and id of each. A half may be a character without a token, see bpe.extra. */
static void read_pairs(tok_image *i, bpe *b)
{
    image_io *x = &i->io;
    size_t n = io_count(x, 0, sizeof(bpe_pair), UINT32_MAX);
    int64_t tokens = (int64_t)i->t->vocab.tokens.n, halves = tokens + (int64_t)b->extra.n;
    bpe_pairs_reserve(b, n);
    for (size_t k = 0; k < n; k++) {
        bpe_pair p;
        io_raw(x, &p, sizeof p);
        if (p.left < 0 || p.left >= halves || p.right < 0 || p.right >= halves || p.id < 0 ||
            p.id >= tokens || p.rank >= INT32_MAX) {
            io_fault(x, "has a merge that cannot be");
            return;
        }
        bpe_add_pair(b, p.left, p.right, p.rank, p.id);
    }
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
    if (io_reads(x))
        read_pairs(i, b);
    else
        write_pairs(x, b);
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
    tok_image i = {.io = {.out = out}, .t = &copy};
    image_all(&i);
    WEFT_ASSERT(!i.io.fault);
}

weft_status tok_image_open(weft_diag *dg, const char *name, str bytes, tok **out_tok)
{
    tok *t = tok_create();
    tok_image i = {.io = {.in = bytes}, .t = t, .dg = dg};
    image_all(&i);
    if (i.status == WEFT_OK)
        i.status = io_done(dg, &i.io, W1203, name, "tokenizer");
    return tok_hand_over(dg, i.status, t, out_tok);
}
