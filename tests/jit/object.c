/* object.c - what test_elf_code loads: a table with addresses in it, data, calls within and outside. */
#include <stdint.h>

extern int64_t outside(int64_t x);
extern int64_t outside_data;

static const int64_t numbers[4] = {3, 5, 7, 11};
static int64_t twice(const int64_t *of, int64_t i);
int64_t inside(int64_t i);

typedef struct {
    int64_t n;
    int64_t (*const *fn)(int64_t);
} table;

int64_t inside(int64_t i)
{
    return outside(twice(numbers, i & 3)) + outside_data;
}

static int64_t last(int64_t i)
{
    return inside(i) + 1;
}

static int64_t (*const functions[])(int64_t) = {inside, last, outside};
extern const table code;
const table code = {3, functions};

static __attribute__((noinline)) int64_t twice(const int64_t *of, int64_t i)
{
    return 2 * of[i];
}
