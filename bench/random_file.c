/* random_file.c - a made-up checkpoint as a GGUF file with the tokenizer of another: what `weft build` can make a program of.
 *
 *     random_file SHAPE:TYPE TOKENIZER.gguf OUT.gguf */
#include "runtime/base/threads.h"
#include "runtime/formats/gguf_write.h"
#include "runtime/formats/model_file.h"
#include "runtime/formats/random_model.h"

#include <stdio.h>
#include <stdlib.h>

static weft_diag *dg;

static void must(weft_status st)
{
    if (st == WEFT_OK)
        return;
    diag_print(dg, stderr, false);
    exit(1);
}

static void take_keys(gguf_writer *w, const model_file *mf, bool tokenizer)
{
    const value *keys = model_file_keys(mf);
    for (size_t i = 0; i < keys->as.object.n; i++) {
        const value_member *k = &keys->as.object.members[i];
        if (!tokenizer || str_starts(k->name, STR("tokenizer.")))
            gguf_writer_key(w, k->name, k->v);
    }
}

int main(int argc, char **argv)
{
    random_model *rm;
    model_file *made, *other;
    if (argc != 4) {
        fprintf(stderr, "usage: random_file SHAPE:TYPE TOKENIZER.gguf OUT.gguf\n");
        return 2;
    }
    dg = diag_create();
    must(random_model_create(dg, argv[1], threads_default(), &rm));
    must(model_file_open_memory(dg, random_model_data(rm), random_model_bytes(rm), argv[1], &made));
    must(model_file_open(dg, argv[2], NULL, &other));
    gguf_writer *w = gguf_writer_create();
    take_keys(w, made, false);
    take_keys(w, other, true);
    for (size_t i = 0; i < model_file_tensor_count(made); i++) {
        const model_tensor *t = model_file_tensor_at(made, i);
        gguf_writer_tensor_data(w, t->name, t->type, t->rank, t->shape, t->data);
    }
    must(gguf_writer_write(dg, w, argv[3]));
    gguf_writer_destroy(w);
    model_file_close(other);
    model_file_close(made);
    random_model_destroy(rm);
    diag_destroy(dg);
    return 0;
}
