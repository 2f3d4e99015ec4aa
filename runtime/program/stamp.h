/* stamp.h - where a program's image is: written into the program when the image is attached (runtime/build/elf_stamp.h).
 *
 * The image is mapped by the system, as a segment of the program or shared library itself: nothing is opened at run time, so
 * it needs neither /proc nor a name. The linked file has a note section of its own, `.weft`, and so a program header of its own; attaching
 * turns that header into the segment, and the section into the image's. The note says where this stamp is. */
#ifndef WEFT_RUNTIME_PROGRAM_STAMP_H
#define WEFT_RUNTIME_PROGRAM_STAMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STAMP_MAGIC "Weft stamp 1\n" /* 16 bytes, the rest zeros */
#define STAMP_NOTE_NAME "Weft"
enum { STAMP_NOTE_TYPE = 0x77656674, STAMP_NOTE_ALIGN = 16 };

typedef struct {
    char magic[16];
    int64_t delta;  /* from this struct to the image; 0: none is attached */
    uint64_t bytes; /* of the image */
    uint64_t sum;   /* of its directory */
    uint64_t zero;
} program_stamp;

/* The image that was attached to this program; false: none. Nothing of it is read. */
bool stamp_image(const void **out_data, size_t *out_bytes, uint64_t *out_sum);

#endif
