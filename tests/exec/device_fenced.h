/* device_fenced.h - a device for tests whose memory is not the host's, and a back end with kernels of its own.
 *
 * Its memory can be touched only while the device copies or runs, so whoever else reads or writes it ends
 * with SIGSEGV. Its kernels take nothing that is not in that memory. A call is begun by submit and done by
 * wait. The kernels are the reference's under other names, so results are the CPU's bit for bit. */
#ifndef WEFT_TESTS_EXEC_DEVICE_FENCED_H
#define WEFT_TESTS_EXEC_DEVICE_FENCED_H

#include "compiler/backend.h"
#include "runtime/exec/device.h"

extern const device_kind device_kind_fenced;
const backend *backend_fenced(void);

size_t fenced_held(const device *d); /* bytes that are allocated */
/* Copies fail after n more of them; -1: never. */
void fenced_fail_after(device *d, int64_t n);

#endif
