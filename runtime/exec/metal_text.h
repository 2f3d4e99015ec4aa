/* metal_text.h - the shaders as texts, and all of them as one, which Metal's compiler is given: it knows no files. */
#ifndef WEFT_RUNTIME_EXEC_METAL_TEXT_H
#define WEFT_RUNTIME_EXEC_METAL_TEXT_H

/* A file by the name that it is included by. */
typedef struct {
    const char *name, *text;
} metal_text_file;

#ifdef __cplusplus
#include <string>

extern "C" {
#endif
/* Those that libweft_metal has: metal.cmake lists them. */
extern const metal_text_file metal_text_files[];
extern const int metal_text_count;
#ifdef __cplusplus
}

/* The file called `name` with all that it includes in its place: tables (.def) as often as they are included, others once. Lines keep the
 * names and numbers that they have in their files, so that messages of the compiler do. What is not among the files stays
 * as it is. instead: takes the place of the file of its name; null: none does. */
std::string metal_text_join(const metal_text_file *files, int n, const metal_text_file *instead,
                            const char *name);
#endif

#endif
