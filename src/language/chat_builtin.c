#include "language/chat_builtin.h"

#include <stddef.h>

/* clang-format off */
#define REPLY(text) "{% if add_generation_prompt %}{{ '" text "' }}{% endif %}"

/* Begins a loop over the messages after that of the system, whose text or none is `system`. */
#define TURNS                                                                                                          \
    "{% set system = messages[0].content if messages[0].role == 'system' else none %}"                                 \
    "{% for m in (messages if system is none else messages[1:]) %}"                                                    \
    "{% if m.role not in ['user', 'assistant'] or (m.role == 'user') != (loop.index0 % 2 == 0) %}"                     \
    "{{ raise_exception('after the optional system message, roles must alternate user/assistant/user/assistant/...') }}" \
    "{% endif %}"

/* Mistral: the system's text is in one message of the user, and the model's token ends answers. */
#define MISTRAL(where, before, after, answer)                                                                          \
    "{{ bos_token }}" TURNS "{% if m.role == 'user' %}"                                                                \
    "{{ '" before "' + (system + '\\n\\n' if " where " and system is not none else '') + m.content + '" after "' }}"   \
    "{% else %}{{ " answer " }}{{ eos_token }}{% endif %}{% endfor %}"

const att_chat_builtin att_chat_builtins[] = {
    {"chatml",
     "{% for m in messages %}{{ '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>\\n' }}{% endfor %}"
     REPLY("<|im_start|>assistant\\n")},
    {"gemma",
     "{{ bos_token }}" TURNS "{{ '<start_of_turn>' + ('model' if m.role == 'assistant' else 'user') + '\\n' }}"
     "{{ (system + '\\n\\n' if loop.first and system is not none else '') + m.content | trim + '<end_of_turn>\\n' }}"
     "{% endfor %}" REPLY("<start_of_turn>model\\n")},
    {"llama2",
     TURNS "{% set text = m.content if system is none or not loop.first"
     " else '<<SYS>>\\n' + system + '\\n<</SYS>>\\n\\n' + m.content %}"
     "{% if m.role == 'user' %}{{ bos_token }}{{ '[INST] ' + text | trim + ' [/INST]' }}"
     "{% else %}{{ ' ' + text | trim + ' ' }}{{ eos_token }}{% endif %}{% endfor %}"},
    {"llama3",
     "{{ bos_token }}{% for m in messages %}"
     "{{ '<|start_header_id|>' + m.role + '<|end_header_id|>\\n\\n' + m.content | trim + '<|eot_id|>' }}{% endfor %}"
     REPLY("<|start_header_id|>assistant<|end_header_id|>\\n\\n")},
    {"mistral-v1", MISTRAL("loop.first", " [INST] ", " [/INST]", "' ' + m.content")},
    {"mistral-v3", MISTRAL("loop.last", "[INST] ", "[/INST]", "' ' + m.content | trim")},
    {"mistral-tekken", MISTRAL("loop.last", "[INST]", "[/INST]", "m.content")},
    {"phi3",
     "{% for m in messages %}{{ '<|' + m.role + '|>\\n' + m.content + '<|end|>\\n' }}{% endfor %}"
     "{% if add_generation_prompt %}{{ '<|assistant|>\\n' }}{% else %}{{ eos_token }}{% endif %}"},
    {"phi4-mini",
     "{% for m in messages %}{{ '<|' + m.role + '|>' + m.content + '<|end|>' }}{% endfor %}"
     "{% if add_generation_prompt %}{{ '<|assistant|>' }}{% else %}{{ eos_token }}{% endif %}"},
    {"zephyr",
     "{% for m in messages %}{{ '<|' + m.role + '|>\\n' + m.content }}{{ eos_token }}{{ '\\n' }}{% endfor %}"
     REPLY("<|assistant|>\\n")},
    {0},
};
