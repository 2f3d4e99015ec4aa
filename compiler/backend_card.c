/* backend_card.c - the back ends of cards by the names of their devices. */
#include "compiler/backend.h"

static const struct {
    const char *device;
    const backend *(*plain)(void), *(*rounding)(void); /* rounding NULL: it has none */
} cards[] = {
    {"cuda", backend_cuda, backend_cuda_rounding},
    {"metal", backend_metal, NULL},
};

enum { CARDS = sizeof cards / sizeof *cards };

const backend *backend_card(const char *device, bool rounds)
{
    size_t n = strcspn(device, ":");
    for (size_t i = 0; i < CARDS; i++) {
        const backend *(*make)(void) = rounds ? cards[i].rounding : cards[i].plain;
        if (strlen(cards[i].device) == n && memcmp(cards[i].device, device, n) == 0)
            return make ? make() : NULL;
    }
    return NULL;
}

bool backend_card_rounds(const backend *be)
{
    for (size_t i = 0; i < CARDS; i++)
        if (cards[i].rounding && cards[i].rounding() == be)
            return true;
    return false;
}
