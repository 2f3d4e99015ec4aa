/* answer_small.c - answers that no text is generated for: embeddings, token ids, texts, the list of models. */
#include "runtime/http/answer_impl.h"

#include <math.h>

/* The first rq->dimensions numbers, scaled to length 1 again. */
static double row_scale(const float *row, int64_t n, int64_t width)
{
    double sum = 0;
    if (n == width)
        return 1;
    for (int64_t i = 0; i < n; i++)
        sum += (double)row[i] * (double)row[i];
    return sum > 0 ? 1 / sqrt(sum) : 1;
}

static void write_base64(const float *row, int64_t n, double scale, strbuf *out)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    uint32_t bits = 0;
    int have = 0;
    strbuf_putc(out, '"');
    for (int64_t i = 0; i < n; i++) {
        float x = (float)((double)row[i] * scale);
        uint32_t u;
        memcpy(&u, &x, sizeof u);
        for (int k = 0; k < 4; k++, u >>= 8) {
            bits = bits << 8 | (u & 0xff);
            if (++have < 3)
                continue;
            for (int s = 18; s >= 0; s -= 6)
                strbuf_putc(out, digits[bits >> s & 63]);
            bits = 0;
            have = 0;
        }
    }
    if (have) {
        bits <<= 8 * (3 - have);
        for (int s = 18, k = 0; k < 4; s -= 6, k++)
            strbuf_putc(out, k <= have ? digits[bits >> s & 63] : '=');
    }
    strbuf_putc(out, '"');
}

/* ---- embeddings ---- */

static void embedding_body(answer *a)
{
    json_writer w = {.out = a->out};
    int64_t prompt, cached, generated, most = a->rq->dimensions;
    json_open(&w, '{');
    json_key_text(&w, "object", "list");
    json_key_open(&w, "data", '[');
    for (size_t i = 0; i < a->n_choice; i++) {
        const answer_choice *c = &a->choice[i];
        int64_t keep = most && most < c->n_vector ? most : c->n_vector;
        double scale = row_scale(c->vector, keep, c->n_vector);
        json_open(&w, '{');
        json_key_text(&w, "object", "embedding");
        json_key_int(&w, "index", (int64_t)i);
        json_key(&w, "embedding");
        if (a->rq->base64) {
            write_base64(c->vector, keep, scale, a->out);
            w.comma = true;
        } else {
            json_open(&w, '[');
            for (int64_t k = 0; k < keep; k++)
                json_double(&w, (double)c->vector[k] * scale);
            json_close(&w, ']');
        }
        json_close(&w, '}');
    }
    json_close(&w, ']');
    answer_usage_counts(a, &prompt, &cached, &generated);
    json_key_text(&w, "model", a->facts.model);
    json_key_open(&w, "usage", '{');
    json_key_int(&w, "prompt_tokens", prompt);
    json_key_int(&w, "total_tokens", prompt);
    json_close(&w, '}');
    json_close(&w, '}');
}

/* Nothing streams: the request has no such field. */
const answer_route answer_route_embedding = {.id_prefix = "emb-", .body = embedding_body};

/* ---- the rest ---- */

void answer_tokens(const int32_t *ids, size_t n, const serve_request *rq,
                   str (*token_text)(void *, int32_t), void *ctx, strbuf *out)
{
    json_writer w = {.out = out};
    json_open(&w, '{');
    if (!rq->with_pieces) {
        json_key_ids(&w, "tokens", ids, n);
    } else {
        json_key_open(&w, "tokens", '[');
        for (size_t i = 0; i < n; i++) {
            json_open(&w, '{');
            json_key_int(&w, "id", ids[i]);
            json_key_str(&w, "piece", token_text(ctx, ids[i]));
            json_close(&w, '}');
        }
        json_close(&w, ']');
    }
    json_close(&w, '}');
}

void answer_text(const char *name, str text, strbuf *out)
{
    json_writer w = {.out = out};
    json_open(&w, '{');
    json_key_str(&w, name, text);
    json_close(&w, '}');
}

static void write_model(const serve_rules *rules, const char *id, const char *parent,
                        int64_t created, int64_t context, json_writer *w)
{
    json_open(w, '{');
    json_key_text(w, "id", id);
    json_key_text(w, "object", "model");
    json_key_int(w, "created", created);
    json_key_text(w, "owned_by", "weft");
    json_key_int(w, "max_model_len", context);
    json_key_bool(w, "chat", !rules->no_chat); /* Weft's own */
    if (parent)
        json_key_text(w, "parent", parent);
    json_close(w, '}');
}

void answer_models(const serve_rules *rules, int64_t created, int64_t context, strbuf *out)
{
    json_writer w = {.out = out};
    strbuf name = {0};
    json_open(&w, '{');
    json_key_text(&w, "object", "list");
    json_key_open(&w, "data", '[');
    write_model(rules, rules->model, NULL, created, context, &w);
    for (size_t i = 0; i < rules->n_adapter; i++) {
        strbuf_reset(&name);
        strbuf_add(&name, "%s:%s", rules->model, rules->adapters[i]);
        write_model(rules, name.p, rules->model, created, context, &w);
    }
    json_close(&w, ']');
    json_close(&w, '}');
    strbuf_free(&name);
}
