#!/bin/sh
# core.sh - what a program of libweft_core.a has in it, and what not.
#
#   core.sh PROGRAM NM
#
# It has the executor, generation, text and the reader of plans; and nothing of the language, of graphs and passes, of the
# readers of model files and JSON.
set -eu
program=$1 nm=$2
names=$("$nm" "$program" | sed -n 's/^[0-9a-f]* [A-Za-z] //p' | sed 's/\..*//' | sort -u)
for name in plan_read plan_check session_create generation_create chat_render tok_encode k_linear_Q8_0_c; do
    echo "$names" | grep -qx "$name" || { echo "$name is not in it, so this proves nothing"; exit 1; }
done
others='dsl_|ast_|sema_|shape_|graph_|pass_fuse|pass_merge|pass_simplify|passes_|lower_|bucket_make|model_bind|bound_model|model_file_|gguf_|safetensors_|hf_|json_read|cJSON|adapter_open|codegen|LLVM'
if found=$(echo "$names" | grep -E "^($others)"); then
    echo "a program that only runs plans should not have:"
    echo "$found"
    exit 1
fi
"$program"
echo "$(echo "$names" | wc -l) names, none of the language, the compiler and the readers"
