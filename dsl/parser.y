/* parser.y - the grammar of .weft files (LANGUAGE.md). Actions only build the tree. */
%require "3.8"
%define api.pure full
%define api.prefix {parse_}
%define api.header.include {"parser.tab.h"}
%define api.location.type {parse_range}
%define parse.error custom
%define parse.lac full
%locations
%expect 0
%param {parse_state *ps}

%code requires {
#include "dsl/parse.h"
}
%code provides {
int parse_lex(PARSE_STYPE *value, parse_range *at, parse_state *ps); /* lex_lines.c */
}

%code {
#include "runtime/base/mem.h"
#define YYMALLOC mem_alloc
#define YYFREE mem_free

static void parse_error(parse_range *at, parse_state *ps, const char *message);
#define YYLLOC_DEFAULT(cur, rhs, n)                                                                \
    do {                                                                                           \
        (cur).begin = (n) ? YYRHSLOC(rhs, 1).begin : YYRHSLOC(rhs, 0).end;                         \
        (cur).end = (n) ? YYRHSLOC(rhs, n).end : (cur).begin;                                      \
    } while (0)

#define NODE(kind, ...) ast_make(ps, AST_##kind, __VA_ARGS__)
#define NAMED(kind, ...) ast_named(ps, AST_##kind, __VA_ARGS__)
#define LIST(first) ast_list(ps, yyloc, first)
#define BINARY(op) ast_named(ps, AST_BINARY, yyloc, op, 2, yyvsp[-2].node, yyvsp[0].node)
}

%union {
    parse_range at;
    ast *node;
}

%token EOL "end of line" IDENT "a name" INT "a number" FLOAT "a decimal number" STRING "a string"
%token NEWLINE BAD
%token WEFT "weft" IMPORT "import" AS "as" FRAGMENT "fragment" BLOCK "block" MODEL "model"
%token MATCH "match" GGUF "gguf" HF "hf" TOKENIZER "tokenizer" CHAT "chat" INCLUDE "include"
%token PARAMS "params" WEIGHTS "weights" GROUP "group" IGNORE "ignore" STATE "state" ENTRY "entry"
%token REPEAT "repeat" IN "in" OUTPUT "output" REQUIRE "require" LET "let" RETURN "return"
%token WHEN "when" IF "if" ELSE "else" TRUE "true" FALSE "false" NONE "none"
%token ARROW "->" MAPS "=>" COALESCE "??" DOTS ".." OR "||" AND "&&" EQ "==" NE "!=" LE "<=" GE ">="
%token END 0 "end of file"

%type <node> file items item import path alias fragment block results model title formals formal_list
%type <node> formal type_opt type dims_opt default_opt sections section match strings match_if include
%type <node> let require params param_list param index_opt index bindings binding keys key transforms
%type <node> transform weights weight_list weight shape modifiers modifier when_opt coalesce_opt
%type <node> prefixes prefix else_weights state cell_list cell entry stmts stmt else_stmts targets
%type <node> target over subscripts expr coal or and rel sum prod unary postfix primary args_opt args arg
%type <node> exprs exprs_opt string_node opt_call
%type <at> source name

%%

file:
    WEFT INT EOL items          { ps->root = ast_as($4, AST_FILE, @$);
                                  ps->root->kid[FILE_VERSION] = ast_number(ps, AST_INT, @2); }
  ;
items:
    %empty                      { $$ = LIST(NULL); $$ = ast_add(ps, $$, NODE(NONE, @$, 0)); }
  | items item                  { $$ = ast_add(ps, $1, $2); }
  ;
item: import | fragment | block | model
  | error EOL                   { $$ = NULL; yyerrok; }
  ;
/* After a `}`: an error here must not look for the end of what is closed already. */
end: EOL
  | error EOL                   { yyerrok; }
  ;
import:
    IMPORT path alias EOL       { $$ = NODE(IMPORT, @$, 2, $2, $3); }
  ;
alias:
    %empty                      { $$ = NULL; }
  | AS name                     { $$ = NAMED(NAME, @2, @2, 0); }
  ;
path:
    name                        { $$ = NAMED(NAME, @1, @1, 0); }
  | path '.' name               { $$ = ast_path(ps, @$, $1, $3); }
  ;
name: IDENT                     { $$ = @1; }
  ;
fragment:
    FRAGMENT name formals '{' sections '}' end
                                { $$ = NAMED(FRAGMENT, @$, $2, 2, $3, $5); }
  ;
block:
    BLOCK name formals '{' stmts results '}' end
                                { $$ = NAMED(BLOCK, @$, $2, 3, $3, $5, $6); }
  ;
results:
    %empty                      { $$ = NULL; }
  | RETURN exprs EOL            { $$ = $2; }
  ;
model:
    MODEL name title '{' sections '}' end
                                { $$ = NAMED(MODEL, @$, $2, 2, $3, $5); }
  ;
title:
    %empty                      { $$ = NULL; }
  | string_node
  ;
formals:
    '(' ')'                     { $$ = LIST(NULL); }
  | '(' formal_list ')'         { $$ = ast_as($2, AST_LIST, @$); }
  ;
formal_list:
    formal                      { $$ = LIST($1); }
  | formal_list ',' formal      { $$ = ast_add(ps, $1, $3); }
  ;
formal:
    name type_opt default_opt   { $$ = NAMED(FORMAL, @$, $1, 2, $2, $3); }
  ;
type_opt:
    %empty                      { $$ = NULL; }
  | ':' type                    { $$ = $2; }
  ;
default_opt:
    %empty                      { $$ = NULL; }
  | '=' expr                    { $$ = $2; }
  ;
type:
    name dims_opt               { $$ = NAMED(TYPE, @$, $1, 1, $2); }
  | name dims_opt '?'           { $$ = NAMED(TYPE, @$, $1, 1, $2); $$->flag = true; }
  ;
dims_opt:
    %empty                      { $$ = NULL; }
  | '[' exprs ']'               { $$ = $2; }
  ;

sections:
    %empty                      { $$ = LIST(NULL); }
  | sections section            { $$ = ast_add(ps, $1, $2); }
  ;
section: match | include | params | weights | state | let | require | block | entry
  | TOKENIZER name EOL          { $$ = NAMED(TOKENIZER, @$, $2, 0); }
  | CHAT STRING EOL             { $$ = NAMED(CHAT, @$, @2, 0); }
  | error EOL                   { $$ = NULL; yyerrok; }
  ;
source: GGUF                    { $$ = @1; }
  | HF                          { $$ = @1; }
  ;
string_node: STRING             { $$ = NAMED(STRING, @1, @1, 0); }
  ;
match:
    MATCH source strings match_if EOL
                                { $$ = NAMED(MATCH, @$, $2, 2, $3, $4); }
  ;
strings:
    string_node                 { $$ = LIST($1); }
  | strings ',' string_node     { $$ = ast_add(ps, $1, $3); }
  ;
match_if:
    %empty                      { $$ = NULL; }
  | IF expr                     { $$ = $2; }
  ;
include:
    INCLUDE path '(' args_opt ')' AS name EOL
                                { $$ = NAMED(INCLUDE, @$, $7, 2, $2, $4); }
  ;
let:
    LET name '=' expr EOL       { $$ = NAMED(LET, @$, $2, 1, $4); }
  ;
require:
    REQUIRE expr EOL            { $$ = NODE(REQUIRE, @$, 2, $2, NULL); }
  | REQUIRE expr ',' string_node EOL
                                { $$ = NODE(REQUIRE, @$, 2, $2, $4); }
  ;

params:
    PARAMS '{' param_list '}' end   { $$ = ast_as($3, AST_PARAMS, @$); }
  ;
param_list:
    %empty                      { $$ = LIST(NULL); }
  | param_list param            { $$ = ast_add(ps, $1, $2); }
  ;
param:
    name index_opt ':' type bindings coalesce_opt EOL
                                { $$ = NAMED(PARAM, @$, $1, 4, $2, $4, $5, $6); }
  | error EOL                   { $$ = NULL; yyerrok; }
  ;
index_opt:
    %empty                      { $$ = NULL; }
  | index
  ;
index:
    '[' name '<' sum ']'        { $$ = NAMED(INDEX, @$, $2, 1, $4); }
  ;
bindings:
    %empty                      { $$ = LIST(NULL); }
  | bindings binding            { $$ = ast_add(ps, $1, $2); }
  ;
binding:
    source keys                 { $$ = NAMED(BINDING, @$, $1, 0); ast_as($$, AST_BINDING, @$);
                                  for (uint32_t i = 0; i < $2->n_kid; i++) ast_add(ps, $$, $2->kid[i]); }
  ;
keys:
    key                         { $$ = LIST($1); }
  | keys '|' key                { $$ = ast_add(ps, $1, $3); }
  ;
key:
    STRING transforms           { $$ = NAMED(KEY, @$, @1, 0);
                                  for (uint32_t i = 0; i < $2->n_kid; i++) ast_add(ps, $$, $2->kid[i]); }
  ;
transforms:
    %empty                      { $$ = LIST(NULL); }
  | transforms transform        { $$ = ast_add(ps, $1, $2); }
  ;
transform:
    name opt_call               { $$ = NAMED(TRANSFORM, @$, $1, 1, $2); }
  | MAPS or                     { $$ = NODE(MAP, @$, 1, $2); }
  ;
opt_call:
    %empty                      { $$ = NULL; }
  | '(' args_opt ')'            { $$ = $2; }
  ;
coalesce_opt:
    %empty                      { $$ = NULL; }
  | COALESCE expr               { $$ = $2; }
  ;

weights:
    WEIGHTS '{' weight_list '}' end { $$ = ast_as($3, AST_WEIGHTS, @$); }
  ;
weight_list:
    %empty                      { $$ = LIST(NULL); }
  | weight_list weight          { $$ = ast_add(ps, $1, $2); }
  ;
weight:
    name name index_opt '(' shape ')' modifiers bindings when_opt coalesce_opt EOL
                                { $$ = NAMED(WEIGHT, @$, $2, 7, NAMED(NAME, @1, @1, 0), $3, $5, $7, $8, $9, $10); }
  | name name '?' index_opt '(' shape ')' modifiers bindings when_opt coalesce_opt EOL
                                { $$ = NAMED(WEIGHT, @$, $2, 7, NAMED(NAME, @1, @1, 0), $4, $6, $8, $9, $10, $11);
                                  $$->flag = true; }
  | GROUP name index prefixes '{' weight_list '}' end
                                { $$ = NAMED(GROUP, @$, $2, 3, $3, $4, $6); }
  | IF expr '{' weight_list '}' else_weights
                                { $$ = NODE(IF, @$, 3, $2, $4, $6); }
  | IGNORE source strings EOL   { $$ = NAMED(IGNORE, @$, $2, 0);
                                  for (uint32_t i = 0; i < $3->n_kid; i++) ast_add(ps, $$, $3->kid[i]); }
  | error EOL                   { $$ = NULL; yyerrok; }
  ;
else_weights:
    end                         { $$ = NULL; }
  | ELSE '{' weight_list '}' end    { $$ = $3; }
  | ELSE error EOL              { $$ = NULL; yyerrok; }
  ;
shape:
    expr ARROW expr             { $$ = NODE(ARROW, @$, 2, $1, $3); }
  | args_opt
  ;
modifiers:
    %empty                      { $$ = LIST(NULL); }
  | modifiers modifier          { $$ = ast_add(ps, $1, $2); }
  ;
modifier:
    name opt_call               { $$ = NAMED(MODIFIER, @$, $1, 1, $2); }
  | name '?'                    { $$ = NAMED(MODIFIER, @$, $1, 1, NULL); $$->flag = true; }
  ;
when_opt:
    %empty                      { $$ = NULL; }
  | WHEN or                     { $$ = $2; }
  ;
prefixes:
    %empty                      { $$ = LIST(NULL); }
  | prefixes source prefix      { $3->name = parse_text(ps, $2); $3->name_loc = parse_loc(ps, $2);
                                  $$ = ast_add(ps, $1, $3); }
  ;
prefix:
    string_node                 { $$ = LIST($1); ast_as($$, AST_BINDING, @$); }
  | prefix '|' string_node      { $$ = ast_add(ps, $1, $3); }
  ;

state:
    STATE '{' cell_list '}' end { $$ = ast_as($3, AST_STATE, @$); }
  ;
cell_list:
    %empty                      { $$ = LIST(NULL); }
  | cell_list cell              { $$ = ast_add(ps, $1, $2); }
  ;
cell:
    name index_opt ':' name '(' args_opt ')' when_opt EOL
                                { $$ = NAMED(CELL, @$, $1, 4, $2, NAMED(NAME, @4, @4, 0), $6, $8); }
  | error EOL                   { $$ = NULL; yyerrok; }
  ;

entry:
    ENTRY name formals '{' stmts '}' end
                                { $$ = NAMED(ENTRY, @$, $2, 2, $3, $5); }
  ;
stmts:
    %empty                      { $$ = LIST(NULL); }
  | stmts stmt                  { $$ = ast_add(ps, $1, $2); }
  ;
stmt:
    targets '=' expr EOL        { $$ = NODE(ASSIGN, @$, 2, $1, $3); }
  | REPEAT name IN over '{' stmts '}' end
                                { $$ = NAMED(REPEAT, @$, $2, 2, $4, $6); }
  | IF expr '{' stmts '}' else_stmts
                                { $$ = NODE(IF, @$, 3, $2, $4, $6); }
  | OUTPUT name subscripts '=' expr EOL
                                { $$ = NAMED(OUTPUT, @$, $2, 2, $3, $5); }
  | let
  | require
  | error EOL                   { $$ = NULL; yyerrok; }
  ;
else_stmts:
    end                         { $$ = NULL; }
  | ELSE '{' stmts '}' end      { $$ = $3; }
  | ELSE error EOL              { $$ = NULL; yyerrok; }
  ;
targets:
    target                      { $$ = LIST($1); }
  | targets ',' target          { $$ = ast_add(ps, $1, $3); }
  ;
target:
    name type_opt               { $$ = NAMED(TARGET, @$, $1, 1, $2); }
  ;
over:
    expr
  | expr DOTS expr              { $$ = NODE(RANGE, @$, 2, $1, $3); }
  ;
subscripts:
    %empty                      { $$ = LIST(NULL); }
  | subscripts '[' expr ']'     { $$ = ast_add(ps, $1, $3); }
  ;

expr:
    coal
  | coal '?' expr ':' expr      { $$ = NODE(CHOICE, @$, 3, $1, $3, $5); }
  ;
coal:
    or
  | or COALESCE coal            { $$ = BINARY(@2); }
  ;
or:
    and
  | or OR and                   { $$ = BINARY(@2); }
  ;
and:
    rel
  | and AND rel                 { $$ = BINARY(@2); }
  ;
rel:
    sum
  | sum EQ sum                  { $$ = BINARY(@2); }
  | sum NE sum                  { $$ = BINARY(@2); }
  | sum '<' sum                 { $$ = BINARY(@2); }
  | sum LE sum                  { $$ = BINARY(@2); }
  | sum '>' sum                 { $$ = BINARY(@2); }
  | sum GE sum                  { $$ = BINARY(@2); }
  ;
sum:
    prod
  | sum '+' prod                { $$ = BINARY(@2); }
  | sum '-' prod                { $$ = BINARY(@2); }
  ;
prod:
    unary
  | prod '*' unary              { $$ = BINARY(@2); }
  | prod '/' unary              { $$ = BINARY(@2); }
  | prod '%' unary              { $$ = BINARY(@2); }
  ;
unary:
    postfix
  | postfix '^' unary           { $$ = BINARY(@2); }
  | '-' unary                   { $$ = NAMED(UNARY, @$, @1, 1, $2); }
  | '!' unary                   { $$ = NAMED(UNARY, @$, @1, 1, $2); }
  ;
postfix:
    primary
  | postfix '(' args_opt ')'    { $$ = NODE(CALL, @$, 2, $1, $3); }
  | postfix '[' exprs ']'       { $$ = NODE(SUBSCRIPT, @$, 2, $1, $3); }
  | postfix '.' name            { $$ = NAMED(MEMBER, @$, $3, 1, $1); }
  ;
primary:
    IDENT                       { $$ = NAMED(NAME, @1, @1, 0); }
  | INT                         { $$ = ast_number(ps, AST_INT, @1); }
  | FLOAT                       { $$ = ast_number(ps, AST_FLOAT, @1); }
  | string_node
  | TRUE                        { $$ = NODE(BOOL, @1, 0); $$->flag = true; }
  | FALSE                       { $$ = NODE(BOOL, @1, 0); }
  | NONE                        { $$ = NODE(NONE, @1, 0); }
  | '(' expr ')'                { $$ = $2; $$->loc = parse_loc(ps, @$); }
  | '[' exprs_opt ']'           { $$ = ast_as($2, AST_LIST, @$); }
  ;
args_opt:
    %empty                      { $$ = LIST(NULL); }
  | args
  ;
args:
    arg                         { $$ = LIST($1); }
  | args ',' arg                { $$ = ast_add(ps, $1, $3); }
  ;
arg:
    expr                        { $$ = NODE(ARG, @$, 1, $1); }
  | name '=' expr               { $$ = NAMED(ARG, @$, $1, 1, $3); }
  ;
exprs:
    expr                        { $$ = LIST($1); }
  | exprs ',' expr              { $$ = ast_add(ps, $1, $3); }
  ;
exprs_opt:
    %empty                      { $$ = LIST(NULL); }
  | exprs
  ;

%%

/* Only what bison reports by itself comes here: a parser stack that is full. */
static void parse_error(parse_range *at, parse_state *ps, const char *message)
{
    (void)message;
    if (!ps->stopped)
        weft_fail(ps->dg, W1102, parse_loc(ps, *at), "the text nests too deeply");
    ps->stopped = true;
}

static int yyreport_syntax_error(const yypcontext_t *ctx, parse_state *ps)
{
    enum { EXPECTED_MAX = 64 }; /* more than there are tokens */
    yysymbol_kind_t kind[EXPECTED_MAX];
    const char *expected[EXPECTED_MAX];
    bool shown = diag_errors(ps->dg) < DIAG_ERRORS_MAX; /* the rest is only counted */
    int n = shown ? yypcontext_expected_tokens(ctx, kind, EXPECTED_MAX) : 0;
    for (int i = 0; i < n; i++)
        expected[i] = yysymbol_name(kind[i]);
    parse_report(ps, yysymbol_name(yypcontext_token(ctx)), *yypcontext_location(ctx), n, expected);
    return 0;
}
