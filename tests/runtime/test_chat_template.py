"""Templates in the dialect that models come with."""

from __future__ import annotations

import json
from datetime import datetime

import pytest

from wherry.errors import ModelError
from wherry.runtime.chat_template import ChatTemplate, from_folder
from wherry.runtime.request_error import RequestError

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


def test_where_it_is_found(tmp_path):
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
