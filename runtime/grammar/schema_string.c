/* schema_string.c - strings: length, pattern, format.
 *
 * A pattern or format is a regular expression of what the string says; JSON's own escapes are put in by regex.c. */
#include "runtime/grammar/schema_impl.h"

/* clang-format off */
#define HOUR   "([01][0-9]|2[0-3])"
#define MINUTE "[0-5][0-9]"
#define TIME   HOUR ":" MINUTE ":" MINUTE "(\\.[0-9]{1,9})?(Z|[+-]" HOUR ":" MINUTE ")"
#define DATE   "[0-9]{4}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8]))"
#define BYTE   "(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
#define LABEL  "[A-Za-z0-9]{1,31}(-[A-Za-z0-9]{1,15}){0,2}" /* at most 63 */
#define HEX4   "[0-9a-fA-F]{1,4}"
#define HOST   LABEL "(\\." LABEL "){0,3}"
#define UUID   "[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"
#define IPV4   BYTE "(\\." BYTE "){3}"
#define EMAIL  "[A-Za-z0-9_+-]{1,32}(\\.[A-Za-z0-9_+-]{1,15}){0,2}@" LABEL "(\\." LABEL "){0,2}\\.[A-Za-z]{2,15}"
#define URI    "https?://" HOST "(:[1-9][0-9]{0,3})?(/[A-Za-z0-9._~-]*)*(\\?[A-Za-z0-9._~=&-]*)?(#[A-Za-z0-9._~-]*)?"
#define BASE64 "([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?"

/* Each gives only texts that the format allows, not all of them: no 29th of February, no quoted mail addresses. */
static const struct {
    const char *name, *regex;
} formats[] = {
    {"date",      DATE},
    {"time",      TIME},
    {"date-time", DATE "T" TIME},
    {"duration",  "P([0-9]{1,4}W|([0-9]{1,4}Y)?([0-9]{1,4}M)?[0-9]{1,4}D(T[0-9]{1,4}H([0-9]{1,4}M([0-9]{1,4}S)?)?)?|T[0-9]{1,4}(H|M|S))"},
    {"uuid",      UUID},
    {"uuid4",     "[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"}, /* pydantic's */
    {"email",     EMAIL},
    {"idn-email", EMAIL},
    {"hostname",  HOST},
    {"idn-hostname", HOST},
    {"ipv4",      IPV4},
    {"ipv6",      "(" HEX4 ":){7}" HEX4},
    {"ipvanyaddress", IPV4},
    {"uri",       URI},
    {"iri",       URI},
    {"url",       URI},
    {"uri-reference", URI},
    {"iri-reference", URI},
    {"json-pointer", "(/[A-Za-z0-9._-]*)*"},
    {"byte",      BASE64}, /* OpenAPI's */
    {"base64",    BASE64},
    {"password",  NULL}, /* any text */
    {"binary",    NULL},
    {"path",      NULL},
    {"file-path", NULL},
    {"directory-path", NULL},
};

/* Patterns that cannot be compiled but are in wide use, and an expression all of whose texts match. */
static const struct {
    const char *pattern, *regex;
} known[] = {
    /* z.email() of zod 4 */
    {"^(?!\\.)(?!.*\\.\\.)([A-Za-z0-9_'+\\-\\.]*)[A-Za-z0-9_+-]@([A-Za-z0-9][A-Za-z0-9\\-]*\\.)+[A-Za-z]{2,}$", EMAIL},
};
/* clang-format on */

static weft_status content(schema *s, const schema_at *at, str regex, bool search, const part **out)
{
    regex_source r = {.text = regex, .json = true, .search = search, .depth_max = s->depth_max};
    weft_status st = regex_part(s->dg, s->f, &r, out);
    if (st != WEFT_OK) {
        strbuf path = {0};
        schema_path(&path, at);
        weft_note(s->dg, "in " STR_FMT " of %s: `" STR_FMT "`", STR_ARG(strbuf_view(&path)),
                  s->name, STR_ARG(regex));
        strbuf_free(&path);
    }
    return st;
}

static weft_status read_format(schema *s, const schema_at *at, const value *v, const part **out)
{
    str name;
    if (!value_str(v, &name))
        return schema_fail(s, W1801, at, "format is not a string");
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (str_eqz(name, formats[i].name)) {
            *out = NULL;
            return formats[i].regex ? content(s, at, str_of(formats[i].regex), false, out)
                                    : WEFT_OK;
        }
    weft_status st =
        schema_fail(s, W1802, at, "format `" STR_FMT "` is not supported", STR_ARG(name));
    if (!SUGGEST_ROW(s->dg, name, formats, sizeof formats / sizeof *formats))
        weft_note(s->dg, "pattern can describe any text");
    return st;
}

static weft_status read_pattern(schema *s, const schema_at *at, const value *v, const part **out)
{
    str regex;
    if (!value_str(v, &regex))
        return schema_fail(s, W1801, at, "pattern is not a string");
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (str_eqz(regex, known[i].pattern))
            return content(s, at, str_of(known[i].regex), false, out);
    return content(s, at, regex, true, out);
}

weft_status schema_string(schema *s, const schema_at *at, const value *v, const part **out)
{
    const value *pattern = value_get(v, STR("pattern")), *format = value_get(v, STR("format"));
    const part *inside = NULL, *quote = part_text(s->f, "\"");
    int64_t min, max;
    WEFT_TRY(schema_count(s, at, v, "minLength", 0, &min));
    WEFT_TRY(schema_count(s, at, v, "maxLength", REPEAT_NO_END, &max));
    bool counted = min > 0 || max != REPEAT_NO_END;
    /* A format constrains nothing in draft 2020-12, so a pattern beside it says all there is. */
    if (pattern)
        WEFT_TRY(read_pattern(s, SCHEMA_AT(at, STR("pattern")), pattern, &inside));
    else if (format)
        WEFT_TRY(read_format(s, SCHEMA_AT(at, STR("format")), format, &inside));
    if (max != REPEAT_NO_END && max < min) {
        *out = part_never(s->f);
        return WEFT_OK;
    }
    if (!inside && !counted) {
        *out = part_rule(s->f, s->string);
        return WEFT_OK;
    }
    if (!inside)
        inside = part_repeat(s->f, s->text_char, min, max);
    else if (counted)
        inside = part_of_length(s->f, inside, min, max);
    if (!inside)
        return schema_fail(s, W1802, at,
                           "this %s together with minLength and maxLength is not supported; a "
                           "pattern such as ^[a-z]{2,8}$ says both",
                           pattern ? "pattern" : "format");
    /* A rule, so that what its states allow is worked out once. */
    int32_t rule = form_rule_add(s->f, STR(""), WEFT_NOWHERE);
    s->f->rules.at[rule].body = PART_SEQ_OF(s->f, quote, inside, quote);
    *out = part_rule(s->f, rule);
    return WEFT_OK;
}
