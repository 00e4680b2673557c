"""Embeds sentences and continues a text from Python, by ctypes alone: what a binding of attend has to declare.

    python3 bindings.py libattend_model.so SENTENCE_MODEL LANGUAGE_MODEL TEXT
"""
import ctypes as c
import sys

library, sentence_model, language_model, text = sys.argv[1:]
attend = c.CDLL(library)
attend.att_error.restype = c.c_char_p


class Options(c.Structure):  # each begins with its size; what is not set is zero, the default
    def __init__(self, **values):
        super().__init__(size=c.sizeof(self), **values)


class SentenceInfo(Options):  # a struct may be shorter than the library's: the first fields suffice
    _fields_ = [("size", c.c_size_t), ("dim", c.c_int64), ("max_tokens", c.c_int64)]


class GenerateOptions(Options):
    _fields_ = [("size", c.c_size_t), ("max_tokens", c.c_int64)]


class Tokens(c.Structure):
    _fields_ = [("ids", c.POINTER(c.c_int32)), ("count", c.c_int64), ("rest", c.c_void_p * 16)]


class Generated(c.Structure):
    _fields_ = [("text", c.c_void_p), ("bytes", c.c_size_t), ("rest", c.c_void_p * 32)]


def call(function, *arguments):
    if getattr(attend, function)(*arguments):
        raise RuntimeError(attend.att_error(None).decode())


def opened(function, *arguments):
    pointer = c.c_void_p()
    call(function, *arguments, c.byref(pointer))
    return pointer


ctx = c.c_void_p()
call("att_open", c.byref(ctx), None)

sentences = (c.c_char_p * 2)(b"The cat sleeps.", b"A kitten naps.")
model = opened("att_sentence_open", ctx, sentence_model.encode(), None)
info = SentenceInfo()
call("att_sentence_describe", model, c.byref(info))
out = (c.c_float * info.dim * 2)()
call("att_sentence_encode", model, c.c_int64(2), sentences, None, out, None)
print("%.4f" % sum(a * b for a, b in zip(*out)))
attend.att_sentence_free(model)

generator = opened("att_text_generator_open", ctx, language_model.encode(), None)
attend.att_text_generator_tokenizer.restype = c.c_void_p
tokenizer = c.c_void_p(attend.att_text_generator_tokenizer(generator))
prompt, after = Tokens(), Generated()
call("att_tokenize", tokenizer, text.encode(), c.c_size_t(len(text.encode())), None, c.byref(prompt))
offsets = (c.c_int64 * 2)(0, prompt.count)
call("att_generate", generator, c.c_int64(1), prompt.ids, offsets, c.byref(GenerateOptions(max_tokens=24)), c.byref(after))
print(text + c.string_at(after.text, after.bytes).decode())
attend.att_generated_free(ctx, c.byref(after))
attend.att_tokens_free(ctx, c.byref(prompt))
attend.att_text_generator_free(generator)
attend.att_close(ctx)
