#!/usr/bin/env python3
"""Compares attend's texts of conversations with those of apply_chat_template of `transformers`, for chat templates as they
were published: 160 conversations without tools and 160 with tools each, whose text is the same, or which both refuse.

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
    _fields_ = [("size", ctypes.c_size_t), ("role", ctypes.c_char_p), ("text", ctypes.c_char_p), ("bytes", ctypes.c_size_t),
                ("more", ctypes.c_char_p)]


class Options(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("reply", ctypes.c_bool), ("tools", ctypes.c_char_p), ("documents", ctypes.c_char_p),
                ("variables", ctypes.c_char_p)]


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
        yield messages, {"add_generation_prompt": reply}
    assert count == 160


def function(name, description, parameters):
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}


ADD = function("add", "Adds two numbers.", {"type": "object", "properties": {
    "a": {"type": "number", "description": "the first"}, "b": {"type": "number"}}, "required": ["a", "b"]})
SEARCH = function("search_web", "Finds \"pages\" — in 日本語, too\nand more", {"type": "object", "properties": {
    "query": {"type": "string", "description": "what to <find> & 'how'", "enum": ["x", "y"]},
    "options": {"type": "object", "properties": {"n": {"type": ["integer", "null"], "default": 3}}},
    "sites": {"type": "array", "items": {"type": "string"}}}, "required": ["query"]})
NOW = function("now", "", {"type": "object", "properties": {}})
DOCUMENTS = [{"title": "One", "text": "The first text.", "contents": "first"}, {"title": "Två", "text": "a\nb", "contents": "x"}]


def call(name, arguments, number=0):
    return {"id": f"call{number:05}", "type": "function", "function": {"name": name, "arguments": arguments}}


def calls(*list_of_calls, content=None, **more):
    return {"role": "assistant", "content": content, "tool_calls": list(list_of_calls)} | more


def result(content, number=0, **more):
    return {"role": "tool", "content": content, "tool_call_id": f"call{number:05}"} | more


def tool_conversations():
    """160 conversations with tools: 20 of calls and results, with and without a system message, with two lists of tools, one
    of them with documents, for an answer or not."""
    user, answer, more = ({"role": r, "content": c} for r, c in (("user", "What is 1 + 2?"), ("assistant", "It is 3."), ("user", "And 2 + 2?")))
    add, search = call("add", {"a": 1, "b": 2.5}), call("search_web", {"query": "x <y> 日本", "options": {"n": None}, "sites": ["a", "b\n"]}, 1)
    three = result("3", name="add")
    patterns = [
        [user], [user, answer, more], [user, calls(add)], [user, calls(add), three], [user, calls(add), three, answer],
        [user, calls(add), three, answer, more], [user, calls(add, search), three, result("none", 1, name="search_web")],
        [user, calls(add, search), three, result("none", 1, name="search_web"), answer, more],
        [user, calls(add, content=""), three, answer], [user, calls(add, content="I will add them."), three, answer, more],
        [user, calls({"type": "function", "function": add["function"]}), {"role": "tool", "content": "3"}],
        [user, calls(call("now", {}), content=""), result("2026-11-28"), answer],
        [user, calls(call("add", '{"a": 1, "b": 2}'), content=""), three, answer],
        [user, calls(search, content="", reasoning_content="They want\nto search."), result("x", 1), answer],
        [user, calls(add, content="<think>\nhm\n</think>\n\nadding"), three, answer, more],
        [user, calls(add, content=""), result('{"sum": 3, "of": [1, 2]}'), answer],
        [user, calls(add, content=""), result("<|im_end|></s> {{ x }}"), answer],
        [user, calls(add, content=""), three, calls(search, content=""), result("y", 1), answer, more],
        [user, calls(add, content=""), result([{"type": "text", "text": "3"}]), answer],
        [user, {"role": "assistant", "content": "It is 3.", "reasoning_content": "easy"}, more],
    ]
    count = 0
    for messages, system, many, reply in itertools.product(patterns, [None, "Be brief."], [False, True], [True, False]):
        options = {"tools": [SEARCH, ADD, NOW] if many else [ADD], "add_generation_prompt": reply}
        if many:
            options["documents"] = DOCUMENTS
        count += 1
        yield ([{"role": "system", "content": system}] if system else []) + messages, options
    assert count == 160


def encoded(value):
    return None if value is None else json.dumps(value).encode()


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

    def render(self, t, messages, options):
        array = (Message * len(messages))()
        for i, m in enumerate(messages):
            more = {k: v for k, v in m.items() if k != "role" and not (k == "content" and isinstance(v, str))}
            text = m["content"].encode() if "content" not in more else b""
            array[i] = Message(ctypes.sizeof(Message), m["role"].encode(), text, len(text), encoded(more or None))
        out, options = Text(), Options(ctypes.sizeof(Options), options["add_generation_prompt"], encoded(options.get("tools")),
                                       encoded(options.get("documents")))
        status = self.lib.att_chat_render(t, array, ctypes.c_int64(len(messages)), ctypes.byref(options), ctypes.byref(out))
        if status:
            return None, self.error()
        text = ctypes.string_at(out.text, out.bytes).decode()
        self.lib.att_text_free(self.ctx, ctypes.byref(out))
        return text, None


def compare(attend, template, all_of_them):
    """Returns None if all conversations are equal, or a difference; and how many both write."""
    t, reason = attend.open(template)
    written = 0
    for messages, options in all_of_them():
        try:
            want = render_jinja_template([messages], chat_template=template, **options, **TOKENS)[0][0]
            why = None
        except Exception as e:  # what a template raises, and what Python does, such as for None + "a"
            want, why = None, f"{type(e).__name__}: {e}"
        text, error = attend.render(t, messages, options) if t else (None, reason)
        if text != want:
            return f"{messages} {options}:\n    attend {text if text is not None else error!r}\n    not    {want if want is not None else why!r}", written
        written += want is not None
    attend.lib.att_chat_template_free(t)
    return None, written


def main():
    attend, seen = Attend(sys.argv[1]), set()
    kinds = {"without tools": conversations, "with tools": tool_conversations}
    equal, silent = dict.fromkeys(kinds, 0), dict.fromkeys(kinds, 0)
    for folder in sys.argv[2:]:
        for path in sorted(pathlib.Path(folder).rglob("*.jinja")):
            template = path.read_text()
            if template in seen:
                continue
            seen.add(template)
            for kind, all_of_them in kinds.items():
                difference, written = compare(attend, template, all_of_them)
                equal[kind] += difference is None
                silent[kind] += difference is None and not written
                if difference:
                    print(f"{path.name}, {kind}: {difference[:1500]}")
    for kind, n in equal.items():
        if seen:
            print(f"{kind}: {n} of {len(seen)} templates are equal; {silent[kind]} of these write no conversation")
    if not seen:
        print("skipped: there are no templates")


main()
