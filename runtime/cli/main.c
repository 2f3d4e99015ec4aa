/* main.c - finds the verb, parses its flags, runs it, and turns the outcome into an exit status:
 * 0 done, 1 an error in the work, 2 a mistake on the command line, 130 interrupted. */
#include "runtime/cli/cli.h"

/* Which verb the first word asks for. */
static weft_status verb_pick(cli *c, const char *first)
{
    if (!first || strcmp(first, "--help") == 0 || strcmp(first, "-h") == 0)
        first = "help";
    else if (strcmp(first, "--version") == 0)
        first = "version";
    c->verb = verb_find(str_of(first));
    if (c->verb)
        return WEFT_OK;
    if (first[0] != '-')
        return verb_unknown(c->dg, first);
    weft_status st =
        weft_fail(c->dg, W1902, WEFT_NOWHERE, "expected a verb, but found the flag %s", first);
    weft_note(c->dg, "flags stand behind the verb: weft VERB %s", first);
    return st;
}

static int verb_start(cli *c)
{
    if (!c->common.help)
        return c->verb->run(c);
    char *topic[] = {(char *)c->verb->name, NULL};
    c->operand = topic;
    c->operand_n = 1;
    return verb_help(c);
}

int main(int argc, char **argv)
{
    cli c;
    cli_begin(&c);
    arena *a = arena_create();
    flag_set sets[2] = {{0}};
    weft_status st = verb_pick(&c, argc > 1 ? argv[1] : NULL);
    if (st == WEFT_OK)
        st = cli_parse(&c, a, sets, 2, argc, argv);
    int exit_status = st == WEFT_OK ? verb_start(&c) : cli_exit_of(st);
    exit_status = cli_end(&c, exit_status);
    flags_deinit(sets, c.options ? 2 : 0);
    diag_destroy(c.dg);
    arena_destroy(a);
    return exit_status;
}
