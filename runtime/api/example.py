"""example.py - a question for a chat model, through ctypes.

    python3 example.py MODEL "Why is the sky blue?" [TEMPLATE]

The structs below are those of weft.h, field by field. libweft is found as the system's loader finds it, or where
WEFT_LIBRARY says."""
import ctypes as c
import json
import os
import sys

lib = c.CDLL(os.environ.get("WEFT_LIBRARY", "libweft.so.0"))


class SessionOptions(c.Structure):  # the first fields: the library takes the others as 0
    _fields_ = [("size", c.c_size_t), ("context", c.c_int64), ("sequences", c.c_int64), ("batch", c.c_int64),
                ("threads", c.c_int64)]


class Chat(c.Structure):
    _fields_ = [("size", c.c_size_t), ("messages", c.c_char_p), ("tools", c.c_char_p), ("documents", c.c_char_p),
                ("variables", c.c_char_p), ("no_answer", c.c_bool)]


class GenerationOptions(c.Structure):
    _fields_ = [("size", c.c_size_t), ("seq", c.c_int64), ("max_tokens", c.c_int64)]


class Piece(c.Structure):
    _fields_ = [("token", c.c_int32), ("text", c.POINTER(c.c_char)), ("bytes", c.c_size_t), ("logprob", c.c_float),
                ("top", c.c_void_p), ("n_top", c.c_int64), ("prompt_done", c.c_int64), ("prompt_total", c.c_int64),
                ("end", c.c_int)]


lib.weft_diag_create.restype = c.c_void_p
lib.weft_diag_text.restype = c.c_char_p
lib.weft_end_name.restype = c.c_char_p
dg = c.c_void_p(lib.weft_diag_create())


def made(function, *arguments):
    """Calls a function whose last argument is where its result goes."""
    out = c.c_void_p()
    if function(dg, *arguments, c.byref(out)) != 0:
        sys.exit(lib.weft_diag_text(dg).decode())
    return out


def sized(kind, **fields):
    return kind(size=c.sizeof(kind), **fields)


def main():
    if len(sys.argv) < 3:
        sys.exit("usage: example.py MODEL QUESTION [TEMPLATE]")
    choice = sys.argv[3].encode() if len(sys.argv) > 3 else None
    model = made(lib.weft_model_open, os.fsencode(sys.argv[1]), None)
    tokenizer = made(lib.weft_tokenizer_of_model, model)
    template = made(lib.weft_template_open, model, choice)
    session = made(lib.weft_session_create, model, c.byref(sized(SessionOptions, threads=-1)))
    options = sized(GenerationOptions, max_tokens=64)
    answer = made(lib.weft_generation_create, session, tokenizer, c.byref(options))

    chat = sized(Chat, messages=json.dumps([{"role": "user", "content": sys.argv[2]}]).encode())
    ids, n = c.POINTER(c.c_int32)(), c.c_size_t()
    if lib.weft_template_encode(dg, template, tokenizer, c.byref(chat), c.byref(ids), c.byref(n)) != 0:
        sys.exit(lib.weft_diag_text(dg).decode())
    if lib.weft_generation_prompt(dg, answer, ids, n) != 0:
        sys.exit(lib.weft_diag_text(dg).decode())

    @c.CFUNCTYPE(c.c_bool, c.c_void_p, c.POINTER(Piece))
    def show(_, piece):
        sys.stdout.write(c.string_at(piece.contents.text, piece.contents.bytes).decode())
        sys.stdout.flush()
        return True

    end = c.c_int()
    if lib.weft_generate(dg, answer, show, None, c.byref(end)) != 0:
        sys.exit(lib.weft_diag_text(dg).decode())
    print("\n[" + lib.weft_end_name(end).decode() + "]")

    lib.weft_free(ids)
    for release, thing in ((lib.weft_generation_destroy, answer), (lib.weft_session_destroy, session),
                           (lib.weft_template_close, template), (lib.weft_tokenizer_close, tokenizer),
                           (lib.weft_model_close, model), (lib.weft_diag_destroy, dg)):
        release(thing)


main()
