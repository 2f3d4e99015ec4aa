/* example.c - a program that uses a library made by `weft build -o libtale.so --lib`: example PROMPT TOKENS */
#include "tale.h"

#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    char error[1000] = "";
    const char *prompt = argc > 1 ? argv[1] : "Once upon a time";
    int n = argc > 2 ? atoi(argv[2]) : 100;
    tale *t = tale_open(0, error, sizeof error);
    if (!t) {
        fputs(error, stderr);
        return 1;
    }
    if (!tale_sampling(t, 0, 0, 1, 0) || !tale_prompt(t, prompt, false)) {
        fputs(tale_error(t), stderr);
        tale_close(t);
        return 1;
    }
    fputs(prompt, stdout);
    for (const char *piece; n > 0 && (piece = tale_next(t)); n--)
        fputs(piece, stdout);
    puts("");
    tale_close(t);
    return 0;
}
