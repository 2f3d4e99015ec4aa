/* fmt_print.c - items into lines.
 *
 * This is Oppen's pretty printer (Prettyprinting, TOPLAS 1980) over an array: a first pass, from the
 * right, finds how far it is from every group and every break to the next place where the line may
 * end; the second prints, and ends a line at a break when what follows it does not fit. A group that
 * fits stays on its line. A comment ends a line wherever it stands. */
#include "dsl/fmt.h"

typedef struct {
    int stop;       /* the next break of this group */
    int outer;      /* the first break behind its end, whatever group that is of */
    uint32_t close; /* its end */
} level;

static void measure(fmt *f, uint32_t begin, uint32_t end, int end_at)
{
    VEC(level) levels = {0};
    level top = {end_at, end_at, end};
    uint32_t hard = end; /* the next comment */
    int hard_at = end_at, break_at = end_at;
    for (uint32_t i = end; i-- > begin;) {
        fmt_item *it = &f->items.at[i];
        switch (it->kind) {
        case ITEM_CLOSE:
            VEC_PUSH(&levels, top);
            top = (level){break_at, break_at, i};
            break;
        case ITEM_OPEN:
            it->size = hard < top.close ? INT_MAX : top.outer - it->at;
            WEFT_ASSERT(levels.n > 0);
            top = levels.at[--levels.n];
            break;
        case ITEM_BREAK:
            it->size = (top.stop < hard_at ? top.stop : hard_at) - it->at;
            top.stop = break_at = it->at;
            break;
        case ITEM_TRAIL:
        case ITEM_OWN:
            hard = i;
            hard_at = break_at = it->at;
            break;
        case ITEM_TEXT:
        case ITEM_SPACE:
            break;
        }
    }
    VEC_FREE(&levels);
}

/* What waits between two texts. */
typedef struct {
    int gap;
    bool down; /* a line end, then indent */
    int indent;
} pause;

static fmt_frame *top_frame(fmt *f)
{
    return &f->frames.at[f->frames.n - 1];
}

static int column(const fmt *f, const pause *p)
{
    return p->down ? p->indent : f->line.width + p->gap;
}

static void open_group(fmt *f, const fmt_item *it, const pause *p, int columns)
{
    const fmt_frame *outer = top_frame(f);
    int at = column(f, p);
    fmt_frame fr = {at - it->shift, outer->broken && it->size > columns - at, it->together};
    if (at > columns - columns / 3 || it->shift == FMT_OUTER)
        fr.indent = outer->indent; /* too far right to hang from */
    VEC_PUSH(&f->frames, fr);
}

static void pass_break(fmt *f, const fmt_item *it, pause *p, int columns)
{
    const fmt_frame *fr = top_frame(f);
    if (p->down || (fr->broken && (fr->together || it->size > columns - column(f, p)))) {
        *p = (pause){0, true, fr->indent};
        return;
    }
    p->gap += it->gap;
    if (f->frames.n > 1 && f->frames.at[f->frames.n - 2].broken)
        p->gap += it->shift;
}

void fmt_print(fmt *f, uint32_t begin, uint32_t end, int columns, int indent, bool flat)
{
    f->frames.n = 0;
    fmt_frame base = {indent, !flat, false};
    VEC_PUSH(&f->frames, base);
    if (!flat)
        measure(f, begin, end, end < f->items.n ? f->items.at[end].at : f->at);
    pause p = {0};
    for (uint32_t i = begin; i < end; i++) {
        const fmt_item *it = &f->items.at[i];
        switch (it->kind) {
        case ITEM_TEXT:
            if (p.down)
                fmt_line_begin(f, p.indent);
            else
                fmt_line_fill(f, p.gap);
            fmt_line_put(f, it->text, it->size);
            p = (pause){0};
            break;
        case ITEM_SPACE:
            p.gap += it->gap;
            break;
        case ITEM_BREAK:
            pass_break(f, it, &p, columns);
            break;
        case ITEM_OPEN:
            if (!flat)
                open_group(f, it, &p, columns);
            break;
        case ITEM_CLOSE:
            if (!flat)
                f->frames.n--;
            break;
        case ITEM_TRAIL:
            fmt_line_trail(f, it->text);
            p = (pause){0, true, p.down ? p.indent : top_frame(f)->indent};
            break;
        case ITEM_OWN:
            p = (pause){0, true, p.down ? p.indent : top_frame(f)->indent};
            fmt_line_note(f, p.indent, it->text);
            break;
        }
    }
}
