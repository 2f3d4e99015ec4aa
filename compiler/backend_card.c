/* backend_card.c - the back ends of cards by the names of their devices. */
#include "compiler/backend.h"

static const struct {
    const char *device;
    const backend *(*make[ROUNDING_BF16 + 1])(void); /* NULL: it has none */
} cards[] = {
    {"cuda",
     {[ROUNDING_USUAL] = backend_cuda,
      [ROUNDING_NONE] = backend_cuda_exact,
      [ROUNDING_BF16] = backend_cuda_rounding}},
    {"metal", {[ROUNDING_USUAL] = backend_metal, [ROUNDING_NONE] = backend_metal}},
};

enum { CARDS = sizeof cards / sizeof *cards };

const backend *backend_card(const char *device, backend_rounding how)
{
    size_t n = strcspn(device, ":");
    for (size_t i = 0; i < CARDS; i++) {
        const backend *(*make)(void) = cards[i].make[how];
        if (strlen(cards[i].device) == n && memcmp(cards[i].device, device, n) == 0)
            return make ? make() : NULL;
    }
    return NULL;
}

bool backend_card_is(const backend *be, backend_rounding how)
{
    for (size_t i = 0; i < CARDS; i++)
        if (cards[i].make[how] && cards[i].make[how]() == be)
            return true;
    return false;
}
