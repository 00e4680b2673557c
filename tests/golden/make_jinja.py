#!/usr/bin/env python3
"""Writes jinja.json, the golden file of tests/jinja/jinja.c: small templates, one or more for each construct of Jinja
that chat templates use, with the text that `transformers` makes of them, or null where it raises an error.

    pip install transformers==5.23.0 jinja2
    tests/golden/make_jinja.py

The letters of messages are Greek, those of templates Latin: so a letter tells where it is from.
"""
import json

from transformers.utils.chat_template_utils import _compile_jinja_template

from text_lines import HERE

MESSAGES = [{"role": "system", "content": " Αβγ\n"}, {"role": "user", "content": "δε <Ζ> 'η' \"θ\"\\"},
            {"role": "assistant", "content": "κλ\nμν\n\nξ"}, {"role": "user", "content": ""}]
CONTEXT = {"messages": MESSAGES, "tools": None, "add_generation_prompt": True, "word": "λόγος", "n": 3,
           "tree": [{"α": 1, "β": [{"α": 2, "β": []}]}, {"α": 3.5, "β": []}], "empty": [], "yes": True}

TEMPLATES = r"""
{{ word }} and {{ n }} {{ none }} {{ true }} {{ 1.5 }} {{ 1e20 }} {{ 0.1 + 0.2 }} {{ 1e-5 }} {{ 100.0 }}
{# a comment #}a{#- another -#}  b
a  {%- if n -%}  b  {%- endif -%}  c
line\n  {% if n %}\n  inside\n  {% endif %}\nend\n
  {%+ if n %} kept {% endif +%}\nend\n\n
{% if n %}x{% endif -%}   \n   {% if n %}y{% endif %}
{% raw %}{{ not }} {% this %}{% endraw %} end
{{ '{{' }} {{ "}}" }} {{ '%}' }} {{ {'a': {'b': 1}}['a']['b'] }}
{{ 'a' "b" 'c' }} {{ 'tab\there \x41 \u00e9 \U0001F600 \q \'' }}
{% for m in messages %}{{ m.role }}:{{ m['content'] }}|{% endfor %}
{% for m in messages %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.depth }} {% endfor %}
{% for m in messages %}{{ loop.previtem.role if loop.previtem is defined }}-{{ loop.nextitem.role if not loop.last }} {% endfor %}
{% for m in messages if m.role != 'system' %}{{ loop.index }}{{ m.content }}{% endfor %}
{% for m in messages %}{% if loop.index0 == 1 %}{% continue %}{% endif %}{% if loop.index0 == 3 %}{% break %}{% endif %}{{ m.content }}{% endfor %}
{% for m in empty %}x{% else %}nothing{% endfor %}{% for m in unknown %}x{% else %} none{% endfor %}
{% for k, v in messages[0].items() %}{{ k }}={{ v }};{% endfor %}{% for k in messages[1] %}{{ k }}{% endfor %}
{% for c in word %}{{ c }}.{% endfor %}{% for i in range(2, 9, 3) %}{{ i }}{% endfor %}{% for i in range(3, 0, -1) %}{{ i }}{% endfor %}
{% for i in range(5) %}{{ loop.cycle('a', 'b') }}{{ loop.changed(i // 2) }}{% endfor %}
{% for t in tree recursive %}{{ t['α'] }}{% if t['β'] %}({{ loop(t['β']) }}){% endif %}{{ loop.depth0 }}{% endfor %}
{% for a, b in [(1, 2), (3, 4)] %}{{ a + b }} {% endfor %}
{% for i in [1, 2] %}{% for j in [3, 4] %}{% if j == 4 %}{% break %}{% endif %}{{ i }}{{ j }}{% endfor %}{{ loop.last }}{% endfor %}
{% if n == 1 %}a{% elif n == 2 %}b{% elif n == 3 %}c{% else %}d{% endif %}{% if none %}x{% elif '' %}y{% else %}z{% endif %}
{{ 'a' if n > 2 else 'b' }}{{ 'x' if n > 5 }}|{{ 'p' if n < 2 else 'q' if n < 3 else 'r' }}
{% set x = 1 %}{% for i in range(3) %}{% set x = x + i %}{{ x }}{% endfor %}{{ x }}
{% set ns = namespace(found=false, n=0) %}{% for m in messages %}{% if m.role == 'user' %}{% set ns.found = true %}{% set ns.n = ns.n + 1 %}{% endif %}{% endfor %}{{ ns.found }}{{ ns.n }}
{% set a, b = 1, 'x' %}{{ a }}{{ b }}{% set x %}block {{ word }} {% endset %}[{{ x }}]{% set y | trim | upper %} abc {% endset %}[{{ y }}]
{% macro f(a, b='y', c=none) %}<{{ a }}{{ b }}{{ c }}>{% endmacro %}{{ f(1) }}{{ f(word, c=2) }}{{ f('p', 'q') }}{{ f() }}
{% macro g(t) %}{% if t > 0 %}{{ t }}{{ g(t - 1) }}{% endif %}{% endmacro %}{{ g(3) }}
{% macro v() %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ v(1, 'x', k=2) }}
{% macro w(x) %}[{{ caller(x) }}]{% endmacro %}{% call(y) w(word) %}{{ y }}!{% endcall %}{% macro u() %}({{ caller() }}){% endmacro %}{% call u() %}{{ word }}{% endcall %}
{% macro w(x) %}[{{ caller(x) }}]{% endmacro %}{% call w(1) %}no{% endcall %}
{% macro f(a) %}{{ a }}{% endmacro %}{{ f(1, 2) }}
{% macro f(a) %}{{ a }}{% endmacro %}{{ f(b=2) }}
{% filter upper %}abc {{ n }}{% endfilter %}{% filter replace('a', 'b') | trim %} aa {% endfilter %}
{% for i in range(3) %}{% with a = i %}{% if a == 1 %}{% break %}{% endif %}{{ a }}{% endwith %}{% endfor %}
{% generation %}{{ word }}{% endgeneration %}{% with z = 4, q = n %}{{ z + q }}{% endwith %}{{ z is defined }}
{{ messages[0].content | trim }}{{ messages[0].content.strip() }}{{ '  x '.lstrip() }}{{ 'xxaxx'.strip('x') }}{{ 'abc'.rstrip('cb') }}
{{ messages[-1].role }}{{ messages[1:] | length }}{{ messages[::-1][0].role }}{{ messages[:1][0].role }}{{ word[1:3] }}{{ word[-2:] }}{{ word[::2] }}{{ word[0] }}{{ messages[9] is defined }}
{{ 7 // 2 }} {{ -7 // 2 }} {{ 7 % 3 }} {{ -7 % 3 }} {{ 7 / 2 }} {{ 2 ** 3 }} {{ 2 ** 3 ** 2 }} {{ 2 + 3 * 4 - 1 }} {{ -n }} {{ 7.5 // 2 }} {{ -2 ** 2 }}
{{ 1 < 2 < 3 }} {{ 1 == 1.0 }} {{ true == 1 }} {{ 'a' < 'b' }} {{ [1, 2] < [1, 3] }} {{ 'a' != 'b' }} {{ 3 >= 3 }} {{ none == false }}
{{ 'a' in 'abc' }} {{ 'role' in messages[0] }} {{ 1 in [2, 3] }} {{ 2 not in [2] }} {{ 'x' in empty }} {{ 'u' in ('u', 'v') }}
{{ 'a' ~ 1 ~ none ~ word }}{{ 'ab' * 2 }}{{ [1] + [2] }}{{ [0] * 3 }}{{ 'a' + 'b' + word }}
{{ n and word }} {{ empty or 'x' }} {{ not n }} {{ n == 3 and not empty or false }} {{ (1, 2)[1] }} {{ (1,) }} {{ () }}
{{ ['a', 1, none, 2.0, "it's", word] }} {{ {'a': 1, 2: ['x']} }} {{ '\n\t\\' | list }} {{ messages[1] }}
{{ messages[1] | tojson }} {{ tree | tojson }} {{ {'b': [1, {}], 'a': []} | tojson(indent=2) }} {{ {'b': 1, 'a': '<é>'} | tojson(sort_keys=true, ensure_ascii=true, separators=(',', ':')) }}
{{ unknown | default('d') }}{{ '' | default('e', true) }}{{ none | default('f') }}{{ none | d('g', boolean=true) }}
{{ messages | map(attribute='role') | join(', ') }} {{ ['a', 'b'] | map('upper') | list }} {{ [1, 2] | join }} {{ messages | join('-', attribute='content') }}
{{ messages | selectattr('role', 'equalto', 'user') | list | length }} {{ messages | rejectattr('content') | list }} {{ [0, 1, 2] | select('odd') | list }} {{ [0, 1, 2] | reject('in', [1]) | list }} {{ [0, 1] | select | list }}
{{ {'b': 1, 'A': 3} | dictsort }} {{ {'b': 1, 'A': 3} | dictsort(by='value', reverse=true) }} {{ [3, 1, 2] | sort }} {{ ['b', 'A', 'a'] | sort }} {{ messages | sort(attribute='role', reverse=true) | map(attribute='role') | list }}
{{ ['a', 'A', 'b'] | unique | list }} {{ [1, 2] | first }} {{ [1, 2] | last }} {{ [1, 2] | reverse | list }} {{ 'abc' | reverse }} {{ [1, 2] | sum }} {{ [3, 1] | max }} {{ [3, 1] | min }} {{ {'a': 1} | items | list }}
{{ messages[2].content | indent(2) }}|{{ 'a\n\nb' | indent(1, true, true) }}|{{ 'a\nb' | indent }}
{{ 'aXbX' | replace('X', 'y') }}{{ 'aaa' | replace('a', 'b', 2) }}{{ 'abc'.replace('', '-') }}{{ messages[1].content | replace('<', '[') }}
{{ 'hello WORLD' | title }}{{ 'hello WORLD' | capitalize }}{{ 'Ab' | lower }}{{ 'hello world'.title() }}{{ 'a b' | wordcount }}{{ 'x' | center(5) }}.
{{ '3' | int + 1 }} {{ 'x' | int(7) }} {{ 3.9 | int }} {{ '1.5' | float }} {{ 2.567 | round(1) }} {{ 1.115 | round(2) }} {{ 3.2 | round(0, 'ceil') }} {{ 2.5 | round }} {{ -3 | abs }} {{ 3 | string }}{{ '<&>"\'' | e }}
{{ [1, 2, 3] | batch(2) | list }} {{ messages | groupby('role') | map('first') | list }} {{ [1, 2] | length }}{{ word | count }}
{{ 'a,b,c'.split(',') }} {{ 'a,b,c'.split(',', 1) }} {{ 'a,b,c'.rsplit(',', 1) }} {{ ' a  b '.split() }} {{ 'a\nb\r\nc'.splitlines() }} {{ word.split('γ')[1] }} {{ 'a=b=c'.partition('=') }} {{ 'a=b=c'.rpartition('=') }}
{{ '  a b  c d '.rsplit(none, 1) }} {{ ' a b c'.rsplit(maxsplit=2) }} {{ ' a b c '.split(none, 1) }} {{ 'a b'.rsplit() }} {{ '  '.rsplit(none, 1) }} {{ 'p q '.rsplit(none, 0) }} {{ word.rsplit(none, 3) }}
{{ '%s-%s' % ('a', word) }} {{ '%d%%' % n }} {{ '%05.1f|%-6s|%6s|%+d|%.2s|% d|%03d|%i' % (2.25, 'ab', word, 3, word, 4, 7, true) }} {{ '%r %s' % ("it's", none) }} {{ '%s' % [1, 'x'] }} {{ '%s, %s!' | format(word, n) }} {{ '%.0f %f %d' % (2.5, 1, 3.9) }}
{{ '%s %s' % 'a' }}
{{ '%s' % (1, 2) }}
{{ '%d' % 'a' }}
{{ 'abc'.startswith('a') }}{{ 'abc'.endswith(('x', 'c')) }}{{ 'abcb'.find('b') }}{{ 'abcb'.rfind('b') }}{{ 'abc'.find('z') }}{{ 'abcb'.count('b') }}{{ word.find('γ') }}{{ word.index('ς') }}{{ 'abc'.removeprefix('a') }}{{ 'abc'.removesuffix('c') }}
{{ 'A'.isupper() }}{{ 'a1'.isalnum() }}{{ '12'.isdigit() }}{{ 'ab'.isalpha() }}{{ ' '.isspace() }}{{ 'a'.islower() }}{{ '-'.join(['a', 'b']) }}{{ 'Ab'.upper() }}{{ 'Ab'.lower() }}{{ 'ab'.capitalize() }}
{{ messages[0].get('role') }}{{ messages[0].get('x') }}{{ messages[0].get('x', 'y') }}{{ messages[0].keys() | list }}{{ {'a': 1}.values() | list }}{{ [1, 2, 1].count(1) }}{{ [1, 2].index(2) }}
{{ word is string }}{{ n is number }}{{ n is integer }}{{ 1.0 is float }}{{ messages is iterable }}{{ messages[0] is mapping }}{{ messages is sequence }}{{ word is iterable }}{{ yes is boolean }}{{ yes is true }}{{ n is boolean }}{{ none is none }}
{{ x is defined }}{{ x is undefined }}{{ x is not defined }}{{ n is odd }}{{ n is even }}{{ n is divisibleby 3 }}{{ n is eq 3 }}{{ n is in [3] }}{{ n is gt(2) }}{{ n is sameas 3 }}{{ 'a' is lower }}{{ 'A' is upper }}{{ n is not none and n }}{{ range is callable }}
{{ messages[0].missing }}|{{ unknown }}|{{ unknown | trim }}|{{ unknown | length }}|{{ unknown == other }}|{{ tools }}|{{ messages[0]['x'] is defined }}
{{ dict(a=1, b=word) }} {{ namespace(a=2).a }} {{ {'items': 3}['items'] }} {{ {'a': 3}.a }} {{ [[1, 2]][0][1] }} {{ "%s" }}
{{ none | selectattr('x') | list }}{{ tools | map('upper') | list }}
{{ messages | selectattr('role', '==', 'user') | map(attribute='content') | first }}
{{- word -}}\n\n{{ '  a' }}\n{%- set q = 1 %}\n\nb
{{ raise_exception('no ' + word) }}
{{ unknown.x }}
{{ 'a' + 1 }}
{{ unknown + 'a' }}
{{ 1 // 0 }}
{{ messages.append(1) }}
{{ unknown() }}
{{ n | nofilter }}
{{ none | length }}
{{ [2, 'a'] | sort }}
{% for i in n %}{% endfor %}
{% if n %}
{{ n
{% endif %}
{{ 'a }}
{{ n is nothing }}
{% break %}
{% set n.x = 1 %}
{{ 'abc'.index('z') }}
{{ ''.__class__ }}{{ messages.__len__() }}
""".strip("\n").split("\n")


def main():
    cases = []
    for template in TEMPLATES:
        template = template.replace("\\n", "\n") if not template.startswith("{{ '\\n") and "'a\\n" not in template else template
        try:
            text = _compile_jinja_template(template).render(**CONTEXT)
        except Exception as e:
            text = None
            print(f"{template!r}: {type(e).__name__}: {e}")
        cases.append({"template": template, "text": text})
    out = {"context": CONTEXT, "cases": cases}
    (HERE / "jinja.json").write_text(json.dumps(out, ensure_ascii=True, indent=1) + "\n")


main()
