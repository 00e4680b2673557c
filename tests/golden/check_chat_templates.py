#!/usr/bin/env python3
"""Compares attend's texts of conversations with those of apply_chat_template of `transformers`, for chat templates as they
were published: 160 conversations each, whose text is the same, or which both refuse.

    pip install transformers==5.23.0 jinja2
    git clone --depth 1 https://github.com/ggml-org/llama.cpp
    git clone --depth 1 https://github.com/chujiezheng/chat_templates
    python3 check_chat_templates.py BUILD/libattend_model.so llama.cpp/models/templates chat_templates/chat_templates

Prints each template that differs, with its first difference, and how many are equal. Folders that are missing are left out.
"""
import ctypes
import itertools
import json
import pathlib
import sys
import tempfile

from transformers.utils.chat_template_utils import render_jinja_template

TOKENS = {"bos_token": "<s>", "eos_token": "</s>"}
TEXTS = ["Hello", "  spaces \n", "", "a\nb\n\nc", "naïve 日本語 😀 \u00a0", "{{ x }} {% if %} 'q' \"d\" \\n",
         "<think>\nthoughts\n</think>\n\nanswer", "<tool_response>1</tool_response>", "<|im_end|></s>[INST] x [/INST]",
         "```py\nprint(1)\n```"]


class Message(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("role", ctypes.c_char_p), ("text", ctypes.c_char_p), ("bytes", ctypes.c_size_t)]


class Options(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("reply", ctypes.c_bool)]


class Text(ctypes.Structure):
    _fields_ = [("text", ctypes.c_void_p), ("bytes", ctypes.c_size_t)]


def conversations():
    """160 conversations: with and without a system message, of 1 to 5 others, for an answer or not."""
    count = 0
    for length, start, system, reply in itertools.product([1, 2, 3, 5], range(10), [None, "S"], [True, False]):
        roles = ["user", "assistant"] if start != 9 else ["user", "user", "assistant"]  # the last do not alternate
        messages = [{"role": roles[i % len(roles)], "content": TEXTS[(start + 3 * i) % len(TEXTS)]} for i in range(length)]
        if system:
            messages.insert(0, {"role": "system", "content": TEXTS[start]})
        count += 1
        yield messages, reply
    assert count == 160


class Attend:
    def __init__(self, path):
        self.lib = ctypes.CDLL(str(path))
        self.lib.att_error.restype = ctypes.c_char_p
        self.ctx = ctypes.c_void_p()
        assert self.lib.att_open(ctypes.byref(self.ctx), None) == 0

    def error(self):
        return self.lib.att_error(self.ctx).decode()

    def open(self, template):
        """Returns a template, or None with the reason."""
        t = ctypes.c_void_p()
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "tokenizer_config.json").write_text(json.dumps(TOKENS))
            pathlib.Path(folder, "chat_template.jinja").write_text(template)
            status = self.lib.att_chat_template_open(self.ctx, folder.encode(), None, None, ctypes.byref(t))
        return (t, None) if status == 0 else (None, self.error())

    def render(self, t, messages, reply):
        array = (Message * len(messages))()
        for i, m in enumerate(messages):
            text = m["content"].encode()
            array[i] = Message(ctypes.sizeof(Message), m["role"].encode(), text, len(text))
        out, options = Text(), Options(ctypes.sizeof(Options), reply)
        status = self.lib.att_chat_render(t, array, ctypes.c_int64(len(messages)), ctypes.byref(options), ctypes.byref(out))
        if status:
            return None, self.error()
        text = ctypes.string_at(out.text, out.bytes).decode()
        self.lib.att_text_free(self.ctx, ctypes.byref(out))
        return text, None


def compare(attend, template):
    """Returns None if all conversations are equal, or a difference; and how many both write."""
    t, reason = attend.open(template)
    written = 0
    for messages, reply in conversations():
        try:
            want = render_jinja_template([messages], chat_template=template, add_generation_prompt=reply, **TOKENS)[0][0]
            why = None
        except Exception as e:  # what a template raises, and what Python does, such as for None + "a"
            want, why = None, f"{type(e).__name__}: {e}"
        text, error = attend.render(t, messages, reply) if t else (None, reason)
        if text != want:
            return f"{messages} reply {reply}:\n    attend {text if text is not None else error!r}\n    not    {want if want is not None else why!r}", written
        written += want is not None
    attend.lib.att_chat_template_free(t)
    return None, written


def main():
    attend, equal, all_of_them, seen = Attend(sys.argv[1]), 0, 0, set()
    for folder in sys.argv[2:]:
        for path in sorted(pathlib.Path(folder).rglob("*.jinja")):
            template = path.read_text()
            if template in seen:
                continue
            seen.add(template)
            difference, written = compare(attend, template)
            all_of_them += 1
            equal += difference is None
            if difference:
                print(f"{path.name}: {difference[:1500]}")
            elif not written:
                print(f"{path.name}: equal, but no conversation is written")
    print(f"{equal} of {all_of_them} templates are equal" if all_of_them else "skipped: there are no templates")


main()
