"""Templates in the dialect that models come with."""

# ruff: noqa: E501 - a template is read as one line

from __future__ import annotations

import json
from datetime import datetime

import pytest
from jinja2.sandbox import ImmutableSandboxedEnvironment

from wherry.errors import ModelError
from wherry.runtime.errors import RequestError
from wherry.runtime.text.chat_template import ChatTemplate, from_folder

MESSAGES = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "<b>Hi & bye</b>"},
]
CHATML = """\
{%- for message in messages %}
    {{- '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
{%- endif %}"""


def render(source, messages=MESSAGES, special=None, **options):
    return ChatTemplate(source, special).render(messages, **options)


def test_chatml():
    opened = (
        "<|im_start|>system\nBe brief.<|im_end|>\n"
        "<|im_start|>user\n<b>Hi & bye</b><|im_end|>\n<|im_start|>assistant\n"
    )
    assert render(CHATML) == opened
    closed = opened.removesuffix("<|im_start|>assistant\n")
    assert render(CHATML, add_generation_prompt=False) == closed


def test_blocks_take_their_line():
    source = (
        "{% for m in messages %}\n  {% if m.role == 'user' %}\n{{ m.content }}\n"
        "  {% endif %}\n{% endfor %}\n"
    )
    assert render(source) == "<b>Hi & bye</b>\n"


def test_special_tokens_and_variables():
    source = (
        "{{ bos_token }}{% if thinking is defined and thinking %}!{% endif %}{{ tools is none }}"
    )
    special = {"bos_token": "<s>"}
    assert render(source, special=special) == "<s>True"
    assert render(source, special=special, variables={"thinking": True}) == "<s>!True"


def test_messages_cannot_be_overridden():
    assert render("{{ messages | length }}", variables={"messages": []}) == "2"


def test_loop_controls_and_generation_blocks():
    source = (
        "{% for m in messages %}{% if m.role == 'system' %}{% continue %}{% endif %}"
        "{% generation %}[{{ m.content }}]{% endgeneration %}{% break %}{% endfor %}"
    )
    assert render(source) == "[<b>Hi & bye</b>]"


def test_tojson_is_plain_json():
    source = "{{ messages[1] | tojson }}{{ messages[0] | tojson(indent=1) }}"
    one, two = (json.dumps(MESSAGES[1]), json.dumps(MESSAGES[0], indent=1))
    assert render(source) == one + two
    assert render("{{ 'ü<>' | tojson }}") == '"ü<>"'


def test_strftime_now():
    assert render("{{ strftime_now('%Y') }}") == datetime.now().strftime("%Y")


def test_a_refusal_is_the_requests_fault():
    source = "{{ raise_exception('Roles must alternate') }}"
    with pytest.raises(RequestError, match="Roles must alternate") as e:
        render(source)
    assert e.value.param == "messages"
    with pytest.raises(RequestError):
        render("{{ messages[0].nothing.at_all }}")


def test_the_sandbox_holds():
    for source in (
        "{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "{{ messages.append(1) }}",
        "{{ strftime_now.__globals__ }}{{ strftime_now.__globals__['json'].x }}",
    ):
        with pytest.raises(RequestError):
            render(source)


def test_a_broken_template_is_the_models_fault():
    with pytest.raises(ModelError, match="line 2"):
        ChatTemplate("a\n{% for %}")


def test_where_it_is_read_from(tmp_path):
    assert from_folder(tmp_path, {}) is None
    config = tmp_path / "tokenizer_config.json"
    named = [{"name": "tool_use", "template": "T"}, {"name": "default", "template": "D"}]
    for value, expected in (("S", "S"), (named, "D"), (named[:1], "T")):
        config.write_text(json.dumps({"chat_template": value}))
        assert from_folder(tmp_path, {}).render(MESSAGES) == expected
    config.write_text(json.dumps({"chat_template": None}))
    assert from_folder(tmp_path, {}) is None
    config.write_text(json.dumps({"chat_template": 5}))
    with pytest.raises(ModelError, match="int"):
        from_folder(tmp_path, {})
    (tmp_path / "chat_template.jinja").write_text("J")
    assert from_folder(tmp_path, {}).render(MESSAGES) == "J"


EXPRESSIONS = r"""
messages | length; messages[::-1][0].role; messages | map(attribute='role') | join(', ')
messages | selectattr('role', 'equalto', 'user') | list | length; messages[-1]['content'] | upper
messages | rejectattr('role', 'equalto', 'user') | map(attribute='content') | first
(messages | selectattr('role', 'eq', 'none') | first) is defined; messages | last | tojson
'a' ~ 1 ~ none ~ 2.5 ~ [1, 'b'] ~ {'k': (1, 2)}; [3, 1, 2] | sort; [3, 1] + [2]; (1, 2) + (3,)
2 ** 10 // 3 % 7 - 1; -5 + +3; 'ab' * 3; 3 * [1, 2]; '%s-%05.1f%%' % ('x', 1.25); '%(a)s' % {'a': 1}
'{} {:>4} {a!r}'.format(1, 2, a='x'); '{a}'.format_map({'a': 5}); '%s!' | format('hi')
'a-b-c'.split('-')[1]; 'abc'[1:]; ' x '.strip(); 'abc'.replace('b', 'xx', 1); 'a\tb'.expandtabs(4)
','.join(['a', 'b']); 'a'.ljust(3) + '|'; 'abc' is string; 5 is divisibleby(5); nothing is undefined
'b' in 'abc' and 2 in [1, 2] and 'k' in {'k': 1}; 1 < 2 < 3; not (1 == 2); 'x' if nothing else 'y'
nothing | default('d'); '' | default('e', true); 'hello world' | title; 'a b' | wordcount; 'x' | indent(2)
'a\nb' | indent(2, true); 'a\nb' | indent('> '); [1, 2, 3] | sum; [{'n': 1}, {'n': 2}] | sum(attribute='n')
[1, 2, 3, 4] | batch(3, 'x') | list; [1, 2, 3] | slice(2) | list; 2.567 | round(1); '12' | int + 1
{'b': 1, 'a': 2} | dictsort; {'b': 1}.items() | list; dict(a=1, b=2); [1, 1, 2] | unique | list
['b', 'a'] | sort(reverse=true) | join; [1, 2] | reverse | list; 'abc' | reverse; range(3) | list
[[1, 2], [3]] | map('sum') | list; [1, none] | select | list; 'x' | center(5); 'a' | replace('a', 'bb')
['a', 'b'] | join(d='+'); [{'x': 'p'}, {'x': 'q'}] | join('/', attribute='x'); '<b>' | e; 'long text' | truncate(4)
[{'g': 1, 'v': 2}, {'g': 1, 'v': 3}] | groupby('g') | map('first') | list; messages | string | length
[1, 'x', {'a': none}] | tojson(indent=2); 10 | string; 'é' | tojson; 1.0 / 3; true and none
"""


def plain_environment():
    """The sandbox of which ours is one, without a budget."""
    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
    environment.filters["tojson"] = lambda value, indent=None: json.dumps(
        value, ensure_ascii=False, indent=indent
    )
    return environment


@pytest.mark.parametrize(
    "expression", [e.strip() for line in EXPRESSIONS.strip().splitlines() for e in line.split(";")]
)
def test_counting_changes_no_result(expression):
    source = "{{ " + expression + " }}"
    assert render(source) == plain_environment().from_string(source).render(messages=MESSAGES)


def test_counting_changes_no_statement():
    source = """
        {%- macro show(x, depth=0) -%}{{ '-' * depth }}{{ x }}{{ caller() if caller }}{%- endmacro -%}
        {%- set ns = namespace(n=0, text='') -%}
        {%- for m in messages recursive -%}
            {{ loop.index }}/{{ loop.length }}{{ loop.first }}{{ loop.last }}{{ loop.cycle('a', 'b') }}
            {{ loop.previtem.role if loop.previtem }}{{ loop.nextitem is defined }}{{ loop.revindex }}
            {%- set ns.n = ns.n + 1 -%}{%- set ns.text = ns.text ~ m.role -%}
            {{ loop([]) if not loop.depth0 }}{{ show(m.role, depth=ns.n) }}
            {%- call show('x') %}called{% endcall -%}
        {%- else -%}none{%- endfor -%}
        {%- for k, v in {'a': 1, 'b': 2}.items() if v > 1 -%}{{ k }}={{ v }}{%- endfor -%}
        {%- set block %}in {{ ns.n }}{% endset -%}{{ block | upper }}{{ ns.text }}
        {%- filter upper %}shout{% endfilter -%}{% set a, b = 1, 2 %}{{ a + b }}
        {%- with c = 3 %}{{ c }}{% endwith -%}{% block x %}{{ ns.n }}{% endblock %}{{ self.x() }}
        {%- set j = joiner('|') -%}{%- for i in range(2) %}{{ j() }}{{ i }}{% endfor -%}
        {%- autoescape true %}{{ '<' ~ '>' }}{% endautoescape -%}
    """
    assert render(source) == plain_environment().from_string(source).render(messages=MESSAGES)
