/* version.h - which Weft this is; written at build time by version.cmake. */
#ifndef WEFT_RUNTIME_CLI_VERSION_H
#define WEFT_RUNTIME_CLI_VERSION_H

extern const char build_version[]; /* "0.1.0" */
extern const char build_commit[];  /* of git, "-dirty" when files differ from it; or "unknown" */

#endif
