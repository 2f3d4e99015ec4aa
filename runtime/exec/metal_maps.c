/* metal_maps.c - a function for each distinct map of a plan, in which everything but operands and rows is a number. */
#include "runtime/exec/metal_maps.h"

#include "runtime/base/mem.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

bool metal_maps_are_off(void)
{
    const char *given = getenv("WEFT_METAL_MAPS");
    return given && strcmp(given, "off") == 0;
}

void metal_maps_init(metal_maps *m)
{
    *m = (metal_maps){.all = true};
    m->at = mem_alloc((METAL_MAPS_MAX + 1) * sizeof *m->at);
    m->at[0] = 0;
}

void metal_maps_deinit(metal_maps *m)
{
    strbuf_free(&m->bodies);
    mem_free(m->at);
    *m = (metal_maps){0};
}

/* col / inner % n, without what changes nothing. */
static void put_part(strbuf *b, int64_t elems, int64_t inner, int64_t n)
{
    if (inner == 1 && n == elems) {
        strbuf_add(b, "col");
        return;
    }
    strbuf_add(b, "(int)((uint)col");
    if (inner > 1)
        strbuf_add(b, " / %" PRId64 "u", inner);
    if (inner * n < elems)
        strbuf_add(b, " %% %" PRId64 "u", n);
    strbuf_add(b, ")");
}

/* The place of an element in an input, from the first of its row on: axes that follow on each other are one. */
static void put_place(strbuf *b, const kargs *k, int input)
{
    int64_t inner = 1; /* elements of the axes behind */
    for (int axis = k->choice.map.axes; axis > 0;) {
        const int64_t stride = k->stride[input][axis];
        int64_t n = k->size.map.dim[axis - 1];
        for (axis--;
             axis > 0 && (k->stride[input][axis] == stride * n || k->size.map.dim[axis - 1] == 1);
             axis--)
            n *= k->size.map.dim[axis - 1];
        if (stride != 0 && n > 1) {
            strbuf_add(b, " + ");
            put_part(b, k->size.map.elems, inner, n);
            strbuf_add(b, " * %" PRId64, stride);
        }
        inner *= n;
    }
}

/* The element of every input that is loaded, before anything is computed: loads that wait for each other take as long each. */
static void put_loads(strbuf *b, const kargs *k, const kinstr *code)
{
    uint32_t done = 0;
    for (int64_t i = 0; i < k->n_code; i++) {
        const int input = code[i].at[0];
        if (code[i].op != MAP_load || done >> input & 1)
            continue;
        done |= 1u << input;
        strbuf_add(b, "    const float x%d = map_in(k, %d)[(long)row * %" PRId64, input, input,
                   k->stride[input][0]);
        put_place(b, k, input);
        strbuf_add(b, "];\n");
    }
}

/* Its bits: infinities have no other words. */
static void put_float(strbuf *b, float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    strbuf_add(b, "float_of(0x%08" PRIx32 "u)", bits);
}

static void put_instr(strbuf *b, const kinstr *c)
{
    static const struct {
        const char *name;
        int operands;
    } ops[] = {
#define MAP(name, n) {"MAP_" #name, n},
#include "kernels/map.def"
#undef MAP
    };
    if (c->op == MAP_load) {
        strbuf_add(b, "    r%d = x%d;\n", c->to, c->at[0]);
        return;
    }
    if (c->op == MAP_store) {
        strbuf_add(b, "    map_store(k, %d, row, col, r%d);\n", c->to, c->at[0]);
        return;
    }
    strbuf_add(b, "    r%d = map_compute(%s, ", c->to, ops[c->op].name);
    put_float(b, c->f[0]);
    strbuf_add(b, ", ");
    put_float(b, c->f[1]);
    for (int i = 0; i < 3; i++)
        if (i < ops[c->op].operands)
            strbuf_add(b, ", r%d", c->at[i]);
        else
            strbuf_add(b, ", 0.0f");
    strbuf_add(b, ");\n");
}

static void put_body(strbuf *b, const kargs *k, const kinstr *code)
{
    int regs = 0;
    put_loads(b, k, code);
    for (int64_t i = 0; i < k->n_code; i++)
        if (code[i].op != MAP_store && code[i].to >= regs)
            regs = code[i].to + 1;
    for (int i = 0; i < regs; i++)
        strbuf_add(b, "    float r%d = 0.0f;\n", i);
    for (int64_t i = 0; i < k->n_code; i++)
        put_instr(b, &code[i]);
}

int32_t metal_maps_add(metal_maps *m, const kargs *k, const kinstr *code)
{
    if (m->n == METAL_MAPS_MAX) {
        m->all = false;
        return -1;
    }
    strbuf body = {0};
    int32_t i = 0;
    put_body(&body, k, code);
    while (i < m->n && (m->at[i + 1] - m->at[i] != body.n ||
                        memcmp(m->bodies.p + m->at[i], body.p, body.n) != 0))
        i++;
    if (i == m->n) {
        strbuf_put(&m->bodies, strbuf_view(&body));
        m->at[++m->n] = m->bodies.n;
    }
    strbuf_free(&body);
    return i;
}

void metal_maps_text(const metal_maps *m, strbuf *out)
{
    if (m->n == 0)
        return;
    strbuf_add(out, "/* The maps of a plan. */\nenum { MAPS_ALL = %d };\n", m->all);
    for (int32_t i = 0; i < m->n; i++) {
        strbuf_add(out, "static inline void map_%d(thread const margs &k, int row, int col)\n{\n",
                   (int)i);
        strbuf_put(out, (str){m->bodies.p + m->at[i], m->at[i + 1] - m->at[i]});
        strbuf_add(out, "}\n");
    }
    strbuf_add(out, "static inline void map_made(thread const margs &k, int which, int row, int "
                    "col)\n{\n    switch (which) {\n");
    for (int32_t i = 0; i < m->n; i++)
        strbuf_add(out, "    case %d:\n        map_%d(k, row, col);\n        break;\n", (int)i,
                   (int)i);
    strbuf_add(out, "    default:\n        break;\n    }\n}\n");
}
