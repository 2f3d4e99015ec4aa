/* serve_request.h - a request of the server as C data: every field read, checked and within its limits.
 *
 *     arena *a = arena_create();
 *     serve_request rq;
 *     if (serve_request_read(dg, a, SERVE_CHAT, body, &rules, &rq) != WEFT_OK)
 *         status = serve_error_write(dg, rq.fault_param, &json);     HTTP status, and OpenAI's error object
 *
 * The bytes may be anybody's. A field that is not in serve_fields.def is refused by name (W1822), and so is one that Weft knows
 * and does not do (W1825): nothing is ignored. A field that is null counts as absent, as OpenAI's clients mean it.
 *
 * No socket, session, tokenizer or template is needed here: what a request says is one thing, what the model makes of it
 * another. Who does what: the HTTP layer reads the request with this, renders messages by the chat template and encodes texts
 * (both may be done by any thread), compiles grammars, and queues token ids; the scheduler sees ids, `sampler`, `stops` and the
 * numbers below. All that a serve_request points to lives in the arena that it was read with. */
#ifndef WEFT_RUNTIME_HTTP_SERVE_REQUEST_H
#define WEFT_RUNTIME_HTTP_SERVE_REQUEST_H

#include "runtime/base/diag.h"
#include "runtime/formats/value.h"
#include "runtime/sample/sample.h"

/* What is asked for. The bits select rows of serve_fields.def. */
typedef enum {
    SERVE_CHAT = 1,        /* POST /v1/chat/completions */
    SERVE_COMPLETION = 2,  /* POST /v1/completions */
    SERVE_EMBEDDING = 4,   /* POST /v1/embeddings */
    SERVE_RESPONSE = 8,    /* POST /v1/responses, its text part */
    SERVE_TOKENIZE = 16,   /* POST /tokenize */
    SERVE_DETOKENIZE = 32, /* POST /detokenize */
    SERVE_TEMPLATE = 64,   /* POST /apply-template */
    SERVE_GENERATES = SERVE_CHAT | SERVE_COMPLETION | SERVE_RESPONSE,
} serve_kind;

/* What one request may hold at most, whatever the server's settings. */
enum {
    SERVE_VALUES_MAX = 1 << 18, /* JSON values in a body: token ids count one each */
    SERVE_DEPTH_MAX = 64,
    SERVE_MESSAGES_MAX = 4096,
    SERVE_PROMPTS_MAX = 256, /* of one completion or embedding request */
    SERVE_CHOICES_MAX = 64,  /* n, best_of */
    SERVE_STOPS_MAX = 16,
    SERVE_STOP_BYTES_MAX = 1024,
    SERVE_BIAS_MAX = 4096,
    SERVE_LOGPROBS_MAX = 20,
    SERVE_TOOLS_MAX = 128,
    SERVE_TOOL_NAME_MAX = 64,          /* letters, digits, _ and -, as OpenAI has it */
    SERVE_GRAMMAR_BYTES_MAX = 1 << 20, /* a regular expression or GBNF text */
    SERVE_WORD_MAX = 512,              /* model, user, names */
};

/* A text to continue or embed: text, or ids where ids is not NULL. */
typedef struct {
    str text;
    const int32_t *ids;
    size_t n_id;
} serve_prompt;

/* A function that the model may call. */
typedef struct {
    str name, description;
    const value *parameters; /* its JSON schema, an object; NULL: it takes none */
    bool strict;             /* arguments must keep to the schema: they are generated under it */
} serve_tool;

typedef enum {
    SERVE_TOOLS_NONE,     /* no tools, or tool_choice "none": they are not even rendered */
    SERVE_TOOLS_AUTO,     /* text or calls, as the model likes */
    SERVE_TOOLS_REQUIRED, /* one call at least */
    SERVE_TOOLS_ONE,      /* a call of tool_one */
} serve_tool_choice;

/* What an answer must look like. */
typedef enum {
    SERVE_FORMAT_TEXT,    /* anything */
    SERVE_FORMAT_JSON,    /* response_format json_object: any JSON object */
    SERVE_FORMAT_SCHEMA,  /* json_schema: schema below */
    SERVE_FORMAT_REGEX,   /* "regex": text below */
    SERVE_FORMAT_GRAMMAR, /* "grammar": GBNF, text below */
} serve_format_kind;

typedef struct {
    serve_format_kind kind;
    str name;            /* of a schema */
    const value *schema; /* an object or a boolean, as JSON has it; not looked into here */
    str text;
    bool strict;
} serve_format;

typedef struct {
    serve_kind kind;

    /* ---- what ---- */
    str model;   /* as the client wrote it; empty: it wrote none */
    int adapter; /* row of rules.adapters, -1: the bare model */
    const value *
        messages; /* SERVE_CHAT, SERVE_RESPONSE, SERVE_TEMPLATE: for chat_request.messages. Contents are strings or
                             * null; arguments of earlier tool calls are objects, as templates want them. */
    const value *tools;     /* for chat_request.tools, as OpenAI writes them; NULL: none */
    const value *documents; /* chat_request.documents, or NULL */
    const value *
        variables; /* chat_request.overrides: chat_template_kwargs and reasoning_effort; NULL: none */
    const value *
        metadata; /* SERVE_RESPONSE: an object of strings that goes back with the answer; NULL: none */
    bool effort;    /* reasoning_effort is among `variables` */
    bool no_answer; /* add_generation_prompt false: end behind the last message */
    const serve_prompt
        *prompts; /* SERVE_COMPLETION, SERVE_EMBEDDING, SERVE_TOKENIZE, SERVE_DETOKENIZE (ids) */
    size_t n_prompt;

    /* ---- how ---- */
    sampler_options
        sampler; /* rules.sampler, with what the request says; bias is in the arena. Choice i of n has seed + i. */
    bool seeded;                /* false: the server chooses a seed, different for each request */
    int64_t max_tokens;         /* of an answer; 0: until something else ends it */
    int64_t min_tokens;         /* no end token before this many; 0: none */
    const str *stops;           /* end an answer and are not shown; none is empty */
    const char *const *stops_z; /* the same, NUL-terminated: without NUL inside */
    size_t n_stop;
    bool ignore_end;      /* go on after an end token */
    int64_t n;            /* choices of each prompt, from 1 */
    int64_t best_of;      /* generate this many and give the n likeliest; at least n */
    bool logprobs;        /* of the tokens that come, and of */
    int64_t top_logprobs; /* this many of the likeliest */
    bool echo;            /* SERVE_COMPLETION: the prompt too; not together with logprobs */
    serve_format format;
    const serve_tool *tool_at; /* the tools, checked */
    size_t n_tool;
    serve_tool_choice tool_choice;
    int tool_one;             /* row of tool_at, with SERVE_TOOLS_ONE */
    bool parallel_tool_calls; /* several calls in one answer; false: it ends behind the first */
    int64_t
        dimensions; /* SERVE_EMBEDDING: the first so many numbers, scaled to length 1 again; 0: all */
    bool base64;    /* SERVE_EMBEDDING: numbers as base64 of little-endian f32 */

    /* ---- to whom, and when ---- */
    int priority;       /* -100 to 100, larger first; a key may allow less (rules.priority_max) */
    int64_t timeout_ms; /* from its arrival; 0: never */
    bool stream;
    bool stream_usage; /* the last event has the counts */

    /* ---- SERVE_TOKENIZE, SERVE_DETOKENIZE ---- */
    bool add_special, parse_special; /* as WEFT_ADD_SPECIAL, WEFT_PARSE_SPECIAL */
    bool with_pieces;                /* the text of each token beside its id */
    bool skip_special;               /* SERVE_DETOKENIZE: special tokens are not shown */

    /* On failure: the field that is wrong ("messages[2].content"), in the arena; empty where the whole body is. */
    str fault_param;
} serve_request;

/* What a request is held against. */
typedef struct {
    const char *model;           /* its name in /v1/models */
    const char *const *adapters; /* names; a request's model is MODEL, MODEL:ADAPTER or ADAPTER */
    size_t n_adapter;
    sampler_options sampler; /* where a request says nothing; serve_sampler_defaults */
    int64_t vocab;           /* ids in prompts and logit_bias are below it; 0: not known */
    size_t body_max;         /* bytes */
    int64_t choices_max;     /* prompts times best_of of one request; 0: SERVE_CHOICES_MAX */
    int priority_max;        /* a request that asks for more is refused */
    bool no_chat;            /* it has no chat template; for /v1/models */
    int64_t timeout_ms;      /* of a request that says nothing; 0: none */
} serve_rules;

/* OpenAI's defaults, which clients count on: temperature 1, top_p 1, and no other step. */
sampler_options serve_sampler_defaults(void);

/* Reads and checks a body. On failure out_rq->fault_param is set, and dg has the reason (serve_error.h). */
weft_status serve_request_read(weft_diag *dg, arena *a, serve_kind kind, str body,
                               const serve_rules *rules, serve_request *out_rq) WEFT_MUST_USE;

/* Names of all fields that a kind takes or refuses, for help, tests and the fuzzer's dictionary. NULL past the end. */
typedef struct {
    const char *name;
    int kinds;           /* bits of serve_kind */
    const char *refused; /* NULL: it works; else why not */
} serve_field_row;
const serve_field_row *serve_field_at(size_t i);

#endif
