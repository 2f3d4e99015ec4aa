/* metal_device.h - a Metal GPU as a device: memory that it shares with the host, a queue of calls for each session, and weft_phase
 * (kernels/metal), which runs plans, once for each phase.
 *
 * Nothing of Apple's is linked: libweft_metal is found at run time (metal_driver.h), where there is Metal. Weights are read where
 * files are mapped; only what has to be converted is copied. What Metal says when something fails is W1610, short memory
 * W0902, a GPU that is too old W0901, shaders that do not compile W1615. */
#ifndef WEFT_RUNTIME_EXEC_METAL_DEVICE_H
#define WEFT_RUNTIME_EXEC_METAL_DEVICE_H

#include "runtime/exec/device.h"
#include "runtime/exec/metal_driver.h"

extern const device_kind device_kind_metal;

/* GPU `index` by this driver, which must outlive it. The kind's open finds it itself. */
weft_status metal_device_open(weft_diag *dg, const metal_driver *driver, int index,
                              device **out_d) WEFT_MUST_USE;

/* A GPU that is not here: it says what memory plans and weights need on one with so many cores, and does nothing else. Always
 * open. */
enum { METAL_CORES_USUAL = 10 };
device *metal_device_absent(void);

/* The GPUs that there are. W1614. */
weft_status metal_gpus(weft_diag *dg, metal_facts *out, int n_max, int *out_n) WEFT_MUST_USE;

/* The file that the driver would be loaded from, without loading it; empty: there is none. metal_library.c */
void metal_library_path(strbuf *out);
/* The driver; it stays for the life of the process. W1614: there is no Metal here, or the library is of another build. */
weft_status metal_library(weft_diag *dg, const metal_driver **out_d) WEFT_MUST_USE;

#endif
