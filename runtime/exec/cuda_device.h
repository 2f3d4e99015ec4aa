/* cuda_device.h - a CUDA card as a device: its memory, its stream of work, and weft_phases (kernels/cuda), which runs plans.
 *
 * Nothing of NVIDIA's is linked: the driver is found at run time (cuda_driver.h), the kernels in libweft_cuda.so beside the
 * program. The card's primary context is used, so that a host that uses CUDA itself shares it; it is current only inside calls.
 * What the driver says when something fails is W1610, short memory on the card W0902. */
#ifndef WEFT_RUNTIME_EXEC_CUDA_DEVICE_H
#define WEFT_RUNTIME_EXEC_CUDA_DEVICE_H

#include "runtime/exec/cuda_driver.h"
#include "runtime/exec/cuda_nvrtc.h"
#include "runtime/exec/device.h"

extern const device_kind device_kind_cuda;

/* Card `index` with this driver, these kernels and this maker of kernels for plans (NULL: none are made), all of which must outlive it. The kind's open
 * finds them itself. */
weft_status cuda_device_open(weft_diag *dg, const cuda_driver *driver, const weft_cuda_image *image,
                             const cuda_maker *maker, int index, device **out_d) WEFT_MUST_USE;

/* A card that is not here: it says what memory plans and weights need on one with so many multiprocessors, and does nothing
 * else. Always open. */
enum { CUDA_MULTIPROCESSORS_USUAL = 132 };
device *cuda_device_absent(void);

/* The cards that there are, for people: "NVIDIA H200, 139.8 GiB, sm_90". W1608. */
typedef struct {
    char name[96];
    uint64_t bytes;
    int major, minor, multiprocessors;
} cuda_card;
weft_status cuda_cards(weft_diag *dg, cuda_card *out, int n_max, int *out_n) WEFT_MUST_USE;

/* The file that kernels would be loaded from, without loading it; empty: there is none. cuda_library.c */
void cuda_library_path(strbuf *out);
/* What it has; it stays for the life of the process. W1609: it is not there, or of another build. */
weft_status cuda_library(weft_diag *dg, const weft_cuda_image **out_image) WEFT_MUST_USE;

#endif
