/* report.h - the outcome of a verb that takes its files one by one, and its JSON document:
 *
 *     {"files":[{"file":..,"ok":..}],"diagnostics":[..],"errors":n,"warnings":n} */
#ifndef WEFT_RUNTIME_CLI_REPORT_H
#define WEFT_RUNTIME_CLI_REPORT_H

#include "runtime/base/json_write.h"
#include "runtime/cli/cli.h"

typedef struct {
    size_t errors, warnings;
    int failed_n;            /* files with errors */
    const char *failed_last; /* one of them */
    strbuf files, found;     /* what stands in the brackets of "files" and "diagnostics" */
} report;

/* The outcome of one file: counts what c->dg holds, reports it, and empties it. Returns a writer that
 * stands inside the file's object, for more members; report_file_end closes it. */
json_writer report_file(report *r, cli *c, const char *name, bool ok);
void report_file_end(json_writer *w);

/* With --json the document, otherwise "2 errors in llama.weft" if there were any; frees r's memory.
 * Returns the exit status. */
int report_finish(report *r, cli *c);

#endif
