/* chat_image.h - a chat template as bytes, and back: what a built program carries of a model's template, with the special tokens
 * that it may name.
 *
 * Little endian: "WCHT", a version, where the template came from, the special tokens, the template, and the one for tools where
 * there is one. The bytes may be a stranger's: W1301, or a template, which can do nothing but render (jinja.h). */
#ifndef WEFT_RUNTIME_TEXT_CHAT_IMAGE_H
#define WEFT_RUNTIME_TEXT_CHAT_IMAGE_H

#include "runtime/text/chat.h"

/* Added to out. The same template gives the same bytes. */
void chat_image_write(const chat_template *ct, strbuf *out);

/* The template in these bytes, or what `choice` names (see chat_open) with the special tokens in them. Where there are none it
 * has neither: without a choice W1305. W1308 in a program without templates (text_parts.h). The bytes may go afterwards; name is for messages. */
weft_status chat_image_open(weft_diag *dg, const char *name, str bytes, const char *choice,
                            chat_template **out_ct) WEFT_MUST_USE;

#endif
