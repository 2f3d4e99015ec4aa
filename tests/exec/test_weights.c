/* test_weights.c - the suite of runtime/exec/weights.c: every way in which a weight is loaded, and
 * plans that do not fit their checkpoint. */
#include "kernels/ref/dequant.h"
#include "runtime/exec/weights_cpu.h"
#include "runtime/formats/safetensors_write.h"
#include "runtime/formats/model_file.h"
#include "tests/base/suite.h"

enum { E = 3, M = 4, N = 64, BLOCKS = N / 32 };

typedef struct {
    temp_dir dir;
    temp_path path;
    weft_diag *dg;
    model_file *mf;
    uint8_t blocks[E * M * BLOCKS * 16], scales[E * M * BLOCKS];
    float grid[6 * 4]; /* [6, 4]: 10 * row + column */
    uint16_t half[8];
} files;

static void open_files(files *f)
{
    f->dir = temp_dir_create();
    f->path = temp_join(&f->dir, "w.safetensors");
    f->dg = diag_create();
    uint32_t seed = 5;
    for (size_t i = 0; i < sizeof f->blocks; i++, seed = seed * 1664525u + 1013904223u)
        f->blocks[i] = (uint8_t)(seed >> 24);
    for (size_t i = 0; i < sizeof f->scales; i++)
        f->scales[i] = (uint8_t)(100 + i * 3 % 50);
    for (int i = 0; i < 24; i++)
        f->grid[i] = (float)(10 * (i / 4) + i % 4);
    for (int i = 0; i < 8; i++)
        f->half[i] = f32_to_f16((float)i + 0.5f);
    const safetensors_item items[] = {
        {"blocks", DT_U8, 4, (int64_t[]){E, M, BLOCKS, 16}, f->blocks},
        {"scales", DT_U8, 3, (int64_t[]){E, M, BLOCKS}, f->scales},
        {"grid", DT_F32, 2, (int64_t[]){6, 4}, f->grid},
        {"half", DT_F16, 1, (int64_t[]){8}, f->half},
    };
    ck_assert_int_eq(safetensors_write(f->dg, f->path.path, items, COUNT_OF(items), NULL), WEFT_OK);
    ck_assert_int_eq(model_file_open(f->dg, f->path.path, NULL, &f->mf), WEFT_OK);
}

static void close_files(files *f)
{
    model_file_close(f->mf);
    diag_destroy(f->dg);
    unlink(f->path.path);
    rmdir(f->dir.path);
}

static int32_t tensor(const files *f, const char *name)
{
    for (size_t i = 0; i < model_file_tensor_count(f->mf); i++)
        if (str_eqz(model_file_tensor_at(f->mf, i)->name, name))
            return (int32_t)i;
    ck_abort_msg("no tensor %s", name);
    return -1;
}

/* A plan of one weight; its sizes are what lower_weight.c would work out. */
static plan plan_of(const plan_weight *w)
{
    return (plan){.n_weight = 1,
                  .weight = w,
                  .copied_bytes = w->mode == WEIGHT_COPIED ? (w->bytes + 63) / 64 * 64 : 0,
                  .table_bytes = ((size_t)w->n_table * 8 + 63) / 64 * 64};
}

static weights *load(files *f, const plan *p)
{
    weights *w = NULL;
    ck_assert_int_eq(weights_create(f->dg, NULL, p, model_file_source(f->mf), NULL, &w), WEFT_OK);
    return w;
}

static plan_weight hf_weight(plan_piece *blocks, plan_piece *scales, int64_t step)
{
    return (plan_weight){.name = "experts",
                         .mode = WEIGHT_COPIED,
                         .stored = DT_MXFP4_HF,
                         .type = DT_MXFP4,
                         .rank = 3,
                         .dim = {E, M / step, N},
                         .stride = {M * BLOCKS * 16, BLOCKS * 16 * step, 0},
                         .rows = E * M / step,
                         .pitch = BLOCKS * 17,
                         .n_piece = 1,
                         .piece = blocks,
                         .scales = scales,
                         .bytes = (size_t)(E * M / step) * BLOCKS * 17};
}

START_TEST(mxfp4_of_two_tensors_is_regrouped_bit_for_bit)
{
    files f;
    open_files(&f);
    for (int step = 1; step <= 2; step++) { /* all rows, and every second beginning with row 1 */
        int first = step - 1;
        plan_piece blocks = {tensor(&f, "blocks"), first * BLOCKS * 16, E};
        plan_piece scales = {tensor(&f, "scales"), first * BLOCKS, E};
        plan_weight pw = hf_weight(&blocks, &scales, step);
        plan p = plan_of(&pw);
        weights *w = load(&f, &p);
        for (int row = 0; row < E * M / step; row++) {
            float got[N], want[N];
            int stored = row * step + first;
            dequant_row(DT_MXFP4, (const char *)cpu_weights_at(w, 0) + row * pw.pitch, got, N);
            dequant_row_mxfp4_hf(f.blocks + stored * BLOCKS * 16, f.scales + stored * BLOCKS, want,
                                 N);
            for (int i = 0; i < N; i++)
                ck_assert_float_eq(got[i], want[i]);
        }
        weights_destroy(w);
        /* The same as f32, with a table of its first axis. */
        pw.type = DT_F32;
        pw.pitch = N * 4;
        pw.bytes = (size_t)pw.rows * N * 4;
        pw.n_table = E;
        p = plan_of(&pw);
        w = load(&f, &p);
        const void *const *table = cpu_weights_at(w, 0);
        for (int e = 0; e < E; e++)
            for (int m = 0; m < M / step; m++) {
                float want[N];
                int stored = e * M + m * step + first;
                dequant_row_mxfp4_hf(f.blocks + stored * BLOCKS * 16, f.scales + stored * BLOCKS,
                                     want, N);
                ck_assert_mem_eq((const char *)table[e] + m * N * 4, want, sizeof want);
            }
        ck_assert_uint_eq(p.table_bytes, 64);
        ck_assert_uint_gt(weights_need(NULL, &p, NULL, NULL).tables, 64);
        weights_destroy(w);
    }
    close_files(&f);
}
END_TEST

START_TEST(in_place_is_in_place)
{
    files f;
    open_files(&f);
    plan_piece piece = {tensor(&f, "grid"), 16, 3};
    plan_weight pw = {.name = "odd rows",
                      .mode = WEIGHT_MAPPED,
                      .stored = DT_F32,
                      .type = DT_F32,
                      .rank = 2,
                      .dim = {3, 4},
                      .stride = {32, 4},
                      .rows = 3,
                      .pitch = 32,
                      .n_piece = 1,
                      .piece = &piece,
                      .bytes = 48};
    plan p = plan_of(&pw);
    weights *w = load(&f, &p);
    const model_tensor *grid = model_file_tensor(f.mf, STR("grid"));
    ck_assert_ptr_eq(cpu_weights_at(w, 0), (const char *)grid->data + 16);
    weights_destroy(w);
    pw.n_table = 3;
    p = plan_of(&pw);
    w = load(&f, &p);
    const void *const *table = cpu_weights_at(w, 0);
    for (int i = 0; i < 3; i++)
        ck_assert_ptr_eq(table[i], (const char *)grid->data + 16 + 32 * i);
    weights_destroy(w);
    weights_destroy(NULL);
    close_files(&f);
}
END_TEST

/* Expect these numbers, row by row, from a weight on `grid`. */
static void expect_grid(files *f, plan_weight pw, const float *want)
{
    plan p = plan_of(&pw);
    weights *w = load(f, &p);
    ck_assert_mem_eq(cpu_weights_at(w, 0), want, pw.bytes);
    weights_destroy(w);
}

START_TEST(scattered_rows_are_gathered)
{
    files f;
    open_files(&f);
    int32_t grid = tensor(&f, "grid");
    plan_piece whole = {grid, 0, 4};
    plan_weight turned = {.name = "transposed",
                          .mode = WEIGHT_COPIED,
                          .stored = DT_F32,
                          .type = DT_F32,
                          .rank = 2,
                          .dim = {4, 6},
                          .stride = {4, 16},
                          .rows = 4,
                          .pitch = 24,
                          .n_piece = 1,
                          .piece = &whole,
                          .bytes = 96};
    float want[24];
    for (int i = 0; i < 24; i++)
        want[i] = (float)(10 * (i % 6) + i / 6);
    expect_grid(&f, turned, want);

    /* Rows 5, then 0 and 1, then 3: parts of different lengths. */
    plan_piece parts[] = {{grid, 80, 1}, {grid, 0, 2}, {grid, 48, 1}};
    plan_weight joined = turned;
    joined.name = "joined";
    joined.dim[1] = 4;
    joined.stride[0] = 16;
    joined.stride[1] = 4;
    joined.n_piece = 3;
    joined.piece = parts;
    joined.pitch = 16;
    joined.bytes = 64;
    const float rows[16] = {50, 51, 52, 53, 0, 1, 2, 3, 10, 11, 12, 13, 30, 31, 32, 33};
    expect_grid(&f, joined, rows);

    /* Three axes: of rows (2i, 2i + 1) the columns 1 and 3. */
    plan_piece offset = {grid, 4, 3};
    plan_weight cube = turned;
    cube.name = "cube";
    cube.rank = 3;
    memcpy(cube.dim, (int64_t[]){3, 2, 2}, 24);
    memcpy(cube.stride, (int64_t[]){32, 16, 8}, 24);
    cube.piece = &offset;
    cube.bytes = 48;
    const float corners[12] = {1, 3, 11, 13, 21, 23, 31, 33, 41, 43, 51, 53};
    expect_grid(&f, cube, corners);

    /* Vectors of halves to f32: two parts of one, and every second number of another. */
    int32_t half = tensor(&f, "half");
    plan_piece vectors[] = {{half, 12, 2}, {half, 0, 3}};
    plan_weight vector = {.name = "vector",
                          .mode = WEIGHT_COPIED,
                          .stored = DT_F16,
                          .type = DT_F32,
                          .rank = 1,
                          .dim = {5},
                          .stride = {2},
                          .rows = 1,
                          .pitch = 20,
                          .n_piece = 2,
                          .piece = vectors,
                          .bytes = 20};
    expect_grid(&f, vector, (const float[]){6.5f, 7.5f, 0.5f, 1.5f, 2.5f});
    plan_piece second = {half, 2, 4};
    vector.dim[0] = 4;
    vector.stride[0] = 4;
    vector.n_piece = 1;
    vector.piece = &second;
    vector.bytes = 16;
    expect_grid(&f, vector, (const float[]){1.5f, 3.5f, 5.5f, 7.5f});

    plan_weight computed = vector;
    computed.n_piece = 0;
    computed.computed = (const float[]){4, 3, 2, 1};
    expect_grid(&f, computed, computed.computed);
    close_files(&f);
}
END_TEST

START_TEST(a_plan_for_another_file_is_refused)
{
    files f;
    open_files(&f);
    int32_t grid = tensor(&f, "grid");
    const struct {
        plan_piece piece;
        dtype stored;
        int64_t rows, cols, stride0, stride1;
        const char *part;
    } bad[] = {
        {{-1, 0, 6}, DT_F32, 6, 4, 16, 4, "no such tensor"},
        {{99, 0, 6}, DT_F32, 6, 4, 16, 4, "no such tensor"},
        {{grid, 0, 6}, DT_F16, 6, 4, 16, 4, "another type"},
        {{grid, 0, 7}, DT_F32, 7, 4, 16, 4, "past the end"},
        {{grid, 4, 6}, DT_F32, 6, 4, 16, 4, "past the end"},
        {{grid, -4, 6}, DT_F32, 6, 4, 16, 4, "past the end"},
        {{grid, INT64_MAX, 6}, DT_F32, 6, 4, 16, 4, "past the end"},
        {{grid, 0, 6}, DT_F32, 6, 4, 17, 4, "past the end"},
        {{grid, 0, 6}, DT_F32, 6, 4, INT64_MAX, 4, "past the end"},
        {{grid, 0, 6}, DT_F32, 6, 4, -16, 4, "past the end"},
        {{grid, 0, 6}, DT_F32, 6, 4, 16, -4, "past the end"},
        {{grid, 0, 5}, DT_F32, 6, 4, 16, 4, "not all of it"},
        {{grid, 0, 0}, DT_F32, 6, 4, 16, 4, "no rows"},
    };
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        for (int copied = 0; copied < 2; copied++) {
            plan_weight pw = {.name = "blk[0].w",
                              .mode = copied ? WEIGHT_COPIED : WEIGHT_MAPPED,
                              .stored = bad[i].stored,
                              .type = DT_F32,
                              .rank = 2,
                              .dim = {bad[i].rows, bad[i].cols},
                              .stride = {bad[i].stride0, bad[i].stride1},
                              .rows = bad[i].rows,
                              .pitch = bad[i].stride0,
                              .n_piece = 1,
                              .piece = &bad[i].piece,
                              .bytes = (size_t)(bad[i].rows * bad[i].cols) * 4};
            plan p = plan_of(&pw);
            weights *w = NULL;
            ck_assert_int_eq(weights_create(f.dg, NULL, &p, model_file_source(f.mf), NULL, &w),
                             WEFT_ERR_PLAN);
            expect_one(f.dg, W1501, bad[i].part);
            expect_one(f.dg, W1501, "blk[0].w");
            ck_assert_ptr_null(w);
            diag_reset(f.dg);
        }
    plan_piece blocks = {tensor(&f, "blocks"), 0, E}, scales = {tensor(&f, "scales"), 8, E};
    plan_weight pw = hf_weight(&blocks, &scales, 1);
    plan p = plan_of(&pw);
    weights *w = NULL;
    ck_assert_int_eq(weights_create(f.dg, NULL, &p, model_file_source(f.mf), NULL, &w),
                     WEFT_ERR_PLAN);
    expect_one(f.dg, W1501, "past the end");
    diag_reset(f.dg);
    pw.scales = NULL;
    ck_assert_int_eq(weights_create(f.dg, NULL, &p, model_file_source(f.mf), NULL, &w),
                     WEFT_ERR_PLAN);
    expect_one(f.dg, W1501, "scales are missing");
    close_files(&f);
}
END_TEST

SUITE_MAIN("weights", mxfp4_of_two_tensors_is_regrouped_bit_for_bit, in_place_is_in_place,
           scattered_rows_are_gathered, a_plan_for_another_file_is_refused)
