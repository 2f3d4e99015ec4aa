/* adapter_image.h - an adapter (LoRA) in an image, ready to be loaded into a slot of a session.
 *
 *     head   64 bytes: scale f64, hash u64, sites u64, bytes of names u64, zeros
 *     sites  64 bytes each: name offset u32, zero u32, index i64, rank i64, in i64, out i64, scale f64, offset of a u64, of b u64
 *     names  each with a NUL behind it; offsets count from the first
 *     numbers of a [rank, in] and b [out, rank], f32, each at a multiple of 64; offsets count from the head */
#ifndef WEFT_RUNTIME_PROGRAM_ADAPTER_IMAGE_H
#define WEFT_RUNTIME_PROGRAM_ADAPTER_IMAGE_H

#include "runtime/exec/adapters.h"
#include "runtime/program/image.h"

enum { ADAPTER_HEAD_BYTES = 64, ADAPTER_ROW_BYTES = 64 };

void adapter_image_write(const adapter_source *from, double scale, strbuf *out);
/* Its sites in a; numbers and names are those of the image. W1701 for bytes that are no adapter. */
weft_status adapter_image_read(weft_diag *dg, const char *program, const image_part *p, arena *a,
                               adapter_source *out, float *out_scale) WEFT_MUST_USE;

#endif
