/* plan_file_impl.h - the fields of a plan file as tables, which the writer and the reader both walk. */
#ifndef WEFT_COMPILER_PLAN_FILE_IMPL_H
#define WEFT_COMPILER_PLAN_FILE_IMPL_H

#include "compiler/backend.h"
#include "compiler/plan_file.h"
#include "runtime/base/vec.h"

/* The head of a file (plan_file.h). */
#define PLAN_FILE_MAGIC "weftplan"
enum {
    PLAN_FILE_NUMBER = 8, /* where the version is */
    PLAN_FILE_LENGTH = 16,
    PLAN_FILE_SUM = 24,
    PLAN_FILE_FIELDS = 32,
    PLAN_FILE_BODY = 40,
    PLAN_FILE_TEXT_MAX = 4 << 20, /* bytes of all sources, as far as places reach */
    PLAN_HASH_MAX = 40,           /* of a hash as text */
};

/* ---- plan_fields.c ---- */

/* The words of an enum, in their order; NULL ends the list. */
extern const char *const plan_space_names[];
extern const char *const plan_io_names[];
extern const char *const plan_rows_names[];
extern const char *const plan_layout_names[];
extern const char *const plan_mode_names[];
extern const char *const plan_lora_names[];

typedef enum {
    FIELD_INT,     /* from min to max; 1, 4 or 8 bytes */
    FIELD_INDEX,   /* below the count */
    FIELD_BOOL,    /* true or false */
    FIELD_FLOAT,   /* float or double */
    FIELD_TEXT,    /* const char * */
    FIELD_WORD,    /* an enum, by its words */
    FIELD_TYPE,    /* dtype */
    FIELD_PLACE,   /* weft_loc: a number of the list of places */
    FIELD_BYTES,   /* a pointer to as many bytes as the count says; in JSON in hexadecimal */
    FIELD_LIST,    /* a pointer to as many records as the count says */
    FIELD_RECORDS, /* records inside the struct */
} plan_field_kind;

typedef struct plan_record plan_record;

typedef struct {
    const char *key;
    plan_field_kind kind;
    size_t at;    /* in its struct */
    size_t bytes; /* of one item */
    size_t n;     /* items inside the struct: 1, or the length of an array */
    bool must;    /* always there; else JSON leaves it out where it is the default */
    bool known;   /* the count was read before: there are as many, or the field is left out */
    bool of_plan; /* the count is a member of plan, not of its struct */
    size_t count, count_bytes; /* the member that has the count; no bytes: there is none */
    int64_t min, max;          /* of an integer, or of how many a list may have */
    int64_t otherwise;         /* the default of an integer */
    int64_t less;              /* taken off an integer in JSON */
    const char *const *words;
    const plan_record *of;
} plan_field;

/* How JSON shows it. */
typedef enum {
    FORM_OBJECT, /* {key: value} */
    FORM_ITEMS,  /* [value]: the defaults at its end are left out */
    FORM_VALUE,  /* the value of its only field */
} plan_form;

struct plan_record {
    const char *name; /* for messages; NULL: they need none */
    size_t bytes;     /* of the struct */
    plan_form form;
    bool line; /* ends a line */
    bool null; /* one whose first field is 0 is null */
    const plan_field *field;
    size_t n_field;
};

/* Whom a file is for. */
typedef struct {
    const char *weft, *arch, *backend, *level, *hash, *model, *entry;
} plan_file_head;

typedef struct {
    int32_t file, line, column;
} plan_file_place;

/* What the numbers in steps stand for. */
typedef struct {
    int32_t n_file, n_place, n_kernel;
    const char *const *file;
    const plan_file_place *place;
    const plan_kernel *kernel;
} plan_file_tail;

/* The three parts of a file. */
extern const plan_record plan_head_record, plan_body_record, plan_tail_record;
/* Changes with the tables, and with what they and the arguments of kernels are made of. */
uint64_t plan_fields_sum(void);
void plan_hash_text(model_hash model, char to[PLAN_HASH_MAX]);
plan_file_head plan_head_of(const plan *p, model_hash model, char hash[PLAN_HASH_MAX]);

int64_t plan_field_int(size_t bytes, const void *at);
void plan_field_set_int(size_t bytes, void *at, int64_t x);

/* More than one value: an array, or what stands apart from the struct. */
static inline bool plan_field_is_list(const plan_field *f)
{
    return f->n > 1 || f->kind >= FIELD_BYTES;
}

/* ---- plan_read_fields.c ---- */

typedef struct {
    weft_diag *dg;
    const char *name; /* of the file */
    arena *a;         /* the plan's */
    plan *p;
    const backend *be; /* that it was made for; NULL until it is known */
    const weft_loc *place;
    int64_t n_place;
    const uint8_t *at, *end; /* what is left of the file */
    size_t bytes;            /* of all lists so far */
    struct {
        const char *name;
        size_t index;
    } part[4]; /* what is being read, for messages: a bucket, then a step of it */
    int n_part;
} plan_reader;

/* W1507 at the part being read. */
weft_status plan_damaged(plan_reader *r, const char *fmt, ...) WEFT_PRINTF(2, 3);
uint64_t plan_get_bits(const uint8_t *at, size_t bytes); /* little-endian */
/* The fields of a record. */
weft_status plan_read_fields(plan_reader *r, const plan_record *rec, void *to) WEFT_MUST_USE;

/* ---- plan_places.c ---- */

typedef VEC(weft_loc) plan_places;

size_t plan_place_of(plan_places *at, const weft_loc *loc); /* its number, added if need be */
/* What the numbers stand for; then free it. */
void plan_tail_make(const plan *p, const plan_places *at, plan_file_tail *out);
void plan_tail_free(plan_file_tail *tail);
/* The reader's places, from those of the file. */
weft_status plan_places_read(plan_reader *r, const plan_file_tail *tail) WEFT_MUST_USE;

#endif
