/* test_parse.c - texts into trees: their shapes, and the range of every node. */
#include "dsl/dsl.h"
#include "tests/base/suite.h"

static arena *home;
static weft_diag *dg;

static void setup(void)
{
    home = arena_create();
    dg = diag_create();
}

static void teardown(void)
{
    diag_destroy(dg);
    arena_destroy(home);
}

static const ast *parse(const char *text)
{
    ast *file = NULL;
    source *src = source_from_text(home, "t.weft", str_of(text));
    if (dsl_parse(dg, home, src, &file) != WEFT_OK)
        ck_abort_msg("%s", diag_at(dg, 0).message.p);
    return file;
}

/* The expression behind `return` of a block. */
static const ast *expression(const char *text)
{
    strbuf b = {0};
    strbuf_add(&b, "weft 1\nblock b() { return %s }\n", text);
    const ast *file = parse(arena_str(home, strbuf_view(&b)).p);
    strbuf_free(&b);
    return file->kid[FILE_ITEMS]->kid[BLOCK_RESULTS]->kid[0];
}

/* An expression with all its brackets. */
static void put(const ast *n, strbuf *out)
{
    switch (n->kind) {
    case AST_BINARY:
        strbuf_putc(out, '(');
        put(n->kid[BINARY_LEFT], out);
        strbuf_add(out, " " STR_FMT " ", STR_ARG(n->name));
        put(n->kid[BINARY_RIGHT], out);
        strbuf_putc(out, ')');
        break;
    case AST_UNARY:
        strbuf_add(out, "(" STR_FMT, STR_ARG(n->name));
        put(n->kid[UNARY_OPERAND], out);
        strbuf_putc(out, ')');
        break;
    case AST_CHOICE:
        strbuf_putc(out, '(');
        for (int i = 0; i < 3; i++) {
            strbuf_add(out, i == 1 ? " ? " : i == 2 ? " : " : "");
            put(n->kid[i], out);
        }
        strbuf_putc(out, ')');
        break;
    default:
        strbuf_put(out, ast_spelt(n));
    }
}

static void expect_brackets(const char *text, const char *want)
{
    strbuf got = {0};
    put(expression(text), &got);
    ck_assert_str_eq(got.p, want);
    strbuf_free(&got);
}

START_TEST(operators_bind_as_documented)
{
    expect_brackets("a + b * c", "(a + (b * c))");
    expect_brackets("a - b - c", "((a - b) - c)");
    expect_brackets("a / b % c * d", "(((a / b) % c) * d)");
    expect_brackets("-a ^ b", "(-(a ^ b))");
    expect_brackets("a ^ b ^ c", "(a ^ (b ^ c))");
    expect_brackets("a ^ -b", "(a ^ (-b))");
    expect_brackets("!a && b || c", "(((!a) && b) || c)");
    expect_brackets("a + 1 < b - 1", "((a + 1) < (b - 1))");
    expect_brackets("a || b ?? c ?? d", "((a || b) ?? (c ?? d))");
    expect_brackets("a ?? b ? c : d", "((a ?? b) ? c : d)");
    expect_brackets("a ? b : c ? d : e", "(a ? b : (c ? d : e))");
    expect_brackets("a(b)[c].d ^ 2", "(a(b)[c].d ^ 2)");
    expect_brackets("(a + b) * c", "((a + b) * c)");
}
END_TEST

START_TEST(an_expression_covers_its_text)
{
    const ast *e = expression("attend(q, append(kv[l], k, v), scale = head_dim ^ -0.5)");
    ck_assert(str_eqz(ast_spelt(e->kid[CALL_CALLEE]), "attend"));
    const ast *args = e->kid[CALL_ARGUMENTS];
    ck_assert_uint_eq(args->n_kid, 3);
    ck_assert(str_eqz(ast_spelt(args->kid[1]), "append(kv[l], k, v)"));
    ck_assert(str_eqz(ast_spelt(args->kid[2]), "scale = head_dim ^ -0.5"));
    ck_assert(str_eqz(args->kid[2]->name, "scale"));
    const ast *power = args->kid[2]->kid[ARG_VALUE];
    ck_assert(str_eqz(ast_spelt(power), "head_dim ^ -0.5"));
    ck_assert_int_eq(power->kid[BINARY_RIGHT]->kid[UNARY_OPERAND]->kind, AST_FLOAT);
    ck_assert_double_eq(power->kid[BINARY_RIGHT]->kid[UNARY_OPERAND]->number, 0.5);
    /* brackets belong to what they hold */
    ck_assert(str_eqz(ast_spelt(expression("( a + b )")), "( a + b )"));
}
END_TEST

static void walk(const ast *n, const ast *parent)
{
    if (!n)
        return;
    ck_assert_uint_le(n->loc.begin, n->loc.end);
    ck_assert_uint_le(n->loc.end, n->loc.src->text.n);
    if (parent) {
        ck_assert_uint_ge(n->loc.begin, parent->loc.begin);
        ck_assert_uint_le(n->loc.end, parent->loc.end);
        ck_assert_int_lt(n->height, parent->height);
    }
    for (uint32_t i = 0; i < n->n_kid; i++)
        walk(n->kid[i], n);
}

static const char whole[] =
    "weft 1\n"
    "import std.rope as r\n"
    "block swiglu(x, gate: f[T, d] = none) {\n"
    "  y, z : f[T] = gate(x)\n"
    "  return y, z\n"
    "}\n"
    "fragment f(n: int) { let a = n }\n"
    "model m \"Title\" {\n"
    "  match gguf \"m\", \"n\" if key(\"a\", 0) == 0\n"
    "  tokenizer bpe\n"
    "  chat \"{{x}}\"\n"
    "  params {\n"
    "    s[l < n] : bool?  gguf \"a\" => it + 1 | \"b\"  hf \"c\" ?? l % 2 == 0\n"
    "  }\n"
    "  include f(n = 1) as g\n"
    "  require a == 1, \"no {a}\"\n"
    "  weights {\n"
    "    linear w?[e < n] (a -> b) bias? lora(off)  gguf \"w\" rows(0, 4) raw  when c ?? d\n"
    "    group blk[l < n] gguf \"b.{l}.\" | \"c\" hf \"d\" { tensor t (a, b) hf \"t\" }\n"
    "    if a { ignore hf \"x\", \"y\" } else { tensor u (1) hf \"u\" }\n"
    "  }\n"
    "  state { kv[l < n] : kv_cache(heads = 1) when a }\n"
    "  entry decode(tokens: i32[T]) {\n"
    "    repeat l in 0..n { if a { x = 1 } else { x = [1, 2.5][0] } }\n"
    "    output resid[l][T] = x\n"
    "  }\n"
    "}\n";

START_TEST(every_node_lies_within_its_parent)
{
    walk(parse(whole), NULL);
}
END_TEST

START_TEST(every_construct_has_its_slots)
{
    static const char want[] = "file\n"
                               "  version: int 1\n"
                               "  import\n"
                               "    path: name std.rope\n"
                               "    alias: name r\n"
                               "  block swiglu\n"
                               "    formals: list\n"
                               "      formal x\n"
                               "        type: -\n"
                               "        default: -\n"
                               "      formal gate\n"
                               "        type: type f\n"
                               "          dims: list\n"
                               "            name T\n"
                               "            name d\n"
                               "        default: none\n"
                               "    body: list\n"
                               "      assign\n"
                               "        targets: list\n"
                               "          target y\n"
                               "            type: -\n"
                               "          target z\n"
                               "            type: type f\n"
                               "              dims: list\n"
                               "                name T\n"
                               "        value: call\n"
                               "          callee: name gate\n"
                               "          arguments: list\n"
                               "            arg\n"
                               "              value: name x\n"
                               "    results: list\n"
                               "      name y\n"
                               "      name z\n"
                               "  fragment f\n"
                               "    formals: list\n"
                               "      formal n\n"
                               "        type: type int\n"
                               "          dims: -\n"
                               "        default: -\n"
                               "    body: list\n"
                               "      let a\n"
                               "        value: name n\n"
                               "  model m\n"
                               "    title: string \"Title\"\n"
                               "    body: list\n"
                               "      match gguf\n"
                               "        names: list\n"
                               "          string \"m\"\n"
                               "          string \"n\"\n"
                               "        condition: binary ==\n"
                               "          left: call\n"
                               "            callee: name key\n"
                               "            arguments: list\n"
                               "              arg\n"
                               "                value: string \"a\"\n"
                               "              arg\n"
                               "                value: int 0\n"
                               "          right: int 0\n"
                               "      tokenizer bpe\n"
                               "      chat \"{{x}}\"\n"
                               "      params\n"
                               "        param s\n"
                               "          index: index l\n"
                               "            limit: name n\n"
                               "          type: type bool ?\n"
                               "            dims: -\n"
                               "          bindings: list\n"
                               "            binding gguf\n"
                               "              key \"a\"\n"
                               "                map\n"
                               "                  value: binary +\n"
                               "                    left: name it\n"
                               "                    right: int 1\n"
                               "              key \"b\"\n"
                               "            binding hf\n"
                               "              key \"c\"\n"
                               "          default: binary ==\n"
                               "            left: binary %\n"
                               "              left: name l\n"
                               "              right: int 2\n"
                               "            right: int 0\n"
                               "      include g\n"
                               "        path: name f\n"
                               "        arguments: list\n"
                               "          arg n\n"
                               "            value: int 1\n"
                               "      require\n"
                               "        condition: binary ==\n"
                               "          left: name a\n"
                               "          right: int 1\n"
                               "        message: string \"no {a}\"\n"
                               "      weights\n"
                               "        weight w ?\n"
                               "          kind: name linear\n"
                               "          index: index e\n"
                               "            limit: name n\n"
                               "          shape: arrow\n"
                               "            in: name a\n"
                               "            out: name b\n"
                               "          modifiers: list\n"
                               "            modifier bias ?\n"
                               "              arguments: -\n"
                               "            modifier lora\n"
                               "              arguments: list\n"
                               "                arg\n"
                               "                  value: name off\n"
                               "          bindings: list\n"
                               "            binding gguf\n"
                               "              key \"w\"\n"
                               "                transform rows\n"
                               "                  arguments: list\n"
                               "                    arg\n"
                               "                      value: int 0\n"
                               "                    arg\n"
                               "                      value: int 4\n"
                               "                transform raw\n"
                               "                  arguments: -\n"
                               "          when: name c\n"
                               "          fallback: name d\n"
                               "        group blk\n"
                               "          index: index l\n"
                               "            limit: name n\n"
                               "          prefixes: list\n"
                               "            binding gguf\n"
                               "              string \"b.{l}.\"\n"
                               "              string \"c\"\n"
                               "            binding hf\n"
                               "              string \"d\"\n"
                               "          body: list\n"
                               "            weight t\n"
                               "              kind: name tensor\n"
                               "              index: -\n"
                               "              shape: list\n"
                               "                arg\n"
                               "                  value: name a\n"
                               "                arg\n"
                               "                  value: name b\n"
                               "              modifiers: list\n"
                               "              bindings: list\n"
                               "                binding hf\n"
                               "                  key \"t\"\n"
                               "              when: -\n"
                               "              fallback: -\n"
                               "        if\n"
                               "          condition: name a\n"
                               "          then: list\n"
                               "            ignore hf\n"
                               "              string \"x\"\n"
                               "              string \"y\"\n"
                               "          else: list\n"
                               "            weight u\n"
                               "              kind: name tensor\n"
                               "              index: -\n"
                               "              shape: list\n"
                               "                arg\n"
                               "                  value: int 1\n"
                               "              modifiers: list\n"
                               "              bindings: list\n"
                               "                binding hf\n"
                               "                  key \"u\"\n"
                               "              when: -\n"
                               "              fallback: -\n"
                               "      state\n"
                               "        cell kv\n"
                               "          index: index l\n"
                               "            limit: name n\n"
                               "          kind: name kv_cache\n"
                               "          arguments: list\n"
                               "            arg heads\n"
                               "              value: int 1\n"
                               "          when: name a\n"
                               "      entry decode\n"
                               "        formals: list\n"
                               "          formal tokens\n"
                               "            type: type i32\n"
                               "              dims: list\n"
                               "                name T\n"
                               "            default: -\n"
                               "        body: list\n"
                               "          repeat l\n"
                               "            over: range\n"
                               "              from: int 0\n"
                               "              to: name n\n"
                               "            body: list\n"
                               "              if\n"
                               "                condition: name a\n"
                               "                then: list\n"
                               "                  assign\n"
                               "                    targets: list\n"
                               "                      target x\n"
                               "                        type: -\n"
                               "                    value: int 1\n"
                               "                else: list\n"
                               "                  assign\n"
                               "                    targets: list\n"
                               "                      target x\n"
                               "                        type: -\n"
                               "                    value: subscript\n"
                               "                      base: list\n"
                               "                        int 1\n"
                               "                        float 2.5\n"
                               "                      indices: list\n"
                               "                        int 0\n"
                               "          output resid\n"
                               "            indices: list\n"
                               "              name l\n"
                               "              name T\n"
                               "            value: name x\n";
    strbuf got = {0};
    ast_print(parse(whole), &got);
    ck_assert_str_eq(got.p, want);
    strbuf_free(&got);
}
END_TEST

START_TEST(no_tree_comes_from_a_mistake)
{
    ast *file = NULL;
    source *src =
        source_from_text(home, "t.weft", STR("weft 1\nblock b(x) { return }\nblock c( { }\n"));
    ck_assert_int_eq(dsl_parse(dg, home, src, &file), WEFT_ERR_SYNTAX);
    ck_assert_ptr_null(file);
    ck_assert_uint_ge(diag_errors(dg), 2);
    /* and a second try says so too, although nothing new is told */
    ck_assert_int_eq(dsl_parse(dg, home, src, &file), WEFT_ERR_SYNTAX);
}
END_TEST

START_TEST(recovery_passes_whole_braces)
{
    static const char *const texts[] = {
        "weft 1\nmdel m {\n match hf \"M\"\n params {\n }\n}\nblock b(x) { return x }\n",
        "weft 1\nmodel m {\n parms {\n d : int\n }\n match hf \"M\"\n}\n",
        "weft 1\nblock b(x) {\n repaet i in 3 {\n if x { y = x }\n }\n return x\n}\n",
        "weft 1\nmodel m {\n entry e(a: [T) {\n x = y\n }\n match hf \"M\"\n}\n",
    };
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        ast *file;
        diag_reset(dg);
        source *src = source_from_text(home, "t.weft", str_of(texts[i]));
        ck_assert_int_ne(dsl_parse(dg, home, src, &file), WEFT_OK);
        ck_assert_msg(diag_errors(dg) == 1, "text %zu: %zu errors", i, diag_errors(dg));
    }
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("parse");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, operators_bind_as_documented);
    tcase_add_test(tc, an_expression_covers_its_text);
    tcase_add_test(tc, every_node_lies_within_its_parent);
    tcase_add_test(tc, every_construct_has_its_slots);
    tcase_add_test(tc, no_tree_comes_from_a_mistake);
    tcase_add_test(tc, recovery_passes_whole_braces);
    return suite_run("parse", tc, CK_FORK_GETENV);
}
