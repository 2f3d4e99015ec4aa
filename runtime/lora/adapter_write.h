/* adapter_write.h - sites of a model into an adapter file: a PEFT folder, or a GGUF file in llama.cpp's layout.
 *
 * Names, row orders and fused tensors are those of the format, by way of the model's weight lines (store_map.h). A scale
 * that the format can say stays a scale; where scales differ in a way that it cannot, they go into B. */
#ifndef WEFT_RUNTIME_LORA_ADAPTER_WRITE_H
#define WEFT_RUNTIME_LORA_ADAPTER_WRITE_H

#include "runtime/lora/adapter.h"

/* A path that ends in .gguf is a file, any other a folder, made if it is not there. bm is bound with its site names;
 * base: what the adapter is for, in words. W0705, W1004. */
weft_status adapter_write(weft_diag *dg, const char *path, const bound_model *bm,
                          const adapter_site *site, size_t n, const char *base) WEFT_MUST_USE;
bool adapter_path_is_gguf(const char *path);

#endif
