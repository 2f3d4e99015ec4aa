/* linear_float_panel.h - the scratch of kernels that copy some weights into a panel, for them and for the
 * table: a half of a first-level cache. */
#ifndef WEFT_KERNELS_NEON_LINEAR_FLOAT_PANEL_H
#define WEFT_KERNELS_NEON_LINEAR_FLOAT_PANEL_H

enum { PANEL_BYTES = 32 * 1024 };

#endif
