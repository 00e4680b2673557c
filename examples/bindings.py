"""Embeds two sentences and continues a text from Python by ctypes alone: what a binding of attend has to declare.

    python3 bindings.py libattend_model.so SENTENCE_MODEL SENTENCE SENTENCE LANGUAGE_MODEL TEXT
"""
import ctypes as c
import sys

attend = c.CDLL(sys.argv[1])
attend.att_error.restype = c.c_char_p
attend.att_text_generator_tokenizer.restype = c.c_void_p
sentence_model, first, second, language_model, text = (argument.encode() for argument in sys.argv[2:])


class Sized(c.Structure):  # begins with its size: fields that it does not have are zero, or not filled
    def __init__(self, **values):
        super().__init__(size=c.sizeof(self), **values)


class SentenceInfo(Sized):
    _fields_ = [("size", c.c_size_t), ("dim", c.c_int64)]


class GenerateOptions(Sized):
    _fields_ = [("size", c.c_size_t), ("max_tokens", c.c_int64)]


class Tokens(c.Structure):  # no size: all of it has to be there, fields that are not used as room
    _fields_ = [("ids", c.POINTER(c.c_int32)), ("count", c.c_int64), ("rest", c.c_void_p * 32)]


class Generated(c.Structure):
    _fields_ = [("text", c.c_void_p), ("bytes", c.c_size_t), ("rest", c.c_void_p * 64)]


def call(function, *arguments):
    if getattr(attend, function)(*arguments):
        sys.exit(attend.att_error(None).decode())


ctx, model, generator = c.c_void_p(), c.c_void_p(), c.c_void_p()
call("att_open", c.byref(ctx), None)
call("att_sentence_open", ctx, sentence_model, None, c.byref(model))
info = SentenceInfo()
call("att_sentence_describe", model, c.byref(info))
vectors = (c.c_float * info.dim * 2)()
call("att_sentence_embed", model, c.c_int64(2), (c.c_char_p * 2)(first, second), None, None, vectors)
print("%.4f" % sum(a * b for a, b in zip(*vectors)))

call("att_text_generator_open", ctx, language_model, None, c.byref(generator))
prompt, after = Tokens(), Generated()
tokenizer = c.c_void_p(attend.att_text_generator_tokenizer(generator))
call("att_tokenize", tokenizer, text, c.c_size_t(len(text)), None, c.byref(prompt))
offsets = (c.c_int64 * 2)(0, prompt.count)
options = c.byref(GenerateOptions(max_tokens=24))
call("att_generate", generator, c.c_int64(1), prompt.ids, offsets, options, c.byref(after))
print((text + c.string_at(after.text, after.bytes)).decode())
