/* link_small.c - link an object for a target and attach an image to it, as `weft build` does with a model's:
 * link_small TARGET RUNTIME program|lib OUT MEGABYTES OBJECT... */
#include "runtime/base/checksum.h"
#include "runtime/build/elf_stamp.h"
#include "runtime/build/linker.h"
#include "runtime/program/image.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

static weft_status read_all(weft_diag *dg, const char *path, strbuf *out)
{
    FILE *f = fopen(path, "rb");
    char buffer[65536];
    size_t n;
    if (!f)
        return weft_fail(dg, W1001, WEFT_NOWHERE, "%s", path);
    while ((n = fread(buffer, 1, sizeof buffer, f)) > 0)
        strbuf_put(out, (str){buffer, n});
    fclose(f);
    return WEFT_OK;
}

static void make_image(size_t weights, strbuf *im, uint64_t *sum)
{
    static const char facts[] = "the image is here";
    image_part part[] = {{.name = "facts",
                          .kind = IMAGE_FACTS,
                          .bytes = sizeof facts,
                          .sum = checksum(facts, sizeof facts)},
                         {.name = "weights", .kind = IMAGE_WEIGHTS, .bytes = weights}};
    uint64_t bytes;
    image_write_head(part, 2, im, &bytes, sum);
    strbuf_fill(im, 0, part[0].offset - im->n);
    strbuf_put(im, (str){facts, sizeof facts});
    strbuf_fill(im, 0, part[1].offset - im->n);
    strbuf_fill(im, 'w', weights);
    strbuf_fill(im, 0, bytes - IMAGE_END_BYTES - im->n);
    strbuf_put(im, (str){image_end_mark, IMAGE_END_BYTES});
}

static weft_status make(weft_diag *dg, arena *a, char **argv, int n_object)
{
    const build_target *to;
    link_tools tools;
    bool lib = strcmp(argv[3], "lib") == 0;
    link_options opt = {.runtime = argv[2], .lib = lib};
    strbuf elf = {0}, im = {0};
    uint64_t sum;
    WEFT_TRY(build_target_find(dg, argv[1], &to));
    WEFT_TRY(link_tools_find(dg, a, to, &opt, &tools));
    link_job job = {.object = (const char *const *)(argv + 6),
                    .n_object = n_object,
                    .exports = lib ? "exports.map" : NULL,
                    .out = argv[4]};
    WEFT_TRY(link_run(dg, a, &tools, &job));
    make_image((size_t)atol(argv[5]) << 20, &im, &sum);
    WEFT_TRY(read_all(dg, argv[4], &elf));
    WEFT_TRY(elf_stamp(dg, argv[4], &elf, im.n, sum));
    FILE *f = fopen(argv[4], "wb");
    if (!f || fwrite(elf.p, 1, elf.n, f) != elf.n || fwrite(im.p, 1, im.n, f) != im.n ||
        fclose(f) != 0 || chmod(argv[4], 0755) != 0)
        return weft_fail(dg, W1004, WEFT_NOWHERE, "%s", argv[4]);
    strbuf_free(&elf);
    strbuf_free(&im);
    return WEFT_OK;
}

int main(int argc, char **argv)
{
    weft_diag *dg = diag_create();
    arena *a = arena_create();
    weft_status st = argc < 7 ? WEFT_ERR_USAGE : make(dg, a, argv, argc - 6);
    diag_print(dg, stderr, false);
    arena_destroy(a);
    diag_destroy(dg);
    return st == WEFT_OK ? 0 : 1;
}
