#include "language/chat_format.h"

#include <stddef.h>

/* clang-format off */
#define ADD(reply) "{%ifadd_generation_prompt%}{{'" reply "'}}{%endif%}"
#define ALTERNATE(sentence)                                                                  \
    "{%if(message.role=='user')!=(loop.index0%2==0)%}{{raise_exception('" sentence "')}}{%endif%}"
#define ROLES "Conversation roles must alternate user/assistant/user/assistant/..."
#define ROLES_AFTER "After the optional system message, conversation roles must alternate user/assistant/user/assistant/..."
#define SPLIT_SYSTEM "{%ifmessages[0].role=='system'%}{%setsystem_message=messages[0].content%}" \
    "{%setloop_messages=messages[1:]%}{%else%}{%setloop_messages=messages%}{%endif%}"

/* ---- ChatML */

#define IM_MESSAGE "{{'<|im_start|>'+message.role+'\\n'+message.content+'<|im_end|>\\n'}}"
#define IM_END "{%endfor%}" ADD("<|im_start|>assistant\\n")
#define IM_DEFAULT "{{'<|im_start|>system\\n$<|im_end|>\\n'}}"
#define IM_HEAD "{%iftools%}*{%else%}{%ifmessages[0].role=='system'%}" \
    "{{'<|im_start|>system\\n'+messages[0].content+'<|im_end|>\\n'}}"
#define IM_TOOLS "{%endif%}{%endif%}{%formessageinmessages%}{%if(message.role=='user')or(message.role=='system'" \
    "andnotloop.first)or(message.role=='assistant'andnotmessage.tool_calls)%}" IM_MESSAGE                         \
    "{%elifmessage.role=='assistant'%}*^{%endif%}" IM_END

static const char *const chatml[] = {
    "{%formessageinmessages%}" IM_MESSAGE IM_END,
    "{%formessageinmessages%}{%ifloop.firstandmessages[0].role!='system'%}" IM_DEFAULT "{%endif%}" IM_MESSAGE IM_END,
    IM_HEAD "{%else%}" IM_DEFAULT IM_TOOLS,
    IM_HEAD IM_TOOLS,
    NULL,
};

/* The last question: the last message of the user that is not the answer of a tool. */
#define QWEN3_LAST(more) "{%formessageinmessages[::-1]%}{%setindex=(messages|length-1)-loop.index0%}"                    \
    "{%ifns.multi_step_toolandmessage.role=='user'" more "andnot(message.content.startswith('<tool_response>')"        \
    "andmessage.content.endswith('</tool_response>'))%}{%setns.multi_step_tool=false%}{%setns.last_query_index=index%}" \
    "{%endif%}{%endfor%}"
#define IS_STRING "andmessage.contentisstring"
#define QWEN3_CONTENT "{%ifmessage.contentisstring%}{%setcontent=message.content%}{%else%}{%setcontent=''%}{%endif%}"
#define QWEN3_THOUGHTS "{%setreasoning_content=''%}{%ifmessage.reasoning_contentisstring%}"                              \
    "{%setreasoning_content=message.reasoning_content%}{%else%}{%if'</think>'incontent%}"                              \
    "{%setreasoning_content=content.split('</think>')[0].rstrip('\\n').split('<think>')[-1].lstrip('\\n')%}"           \
    "{%setcontent=content.split('</think>')[-1].lstrip('\\n')%}{%endif%}{%endif%}"
#define QWEN3_OLD_THOUGHTS "{%setcontent=message.content%}{%setreasoning_content=''%}"                                   \
    "{%ifmessage.reasoning_contentisdefinedandmessage.reasoning_contentisnotnone%}"                                    \
    "{%setreasoning_content=message.reasoning_content%}{%else%}{%if'</think>'inmessage.content%}"                      \
    "{%setcontent=message.content.split('</think>')[-1].lstrip('\\n')%}"                                               \
    "{%setreasoning_content=message.content.split('</think>')[0].rstrip('\\n').split('<think>')[-1].lstrip('\\n')%}"   \
    "{%endif%}{%endif%}"
#define QWEN3_PLAIN "{%else%}{{'<|im_start|>'+message.role+'\\n'+content}}{%endif%}"
#define QWEN3(last, set_content, content, thoughts)                                                                    \
    "{%iftools%}*{%else%}{%ifmessages[0].role=='system'%}"                                                             \
    "{{'<|im_start|>system\\n'+messages[0].content+'<|im_end|>\\n'}}{%endif%}{%endif%}"                                \
    "{%setns=namespace(multi_step_tool=true,last_query_index=messages|length-1)%}" QWEN3_LAST(last)                    \
    "{%formessageinmessages%}" set_content                                                                             \
    "{%if(message.role=='user')or(message.role=='system'andnotloop.first)%}"                                           \
    "{{'<|im_start|>'+message.role+'\\n'+" content "+'<|im_end|>\\n'}}{%elifmessage.role=='assistant'%}" thoughts        \
    "{%ifloop.index0>ns.last_query_index%}{%ifloop.lastor(notloop.lastandreasoning_content)%}"                         \
    "{{'<|im_start|>'+message.role+'\\n<think>\\n'+reasoning_content.strip('\\n')+'\\n</think>\\n\\n'"                 \
    "+content.lstrip('\\n')}}" QWEN3_PLAIN QWEN3_PLAIN "^{{'<|im_end|>\\n'}}^{%endif%}{%endfor%}"                       \
    "{%ifadd_generation_prompt%}{{'<|im_start|>assistant\\n'}}{%ifenable_thinkingisdefinedandenable_thinkingisfalse%}" \
    "{{'<think>\\n\\n</think>\\n\\n'}}{%endif%}{%endif%}"

static const char *const qwen3[] = {
    QWEN3(IS_STRING, QWEN3_CONTENT, "content", QWEN3_THOUGHTS),
    QWEN3(IS_STRING, "", "message.content", QWEN3_OLD_THOUGHTS),
    QWEN3("", "", "message.content", QWEN3_OLD_THOUGHTS),
    NULL,
};

/* ---- Llama */

#define LLAMA2 ALTERNATE(ROLES) "{%ifloop.index0==0andsystem_message!=false%}{%setcontent='<<SYS>>\\n'+system_message+" \
    "'\\n<</SYS>>\\n\\n'+message.content%}{%else%}{%setcontent=message.content%}{%endif%}{%ifmessage.role=='user'%}"    \
    "{{bos_token+'[INST] '+content.strip()+' [/INST]'}}"
#define LLAMA2_END "{%elifmessage.role=='assistant'%}{{' '+content.strip()+' '+eos_token}}{%endif%}{%endfor%}"
#define LLAMA2_HEAD "{%ifmessages[0].role=='system'%}{%setloop_messages=messages[1:]%}{%setsystem_message=messages[0].content%}"
#define LLAMA2_NO_SYSTEM "{%else%}{%setloop_messages=messages%}{%setsystem_message=false%}{%endif%}{%formessageinloop_messages%}"
#define LLAMA2_INNER "{%elifmessage.role=='system'%}{{'<<SYS>>\\n'+content.strip()+'\\n<</SYS>>\\n\\n'}}"

static const char *const llama2[] = {
    LLAMA2_HEAD LLAMA2_NO_SYSTEM LLAMA2 LLAMA2_END,
    LLAMA2_HEAD LLAMA2_NO_SYSTEM LLAMA2 LLAMA2_INNER LLAMA2_END,
    LLAMA2_HEAD "{%eliffalse==trueandnot'<<SYS>>'inmessages[0].content%}*" LLAMA2_NO_SYSTEM LLAMA2 LLAMA2_INNER LLAMA2_END,
    NULL,
};

#define LLAMA3_MESSAGE "'<|start_header_id|>'+message.role+'<|end_header_id|>\\n\\n'+message.content|trim+'<|eot_id|>'"
#define LLAMA3_REPLY ADD("<|start_header_id|>assistant<|end_header_id|>\\n\\n")

static const char *const llama3[] = {
    "{%setloop_messages=messages%}{%formessageinloop_messages%}{%setcontent=" LLAMA3_MESSAGE
    "%}{%ifloop.index0==0%}{%setcontent=bos_token+content%}{%endif%}{{content}}{%endfor%}" LLAMA3_REPLY,
    NULL,
};

#define LLAMA3_1(date)                                                                                                  \
    "{{bos_token}}^{%ifnottools_in_user_messageisdefined%}{%settools_in_user_message=true%}{%endif%}"                  \
    "{%ifnotdate_stringisdefined%}" date "{%endif%}{%ifnottoolsisdefined%}{%settools=none%}{%endif%}"                   \
    "{%ifmessages[0].role=='system'%}{%setsystem_message=messages[0].content|trim%}{%setmessages=messages[1:]%}{%else%}" \
    "{%setsystem_message=''%}{%endif%}{{'<|start_header_id|>system<|end_header_id|>\\n\\n'}}^"                         \
    "{{'Cutting Knowledge Date: $\\nToday Date: '+date_string+'\\n\\n'}}^{{system_message+'<|eot_id|>'}}^"             \
    "{%formessageinmessages%}{%ifnot(message.role=='ipython'ormessage.role=='tool'or'tool_calls'inmessage)%}"          \
    "{{" LLAMA3_MESSAGE "}}^{%endif%}{%endfor%}" LLAMA3_REPLY
#define FIXED_DATE "{%setdate_string='?'%}"

static const char *const llama3_1[] = {
    LLAMA3_1(FIXED_DATE),
    LLAMA3_1("{%ifstrftime_nowisdefined%}{%setdate_string=strftime_now('%d %b %Y')%}{%else%}" FIXED_DATE "{%endif%}"),
    NULL,
};

/* ---- Mistral */

#define MISTRAL_FIRST(answer) "{{bos_token}}{%formessageinmessages%}" ALTERNATE(ROLES) "{%ifmessage.role=='user'%}" \
    "{{'[INST] '+message.content+' [/INST]'}}{%elifmessage.role=='assistant'%}{{" answer "}}{%else%}"               \
    "{{raise_exception('Only user and assistant roles are supported!')}}{%endif%}{%endfor%}"
#define MISTRAL_ROLES "{%else%}{{raise_exception('Only user and assistant roles are supported, with the exception of an " \
    "initial optional system message!')}}{%endif%}{%endfor%}"
#define MISTRAL_ALTERNATE                                                                                               \
    "{%setns=namespace()%}{%setns.index=0%}{%formessageinloop_messages%}{%ifnot(message.role=='tool'or"                \
    "message.role=='tool_results'or(message.tool_callsisdefinedandmessage.tool_callsisnotnone))%}"                     \
    "{%if(message.role=='user')!=(ns.index%2==0)%}{{raise_exception('" ROLES_AFTER "')}}{%endif%}"                     \
    "{%setns.index=ns.index+1%}{%endif%}{%endfor%}"
#define MISTRAL_TOOLS(when, begin, end, answer) SPLIT_SYSTEM "{%ifnottoolsisdefined%}{%settools=none%}{%endif%}"       \
    "{%setuser_messages=loop_messages|selectattr('role','equalto','user')|list%}" MISTRAL_ALTERNATE "{{bos_token}}"    \
    "{%formessageinloop_messages%}{%ifmessage.role=='user'%}^{%if" when "system_messageisdefined%}"                     \
    "{{'" begin "'+system_message+'\\n\\n'+message.content+'" end "'}}{%else%}{{'" begin "'+message.content+'" end "'}}" \
    "{%endif%}^{%elifmessage.role=='assistant'%}{{" answer "+eos_token}}^" MISTRAL_ROLES
#define LAST "loop.lastand"
#define EQUAL "(message==user_messages[-1])and"

static const char *const mistral_01[] = {MISTRAL_FIRST("message.content+eos_token+' '"), NULL};
static const char *const mistral_02[] = {MISTRAL_FIRST("message.content+eos_token"), NULL};
static const char *const mistral_1[] = {
    SPLIT_SYSTEM "{{bos_token}}{%formessageinloop_messages%}" ALTERNATE(ROLES_AFTER)
    "{%ifmessage.role=='user'%}{%ifloop.firstandsystem_messageisdefined%}"
    "{{' [INST] '+system_message+'\\n\\n'+message.content+' [/INST]'}}{%else%}{{' [INST] '+message.content+' [/INST]'}}"
    "{%endif%}{%elifmessage.role=='assistant'%}{{' '+message.content+eos_token}}" MISTRAL_ROLES,
    NULL,
};
static const char *const mistral_3[] = {MISTRAL_TOOLS(LAST, "[INST] ", "[/INST]", "' '+message.content|trim"), NULL};
static const char *const mistral_3_equal[] = {MISTRAL_TOOLS(EQUAL, "[INST] ", "[/INST]", "' '+message.content|trim"), NULL};
static const char *const mistral_tekken[] = {MISTRAL_TOOLS(LAST, "[INST]", "[/INST]", "message.content"), NULL};
static const char *const mistral_tekken_equal[] = {MISTRAL_TOOLS(EQUAL, "[INST]", "[/INST]", "message.content"), NULL};

/* ---- Gemma */

#define GEMMA_ROLE "{%if(message.role=='assistant')%}{%setrole='model'%}{%else%}{%setrole=message.role%}{%endif%}"
#define GEMMA_REPLY ADD("<start_of_turn>model\\n")
#define GEMMA3(join) "{{bos_token}}{%ifmessages[0].role=='system'%}{%ifmessages[0].contentisstring%}"                  \
    "{%setfirst_user_prefix=messages[0].content+'" join "'%}{%else%}*{%endif%}{%setloop_messages=messages[1:]%}"       \
    "{%else%}{%setfirst_user_prefix=''%}{%setloop_messages=messages%}{%endif%}{%formessageinloop_messages%}"           \
    ALTERNATE(ROLES) GEMMA_ROLE "{{'<start_of_turn>'+role+'\\n'+(first_user_prefixifloop.firstelse'')}}"               \
    "{%ifmessage.contentisstring%}{{message.content|trim}}{%elifmessage.contentisiterable%}*{%else%}*{%endif%}"        \
    "{{'<end_of_turn>\\n'}}{%endfor%}" GEMMA_REPLY

static const char *const gemma[] = {
    "{%ifmessages[0].role=='system'%}{{raise_exception('System role not supported')}}{%endif%}{%formessageinmessages%}"
    ALTERNATE(ROLES) GEMMA_ROLE "{{'<start_of_turn>'+role+'\\n'+message.content|trim+'<end_of_turn>\\n'}}{%endfor%}"
    GEMMA_REPLY,
    NULL,
};
static const char *const gemma3[] = {GEMMA3("\\n\\n"), NULL};
static const char *const gemma3_1b[] = {GEMMA3("\\n"), NULL};

/* ---- Phi, Zephyr */

#define PHI(system) "{%formessageinmessages%}{%ifmessage.role=='system'" system "%}"                        \
    "{{'<|system|>\\n'+message.content+'<|end|>\\n'}}{%elifmessage.role=='user'%}{{'<|user|>\\n'+message.content+"      \
    "'<|end|>\\n'}}{%elifmessage.role=='assistant'%}{{'<|assistant|>\\n'+message.content+'<|end|>\\n'}}{%endif%}"       \
    "{%endfor%}{%ifadd_generation_prompt%}{{'<|assistant|>\\n'}}{%else%}{{eos_token}}{%endif%}"

static const char *const phi3[] = {PHI(""), NULL};
static const char *const phi3_5[] = {PHI("andmessage.content"), NULL};
static const char *const phi3_v1[] = {
    "{%formessageinmessages%}{%if(message.role=='user')%}{{'<|user|>\\n'+message.content+'<|end|>\\n<|assistant|>\\n'}}"
    "{%elif(message.role=='assistant')%}{{message.content+'<|end|>\\n'}}{%endif%}{%endfor%}",
    NULL,
};
static const char *const phi4_mini[] = {
    "{%formessageinmessages%}{%ifmessage.role=='system'and'tools'inmessageandmessage.toolsisnotnone%}*{%else%}"
    "{{'<|'+message.role+'|>'+message.content+'<|end|>'}}{%endif%}{%endfor%}{%ifadd_generation_prompt%}"
    "{{'<|assistant|>'}}{%else%}{{eos_token}}{%endif%}",
    NULL,
};
static const char *const zephyr[] = {
    "{%formessageinmessages%}{%ifmessage.role=='user'%}{{'<|user|>\\n'+message.content+eos_token+'\\n'}}"
    "{%elifmessage.role=='system'%}{{'<|system|>\\n'+message.content+eos_token+'\\n'}}"
    "{%elifmessage.role=='assistant'%}{{'<|assistant|>\\n'+message.content+eos_token+'\\n'}}{%endif%}"
    "{%ifloop.lastandadd_generation_prompt%}{{'<|assistant|>\\n'}}{%endif%}{%endfor%}",
    NULL,
};

/* ---- the table */

#define IM(role) {"<|im_start|>" role "\n", "<|im_end|>\n"}
#define HEADER(role) {"<|start_header_id|>" role "<|end_header_id|>\n\n", "<|eot_id|>"}
#define ANSWER "<|start_header_id|>assistant<|end_header_id|>\n\n"
#define GEMMA_PART(role) {"<start_of_turn>" role "\n", "<end_of_turn>\n"}
#define BAR(role, line, end) {"<|" role "|>" line, end}
#define PARTS(of) {of("system"), of("user"), of("assistant")}
#define PHI_PART(role) BAR(role, "\n", "<|end|>\n")
#define PHI4_PART(role) BAR(role, "", "<|end|>")
#define ZEPHYR_PART(role) BAR(role, "\n", "{eos}\n")
#define INST(before, after) {before "[INST]" after, after "[/INST]"}
#define ALL {true, true, true}

const att_chat_format att_chat_formats[] = {
    {"chatml", chatml, PARTS(IM), .reply = "<|im_start|>assistant\n"},
    {"qwen3", qwen3, PARTS(IM), .reply = "<|im_start|>assistant\n", .thoughts = true},
    {"llama2", llama2, {{"<<SYS>>\n", "\n<</SYS>>\n\n"}, {"{bos}[INST] ", " [/INST]"}, {" ", " {eos}"}},
     .system = ATT_SYSTEM_IN_FIRST_USER, .trim = {false, true, true}, .trim_joined = true, .alternate = true},
    {"llama3", llama3, PARTS(HEADER), .reply = ANSWER, .trim = ALL, .bos = true},
    {"llama3.1", llama3_1,
     {{"<|start_header_id|>system<|end_header_id|>\n\nCutting Knowledge Date: {cutoff}\nToday Date: {date}\n\n",
       "<|eot_id|>"}, HEADER("user"), HEADER("assistant")},
     .reply = ANSWER, .system = ATT_SYSTEM_ALWAYS, .trim = ALL, .bos = true},
    {"mistral-v0.1", mistral_01, {{0}, INST("", " "), {"", "{eos} "}},
     .system = ATT_SYSTEM_REFUSED, .bos = true, .alternate = true},
    {"mistral-v0.2", mistral_02, {{0}, INST("", " "), {"", "{eos}"}},
     .system = ATT_SYSTEM_REFUSED, .bos = true, .alternate = true},
    {"mistral-v1", mistral_1, {{"", "\n\n"}, INST(" ", " "), {" ", "{eos}"}},
     .system = ATT_SYSTEM_IN_FIRST_USER, .bos = true, .alternate = true},
    {"mistral-v3", mistral_3, {{"", "\n\n"}, {"[INST] ", "[/INST]"}, {" ", "{eos}"}},
     .system = ATT_SYSTEM_IN_LAST_USER, .trim = {false, false, true}, .bos = true, .alternate = true},
    {"mistral-v3", mistral_3_equal, {{"", "\n\n"}, {"[INST] ", "[/INST]"}, {" ", "{eos}"}},
     .system = ATT_SYSTEM_IN_EQUAL_USERS, .trim = {false, false, true}, .bos = true, .alternate = true},
    {"mistral-tekken", mistral_tekken, {{"", "\n\n"}, INST("", ""), {"", "{eos}"}},
     .system = ATT_SYSTEM_IN_LAST_USER, .bos = true, .alternate = true},
    {"mistral-tekken", mistral_tekken_equal, {{"", "\n\n"}, INST("", ""), {"", "{eos}"}},
     .system = ATT_SYSTEM_IN_EQUAL_USERS, .bos = true, .alternate = true},
    {"gemma", gemma, {{0}, GEMMA_PART("user"), GEMMA_PART("model")}, .reply = "<start_of_turn>model\n",
     .system = ATT_SYSTEM_REFUSED, .trim = ALL, .bos = true, .alternate = true},
    {"gemma3", gemma3, {{"", "\n\n"}, GEMMA_PART("user"), GEMMA_PART("model")}, .reply = "<start_of_turn>model\n",
     .system = ATT_SYSTEM_IN_FIRST_USER, .trim = {false, true, true}, .bos = true, .alternate = true},
    {"gemma3", gemma3_1b, {{"", "\n"}, GEMMA_PART("user"), GEMMA_PART("model")}, .reply = "<start_of_turn>model\n",
     .system = ATT_SYSTEM_IN_FIRST_USER, .trim = {false, true, true}, .bos = true, .alternate = true},
    {"phi3", phi3, PARTS(PHI_PART), .reply = "<|assistant|>\n", .no_reply = "{eos}"},
    {"phi3.5", phi3_5, PARTS(PHI_PART), .reply = "<|assistant|>\n", .no_reply = "{eos}", .skip_empty_system = true},
    {"phi3-v1", phi3_v1, {{0}, {"<|user|>\n", "<|end|>\n<|assistant|>\n"}, {"", "<|end|>\n"}},
     .system = ATT_SYSTEM_REFUSED, .bos = true},
    {"phi4-mini", phi4_mini, PARTS(PHI4_PART), .reply = "<|assistant|>", .no_reply = "{eos}"},
    {"zephyr", zephyr, PARTS(ZEPHYR_PART), .reply = "<|assistant|>\n"},
    {0},
};
