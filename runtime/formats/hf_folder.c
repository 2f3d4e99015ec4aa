/* hf_folder.c - a Hugging Face folder: config.json, and model.safetensors or an index with shards.
 *
 * Names of shards come from a JSON file, so they are not trusted: a shard is a plain file name, and
 * what it names must lie in the folder once links are followed. One other place is allowed: in the
 * hub's cache, REPO/snapshots/REVISION holds links into REPO/blobs. */
#include "runtime/formats/json_read.h"
#include "runtime/base/mem.h"
#include "runtime/formats/model_file_impl.h"

#include "runtime/base/file.h"
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#define SINGLE "model.safetensors"
#define INDEX "model.safetensors.index.json"
#define CONFIG "config.json"

static const json_limits index_limits = {
    .bytes_max = 100 * 1000 * 1000, .values_max = 1 << 21, .depth_max = 16};

static const char *join(arena *a, const char *folder, str name)
{
    return arena_printf(a, "%s/" STR_FMT, folder, STR_ARG(name)).p;
}

bool hf_exists(const char *folder, const char *name)
{
    arena *scratch = arena_create();
    bool there = access(join(scratch, folder, str_of(name)), F_OK) == 0;
    arena_destroy(scratch);
    return there;
}

/* What comes before the last slash of a path without a slash at its end; "" if there is none. */
static str parent_of(str path)
{
    while (path.n > 0 && path.p[path.n - 1] != '/')
        path.n--;
    return (str){path.p, path.n ? path.n - 1 : 0};
}

static bool is_inside(str path, str folder)
{
    return path.n > folder.n && str_starts(path, folder) &&
           (path.p[folder.n] == '/' || folder.n == 1);
}

/* Both are real paths. */
static bool is_allowed(arena *a, str path, str folder)
{
    if (is_inside(path, folder))
        return true;
    str snapshots = parent_of(folder);
    if (!str_ends(snapshots, STR("/snapshots")))
        return false;
    str repo = parent_of(snapshots);
    return is_inside(path, arena_printf(a, STR_FMT "/blobs", STR_ARG(repo)));
}

static weft_status resolve(weft_diag *dg, arena *a, const char *path, str *out_real)
{
    char *real = mem_adopt(realpath(path, NULL));
    if (!real)
        return weft_fail(dg, W1001, WEFT_NOWHERE, "cannot open %s: %s", path,
                         file_reason_of(errno).text);
    *out_real = arena_str(a, str_of(real));
    mem_free(real);
    return WEFT_OK;
}

weft_status hf_sibling(weft_diag *dg, arena *a, const char *folder, str name, const char **out_path)
{
    if (name.n == 0 || memchr(name.p, '/', name.n) || str_eqz(name, ".") || str_eqz(name, ".."))
        return weft_fail(dg, W1009, WEFT_NOWHERE,
                         "\"" STR_FMT "\" is not the plain name of a file in %s", STR_ARG(name),
                         folder);
    const char *path = join(a, folder, name);
    str real_folder, real;
    WEFT_TRY(resolve(dg, a, folder, &real_folder));
    WEFT_TRY(resolve(dg, a, path, &real));
    if (!is_allowed(a, real, real_folder))
        return weft_fail(dg, W1009, WEFT_NOWHERE,
                         "%s is a link to " STR_FMT ", outside the model's folder", path,
                         STR_ARG(real));
    *out_path = path;
    return WEFT_OK;
}

static weft_status open_shard(weft_diag *dg, model_file *mf, str name)
{
    const char *path;
    value metadata;
    weft_status status = hf_sibling(dg, mf->home, mf->folder, name, &path);
    if (status == WEFT_OK)
        status = model_add_part(dg, mf, path);
    if (status != WEFT_OK) {
        weft_note(dg, "%s/" INDEX " names this shard", mf->folder);
        return status;
    }
    return safetensors_read(dg, mf, mf->parts.n - 1, &metadata);
}

/* Where the index says a tensor is. */
typedef struct {
    str shard, tensor;
    int part;
} claim;

static int by_shard(const void *a, const void *b)
{
    return str_cmp(((const claim *)a)->shard, ((const claim *)b)->shard);
}

/* Every shard once, in the order of their names; then each tensor must be where it is put. */
static weft_status open_shards(weft_diag *dg, model_file *mf, const char *index, claim *claims,
                               size_t n)
{
    qsort(claims, n, sizeof *claims, by_shard);
    for (size_t i = 0; i < n; i++) {
        if (i == 0 || !str_eq(claims[i].shard, claims[i - 1].shard)) {
            if (mf->parts.n == MODEL_PARTS_MAX)
                return weft_fail(dg, W1105, WEFT_NOWHERE, "%s: names more than %d shards", index,
                                 MODEL_PARTS_MAX);
            WEFT_TRY(open_shard(dg, mf, claims[i].shard));
        }
        claims[i].part = (int)mf->parts.n - 1;
    }
    WEFT_TRY(model_index_tensors(dg, mf));
    for (size_t i = 0; i < n; i++) {
        const model_tensor *t = model_file_tensor(mf, claims[i].tensor);
        if (!t || t->part != claims[i].part)
            return weft_fail(dg, W1006, WEFT_NOWHERE,
                             "%s: puts tensor " STR_FMT " in " STR_FMT ", but it is %s%s", index,
                             STR_ARG(claims[i].tensor), STR_ARG(claims[i].shard),
                             t ? "in " : "not there", t ? mf->parts.at[t->part].path : "");
    }
    return WEFT_OK;
}

static weft_status read_index(weft_diag *dg, arena *scratch, const char *index, claim **out_claims,
                              size_t *out_n)
{
    value root;
    WEFT_TRY(json_read_file(dg, scratch, index, index_limits, &root));
    const value *map = value_get(&root, STR("weight_map"));
    if (value_kind_of(map) != VALUE_OBJECT)
        return weft_fail(dg, W1006, WEFT_NOWHERE, "%s: weight_map is missing or not an object",
                         index);
    size_t n = value_count(map);
    claim *claims = ARENA_ARRAY(scratch, claim, n);
    for (size_t i = 0; i < n; i++) {
        const value_member *m = &map->as.object.members[i];
        claims[i].tensor = m->name;
        if (!value_str(&m->v, &claims[i].shard))
            return weft_fail(dg, W1006, WEFT_NOWHERE,
                             "%s: tensor " STR_FMT ": the name of its shard is not a string", index,
                             STR_ARG(m->name));
    }
    *out_claims = claims;
    *out_n = n;
    return WEFT_OK;
}

static weft_status open_index(weft_diag *dg, model_file *mf)
{
    const char *index;
    claim *claims = NULL;
    size_t n = 0;
    WEFT_TRY(hf_sibling(dg, mf->home, mf->folder, STR(INDEX), &index));
    arena *scratch = arena_create();
    weft_status status = read_index(dg, scratch, index, &claims, &n);
    if (status == WEFT_OK)
        status = open_shards(dg, mf, index, claims, n);
    arena_destroy(scratch);
    return status;
}

weft_status hf_open_folder(weft_diag *dg, model_file *mf, const char *folder)
{
    const char *path;
    value metadata;
    mf->format = MODEL_HF;
    mf->folder = folder;
    WEFT_TRY(hf_sibling(dg, mf->home, folder, STR(CONFIG), &path));
    WEFT_TRY(hf_read_config(dg, mf, path));
    if (hf_exists(folder, SINGLE)) {
        WEFT_TRY(hf_sibling(dg, mf->home, folder, STR(SINGLE), &path));
        WEFT_TRY(model_add_part(dg, mf, path));
        return safetensors_read(dg, mf, 0, &metadata);
    }
    if (hf_exists(folder, INDEX))
        return open_index(dg, mf);
    return weft_fail(dg, W1011, WEFT_NOWHERE, "%s: holds neither " SINGLE " nor " INDEX, folder);
}

/* Whether the folder's index names this file among its shards. */
static weft_status index_names(weft_diag *dg, model_file *mf, const char *folder, str name,
                               bool *out_named)
{
    const char *index;
    claim *claims = NULL;
    size_t n = 0;
    WEFT_TRY(hf_sibling(dg, mf->home, folder, STR(INDEX), &index));
    arena *scratch = arena_create();
    weft_status status = read_index(dg, scratch, index, &claims, &n);
    bool named = false;
    for (size_t i = 0; i < n && !named; i++)
        named = str_eq(claims[i].shard, name);
    arena_destroy(scratch);
    *out_named = named;
    return status;
}

weft_status hf_open_single(weft_diag *dg, model_file *mf)
{
    value metadata;
    mf->format = MODEL_HF;
    WEFT_TRY(safetensors_read(dg, mf, 0, &metadata));
    mf->keys = metadata;
    return WEFT_OK;
}

weft_status hf_open_file(weft_diag *dg, model_file *mf)
{
    str path = str_of(mf->path), parent = parent_of(path);
    str name = {path.p + path.n, 0};
    while (name.p > path.p && name.p[-1] != '/') {
        name.p--;
        name.n++;
    }
    const char *folder = name.n == path.n ? "." : parent.n ? arena_str(mf->home, parent).p : "/";
    bool of_model =
        str_ends(name, STR(".json")) || (str_eqz(name, SINGLE) && hf_exists(folder, CONFIG));
    if (!of_model && hf_exists(folder, CONFIG) && hf_exists(folder, INDEX))
        WEFT_TRY(index_names(dg, mf, folder, name, &of_model));
    if (of_model)
        return hf_open_folder(dg, mf, folder);
    WEFT_TRY(model_add_part(dg, mf, mf->path));
    return hf_open_single(dg, mf);
}
