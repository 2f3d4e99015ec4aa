/* library_path.h - where the libraries are that Weft loads when asked: libweft_llvm, libweft_cuda. */
#ifndef WEFT_RUNTIME_BASE_LIBRARY_PATH_H
#define WEFT_RUNTIME_BASE_LIBRARY_PATH_H

#include "runtime/base/str.h"

/* The file that is called `name`: where the environment's variable `named` says, beside the program or library that this is part
 * of or one folder up, in lib/weft beside its folder, or where Weft was installed. Empty: there is none. */
void library_path(const char *name, const char *named, strbuf *out);

#endif
