#!/usr/bin/env python3
"""Writes chat.json, the golden file of tests/language/chat.c: 20 conversations, and for each chat template in chat/ the
hashes of their text and of their ids, by apply_chat_template of `transformers`; an empty hash where it raises an error.

    pip install transformers==5.23.0 jinja2
    tests/golden/make_chat.py [TEMPLATE...]     prints the texts of these templates instead

chat/NAME.jinja are the templates of OpenHermes (chatml), SmolLM2, Qwen 2.5 and 3, Llama 2, 3 and 3.2, Mistral 7B
v0.1 to v0.3, Mistral Large 2407 (v3) and Nemo, Gemma 1 and 3, Phi 3, 3.5 and 4-mini, and TinyLlama (zephyr), as published
with the models. Tokenizers are those of pipeline/, with the tokens that the templates write.
"""
import json
import sys

from tokenizers import AddedToken, Tokenizer
from transformers import PreTrainedTokenizerFast

from text_lines import HERE, fnv, hash_ids

IM = ["<|im_start|>", "<|im_end|>"]
THINK = ["<think>", "</think>"]  # not special
HEADER = ["<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"]
BAR = ["<|system|>", "<|user|>", "<|assistant|>", "<|end|>", "<|endoftext|>"]

# file: (the template of attend that writes the same, tokenizer, bos, eos, special tokens)
TEMPLATES = {
    "chatml": ("chatml", "qwen", None, "<|im_end|>", IM),
    "smollm2": (None, "smollm2", "<|im_start|>", "<|im_end|>", IM),
    "qwen2.5": (None, "qwen", None, "<|im_end|>", IM),
    "qwen3": (None, "qwen", None, "<|im_end|>", IM + THINK),
    "llama2": ("llama2", "llama2", "<s>", "</s>", []),
    "llama3": ("llama3", "llama3", "<|begin_of_text|>", "<|eot_id|>", HEADER),
    "llama3.2": (None, "llama3", "<|begin_of_text|>", "<|eot_id|>", HEADER),
    "mistral-v0.1": (None, "llama2", "<s>", "</s>", []),
    "mistral-v0.2": (None, "llama2", "<s>", "</s>", []),
    "mistral-v1": ("mistral-v1", "llama2", "<s>", "</s>", []),
    "mistral-v3": ("mistral-v3", "llama2", "<s>", "</s>", ["[INST]", "[/INST]"]),
    "mistral-v0.3": (None, "llama2", "<s>", "</s>", ["[INST]", "[/INST]"]),
    "mistral-nemo": ("mistral-tekken", "llama3", "<s>", "</s>", ["<s>", "</s>", "[INST]", "[/INST]"]),
    "gemma": (None, "gemma", "<bos>", "<eos>", ["<start_of_turn>", "<end_of_turn>"]),
    "gemma3": ("gemma", "gemma", "<bos>", "<eos>", ["<start_of_turn>", "<end_of_turn>"]),
    "phi3": ("phi3", "llama2", "<s>", "<|endoftext|>", BAR),
    "phi3.5": (None, "llama2", "<s>", "<|endoftext|>", BAR),
    "phi3-128k": (None, "llama2", "<s>", "<|endoftext|>", BAR),
    "phi4-mini": ("phi4-mini", "qwen", "<|endoftext|>", "<|endoftext|>", BAR),
    "zephyr": ("zephyr", "llama2", "<s>", "</s>", []),
}
TOOLS = {"qwen2.5", "qwen3", "llama3.2", "mistral-v3", "mistral-v0.3", "mistral-nemo"}  # templates that write tools
RSTRIP = {"phi3", "phi3.5", "phi3-128k"}  # the tokens take the white space after them

# The texts of system (if it is not None), user, assistant, user, ...; reply: the answer of the model follows.
CONVERSATIONS = [
    (None, ["Hello"], True),
    (None, ["Hello"], False),
    ("You are a pirate.", ["What is the capital of France?"], True),
    ("You are a pirate.", ["Hello", "Hi there", "Who are you", "   I am an assistant   ", "Another question"], True),
    (None, ["Hello", "Hi there", "Who are you", "   I am an assistant   ", "Another question"], True),
    ("Be short.", ["Hello", "Hi there"], False),
    (None, ["  leading and trailing  \n"], True),
    ("  spaces \n", ["\n\n  text\t", " answer \n\n", "\u00a0no-break\u3000"], True),
    ("", ["An empty system message"], True),
    (None, [""], True),
    ("System", ["   "], True),
    (None, ["naïve café 日本語 😀 ﬁ", "Ελληνικά", "def f(x):\n    return x + 1\n"], True),
    (None, ["{bos} {{ bos_token }} {% if x %} 'quoted' \"twice\" \\n"], True),
    ("Line one\nline two\n\nline four", ["1234567890 3.14", "- a\n- b", "ok", "\n", "again"], True),
    (None, ["Q", "<think>\nthoughts\n</think>\n\nanswer", "and?", "<think>more</think>end"], False),
    ("S", ["same", "a", "other", "b", "same"], True),
    ("S", ["same", "a", "same", "b", "other", "c"], False),
    (None, ["<tool_response>1</tool_response>", "a</think>b", "<tool_response>2</tool_response>", "\nc"], False),
    (None, ["She said: 'don't' ... we'll see!!!", "I'M SURE   they've   gone\r\n", "\x1ctext\x85"], True),
    ("s", [], False),
]


ADD = {"type": "function", "function": {"name": "add", "description": "Adds two \"numbers\".", "parameters": {
    "type": "object", "properties": {"a": {"type": "number"}, "b": {"type": "number", "default": 1.5}}, "required": ["a"]}}}
NOW = {"type": "function", "function": {"name": "now", "description": "", "parameters": {"type": "object", "properties": {}}}}


def call(number, name, arguments):
    return {"id": f"call{number:05}", "type": "function", "function": {"name": name, "arguments": arguments}}


def calls(*list_of_calls, **more):
    return {"role": "assistant", "content": "", "tool_calls": list(list_of_calls)} | more


def result(number, content):
    return {"role": "tool", "content": content, "tool_call_id": f"call{number:05}"}


ASK = {"role": "user", "content": "What is 1 + 2?"}
CALL = calls(call(0, "add", {"a": 1, "b": 2.5}))
# Messages, and variables of the template
TOOL_CONVERSATIONS = [
    ([ASK], {"tools": [ADD, NOW]}),
    ([ASK, CALL, result(0, "3")], {"tools": [ADD]}),
    ([{"role": "system", "content": "S"}, ASK, CALL, result(0, "3"), {"role": "assistant", "content": "3"}, ASK], {"tools": [ADD, NOW]}),
    ([ASK, calls(call(0, "add", {}), call(1, "now", {"日本": [None, True, "<|x|>"]}), content=None), result(0, "1"),
      result(1, '{"now": "<|im_end|>"}')], {"tools": [ADD, NOW]}),
    ([ASK, {"role": "assistant", "content": "3", "reasoning_content": "easy\n"}, ASK], {"enable_thinking": False}),
]


def messages_of(system, texts):
    messages = [] if system is None else [{"role": "system", "content": system}]
    return messages + [{"role": ["user", "assistant"][i % 2], "content": t} for i, t in enumerate(texts)]


def make_tokenizer(file, tokenizer, bos, eos, special):
    t = Tokenizer.from_file(str(HERE / f"pipeline/{tokenizer}.json"))
    new = [s for s in special if t.token_to_id(s) is None]
    for s in new:
        t.add_tokens([AddedToken(s, special=s not in THINK, normalized=False, rstrip=file in RSTRIP)])
    fast = PreTrainedTokenizerFast(tokenizer_object=t, bos_token=bos, eos_token=eos)
    fast.chat_template = (HERE / f"chat/{file}.jinja").read_text()
    return fast, {s: t.token_to_id(s) for s in new}


def main(shown):
    out = {"conversations": [{"messages": [[m["role"], m["content"]] for m in messages_of(s, t)], "reply": r}
                             for s, t, r in CONVERSATIONS], "tool_conversations": [{"messages": m, "variables": v} for m, v in TOOL_CONVERSATIONS],
           "templates": []}
    for file, (built_in, tokenizer, bos, eos, special) in TEMPLATES.items():
        fast, new = make_tokenizer(file, tokenizer, bos, eos, special)
        hashes = []
        for system, texts, reply in CONVERSATIONS:
            more = {"add_generation_prompt": reply, "date_string": "26 Jul 2024"}
            messages = messages_of(system, texts)
            try:
                text = fast.apply_chat_template(messages, tokenize=False, **more)
                ids = fast.apply_chat_template(messages, tokenize=True, **more)["input_ids"]
                assert ids == fast(text, add_special_tokens=False)["input_ids"]
                hashes.append(f"{fnv(text.encode()):08x}{hash_ids(ids):08x}")
            except Exception as e:
                assert "role" in str(e), e
                text = repr(e)
                hashes.append("")
            if file in shown:
                print(repr(text))
        with_tools = []
        for messages, variables in TOOL_CONVERSATIONS if file in TOOLS else []:
            more = {"add_generation_prompt": True, "date_string": "26 Jul 2024"} | variables
            try:
                text = fast.apply_chat_template(messages, tokenize=False, **more)
                with_tools.append(f"{fnv(text.encode()):08x}")
            except Exception as e:
                assert "single tool-calls" in str(e), e
                text = repr(e)
                with_tools.append("")
            if file in shown:
                print(repr(text))
        out["templates"].append({"file": file, "built_in": built_in, "tokenizer": tokenizer, "bos": bos, "eos": eos,
                                 "special": new, "rstrip": file in RSTRIP, "hashes": hashes, "tool_hashes": with_tools})
    if not shown:
        text = json.dumps(out, ensure_ascii=True, indent=1)
        (HERE / "chat.json").write_text(text + "\n")


main(sys.argv[1:])
