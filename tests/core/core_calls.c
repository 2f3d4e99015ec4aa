/* core_calls.c - a program that may call all of weft.h but what opens files or reads JSON, and reads plans: it has
 * to link with libweft_core.a alone (core.sh). */
#include "compiler/plan_check.h"
#include "compiler/plan_file.h"
#include "runtime/api/api_model.h"
#include "runtime/program/image.h"

#include <stdio.h>

typedef void call(void);
#define CALL(name) (call *)name

static call *const calls[] = {
    CALL(weft_adapter_close),
    CALL(weft_adapter_rank),
    CALL(weft_append_range),
    CALL(weft_cancel_clear),
    CALL(weft_cancel_create),
    CALL(weft_cancel_destroy),
    CALL(weft_cancel_set),
    CALL(weft_decode),
    CALL(weft_decoder_create),
    CALL(weft_decoder_destroy),
    CALL(weft_decoder_end),
    CALL(weft_decoder_put),
    CALL(weft_diag_at),
    CALL(weft_diag_clear),
    CALL(weft_diag_count),
    CALL(weft_diag_create),
    CALL(weft_diag_destroy),
    CALL(weft_diag_json),
    CALL(weft_diag_text),
    CALL(weft_encode),
    CALL(weft_end_name),
    CALL(weft_eval),
    CALL(weft_fork),
    CALL(weft_free),
    CALL(weft_generate),
    CALL(weft_generation_change),
    CALL(weft_generation_create),
    CALL(weft_generation_destroy),
    CALL(weft_generation_fork),
    CALL(weft_generation_ids),
    CALL(weft_generation_load),
    CALL(weft_generation_piece),
    CALL(weft_generation_prompt),
    CALL(weft_generation_save),
    CALL(weft_generation_text),
    CALL(weft_kv_change),
    CALL(weft_kv_tiers),
    CALL(weft_length),
    CALL(weft_logprobs),
    CALL(weft_lora_attach),
    CALL(weft_lora_load),
    CALL(weft_lora_unload),
    CALL(weft_model_bytes),
    CALL(weft_model_check),
    CALL(weft_model_close),
    CALL(weft_model_context),
    CALL(weft_model_float),
    CALL(weft_model_int),
    CALL(weft_model_name),
    CALL(weft_model_token_bytes),
    CALL(weft_output),
    CALL(weft_prefixes_drop),
    CALL(weft_remove_range),
    CALL(weft_sampler_accept),
    CALL(weft_sampler_choose),
    CALL(weft_sampler_create),
    CALL(weft_sampler_defaults),
    CALL(weft_sampler_destroy),
    CALL(weft_sampler_reset),
    CALL(weft_sequence_load),
    CALL(weft_sequence_save),
    CALL(weft_session_about),
    CALL(weft_session_bytes),
    CALL(weft_session_create),
    CALL(weft_session_destroy),
    CALL(weft_state_bytes),
    CALL(weft_status_meaning),
    CALL(weft_step),
    CALL(weft_template_close),
    CALL(weft_template_open),
    CALL(weft_template_origin),
    CALL(weft_token_bos),
    CALL(weft_token_ends),
    CALL(weft_token_eos),
    CALL(weft_token_find),
    CALL(weft_token_special),
    CALL(weft_token_text),
    CALL(weft_tokenizer_close),
    CALL(weft_tokenizer_of_model),
    CALL(weft_tokenizer_size),
    CALL(weft_truncate),
    CALL(weft_version),
    CALL(api_plan_open),
    CALL(chat_render),
    CALL(plan_read),
    CALL(plan_check),
    CALL(image_open),
};

int main(void)
{
    size_t n = 0;
    while (n < sizeof calls / sizeof *calls && calls[n])
        n++;
    printf("%zu calls, %d kernels\n", n, (int)kernel_row_count);
    return n < sizeof calls / sizeof *calls;
}
