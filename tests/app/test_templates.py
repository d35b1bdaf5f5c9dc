"""The C++ runtime of chat templates answers as Python's does, byte for byte."""

# ruff: noqa: E501 - a template is read as one line
from __future__ import annotations

import json
import random
import re
import unicodedata
from pathlib import Path
from typing import Any

import pytest

from wherry.errors import ModelError
from wherry.runtime.errors import RequestError
from wherry.runtime.text.chat_template import ChatTemplate

from ..runtime.test_chat_template import CHATML, EXPRESSIONS
from ..runtime.test_chat_template import MESSAGES as SHORT
from ..runtime.test_template_attacks import ATTACKS
from ..runtime.test_template_attacks import MESSAGES as LONG
from .programs import Program
from .random_templates import MESSAGES, VARIABLES, Maker

pytestmark = pytest.mark.filterwarnings("ignore::SyntaxWarning")  # of what Jinja compiles to
SPECIAL = {"bos_token": "<s>", "eos_token": "</s>"}
CASES = json.loads((Path(__file__).parents[1] / "web" / "text_cases.json").read_text())


@pytest.fixture(scope="module")
def cpp():
    with Program("wherry_render_templates") as program:
        yield program


def python(
    source: str, messages: Any, variables: Any = None, opened: bool = True
) -> dict[str, Any]:
    try:
        template = ChatTemplate(source, SPECIAL)
    except ModelError as e:
        return {"invalid": str(e)}
    try:
        text = template.render(messages, add_generation_prompt=opened, variables=variables)
        return {"text": text}
    except RequestError as e:
        return {"refused": str(e)}


def both(cpp, source: str, messages: Any, variables: Any = None) -> tuple[Any, Any]:
    rendered = cpp.ask(source=source, special=SPECIAL, messages=messages, variables=variables or {})
    return rendered, python(source, messages, variables)


@pytest.mark.parametrize("line", EXPRESSIONS.strip().splitlines())
def test_expressions(cpp, line):
    for expression in line.split(";"):
        rendered, expected = both(cpp, "{{ " + expression.strip() + " }}", SHORT)
        assert rendered == expected
        assert "text" in rendered


def test_the_shared_table(cpp):
    for case in CASES["templates"]:
        rendered = cpp.ask(**{**case, "messages": CASES["messages"], "text": None})
        assert rendered.get("text") == case["text"]


def test_every_character_is_as_pythons_str_has_it(cpp):
    # Of characters that are younger than its Unicode a Python says nothing.
    of_tables = unicodedata.unidata_version == "14.0.0"
    database: Any = unicodedata if of_tables else unicodedata.ucd_3_2_0
    known = [chr(c) for c in range(0x110000) if not 0xD800 <= c < 0xE000]
    known = [c for c in known if database.category(c) != "Cn"]
    text = " ".join("".join(known[at : at + 9]) for at in range(0, len(known), 9))
    for change in ("upper", "lower", "title", "swapcase", "casefold", "capitalize"):
        rendered = cpp.ask(
            source=f"{{{{ x.{change}() }}}}", special={}, messages=[], variables={"x": text}
        )
        assert rendered == {"text": getattr(text, change)()}
    kinds = "alpha decimal digit numeric upper lower title printable space".split()
    cells = "".join(f"{{{{ 'x' if c.is{kind}() else '-' }}}}" for kind in kinds)
    some = "".join(known[:2000] + known[2000::17])
    rendered = cpp.ask(
        source=f"{{% for c in x %}}{cells} {{% endfor %}}",
        special={},
        messages=[],
        variables={"x": some},
    )
    rows = ["".join("-x"[getattr(c, f"is{kind}")()] for kind in kinds) for c in some]
    assert rendered["text"].split() == rows


STATEMENTS = [
    CHATML,
    "{% for m in messages %}\n  {% if m.role == 'user' %}\n{{ m.content }}\n  {% endif %}\n{% endfor %}\n",
    "a\n  {%+ if true %}b{% endif %}\n {#- c -#} \n {% raw %} {{ x }} {%- endraw %} \n\n",
    "{%- macro show(x, depth=0) -%}{{ '-' * depth }}{{ x }}{{ caller() if caller }}{%- endmacro -%}"
    "{% call show('x') %}called{% endcall %}{{ show('y', depth=2) }}{{ show.name }}{{ show.arguments }}",
    "{% for m in messages recursive %}{{ loop.index }}{{ loop.depth }}{{ loop([]) if not loop.depth0 }}{% else %}none{% endfor %}",
    "{% for k, v in {'a': 1, 'b': 2}.items() if v > 1 %}{{ k }}={{ v }}{% endfor %}",
    "{% set block %}in {{ 1 }}{% endset %}{{ block | upper }}{% filter upper %}shout{% endfilter %}",
    "{% set a, b = 1, 2 %}{{ a + b }}{% with c = 3 %}{{ c }}{% endwith %}{{ c }}{% block x %}{{ a }}{% endblock %}{{ self.x() }}",
    "{% set j = joiner('|') %}{% for i in range(2) %}{{ j() }}{{ i }}{% endfor %}{% set c = cycler('a', 'b') %}{{ c.next() }}{{ c.next() }}{{ c.next() }}",
    "{% set x = 1 %}{% for i in [1, 2] %}{{ x }}{% set x = 5 %}{{ x }}{% endfor %}{{ x }}",
    "{% macro f() %}{{ y }}{% endmacro %}{% set y = 3 %}{{ f() }}",
    "{% generation %}[{{ messages[0].content }}]{% endgeneration %}",
    # Namespaces in lists, as MiroThinker's template has them.
    "{% set ns = namespace(all=[], last=none) %}{% for m in messages %}{% set one = namespace(n=loop.index, text=m.content) %}"
    "{% set ns.all = ns.all + [one] %}{% set ns.last = one %}{% endfor %}{% set ns.last.text = 'end' %}{{ ns.all }}{{ ns.all | length }}"
    "{% for one in ns.all if one.n is odd %}{{ one.n }}={{ one.text }};{% endfor %}{{ ns.all | map(attribute='n') | list }}"
    "{{ {'a': ns.all, 'b': (ns,)} }}{{ ns.all[-1] == ns.last }}{{ ns.last in ns.all }}{{ {'a': ns}.values() | list }}",
    "{{ [namespace(a=1)] | tojson }}",
    # Lists of namespaces change, as Kimi K2's template in GGUF files has them.
    "{% set ns = namespace(ids=[], n=3) %}{% for m in messages %}{% set _ = ns.ids.append(m.role) %}{% endfor %}"
    "{{ ns.ids }}{{ ns.ids.pop(0) }}{{ ns.ids.pop() }}{{ ns.ids }}{{ ns.ids.append(ns.ids.pop(-1) ~ ns.ids) }}{{ ns.ids }}",
    "{% set ns = namespace(ids=[1]) %}{% set old = [ns.ids] %}{% set _ = ns.ids.append(old) %}{{ old }}{{ ns.ids }}",
    "{% set ns = namespace(ids=[]) %}{{ ns.ids.pop() }}",
    "{% set ns = namespace(ids=[1]) %}{{ ns.ids.pop(1) }}",
    "{% set ns = namespace(ids=[1]) %}{{ ns.ids.pop('a') }}",
    "{% set ns = namespace(ids=[1]) %}{{ ns.ids.append() }}",
    "{% set ns = namespace(ids=[1]) %}{{ ns.ids.clear() }}",
    "{% set ns = namespace(ids='a') %}{{ ns.ids.append(1) }}",
    "{% set ns = namespace(ids=messages) %}{{ ns.ids.append(1) }}{{ ns.ids | length }}{{ messages | length }}",
    "{% set d = {'ids': []} %}{{ d.ids.append(1) }}",
    "{{ nothing.ids.append(1) }}",
    "{% set ns = namespace() %}{{ ns.ids.append(1) }}",
    "{% set ids = [] %}{{ ids.append(1) }}",
    "{% if false %}{{ 1 | nothing }}{% endif %}{{ 'x' if true else 1 | nothing }}{{ 1 is nothing if false }}",
    "{{ messages[0].nothing.at_all }}",
    "{{ raise_exception('Roles must alternate') }}",
    "{{ ''.__class__.__mro__ }}",
    "{{ messages.append(1) }}",
    "{{ 'a' + 1 }}",
    "{{ 1 + 'a' }}",
    "{{ {'a': 1}.b.c }}",
    "{{ none.x }}{{ none.x.y }}",
    "{% include 'x' %}",
    "{% for %}",
    "a\n{% nothing %}",
    "{% if true %}",
    "{% if true %}{% endfor %}",
    "{{ 1 | nothing }}",
    "{{ 1 is nothing }}",
    "{{ 'a",
    "{{ a b }}",
    "{{ (1 }}",
    "{{ 1 + }}",
    "{% break %}",
    "{# x",
    "{% set 1 = 2 %}",
]


@pytest.mark.parametrize("source", STATEMENTS)
def test_statements_and_errors(cpp, source):
    rendered, expected = both(cpp, source, SHORT)
    assert (rendered.keys(), rendered.get("text")) == (expected.keys(), expected.get("text"))
    assert rendered.get("invalid", "The chat template, line ").startswith(
        "The chat template, line "
    )


@pytest.mark.parametrize("name", ATTACKS)
def test_attacks_end_within_the_budget(cpp, name):
    rendered = cpp.ask(source=ATTACKS[name], special=SPECIAL, messages=LONG)
    assert 60 < len(rendered["refused"]) < 1500


@pytest.mark.parametrize(
    "source",
    [
        "{{" + "(" * 50_000 + ")" * 50_000 + "}}",
        "{{ " + "-" * 100_000 + "1 }}",
        "{{ " + "1+" * 50_000 + "1 }}",
        "{{ a" + ".b" * 50_000 + " }}",
        "{{ " + "[" * 5_000 + "]" * 5_000 + "}}",
        "{% if a %}" * 5_000 + "{% endif %}" * 5_000,
        "x" * 2**20,
    ],
    ids=range(7),
)
def test_what_is_too_large_is_the_models_fault(cpp, source):
    assert "chat template" in cpp.ask(source=source, messages=[])["invalid"]


def test_variables_that_templates_look_at(cpp):
    for source in (
        "{{ a }}{% set b = 1 %}{{ b }}{% if c %}{% set d = 1 %}{% endif %}{{ d }}{{ namespace() }}",
        "{% for x in xs %}{{ x }}{{ loop.index }}{{ y }}{% set y = 1 %}{% endfor %}{{ y }}",
        "{% macro m(p, q=r) %}{{ p }}{{ s }}{{ caller }}{% endmacro %}{{ m() }}",
        "{% if a %}{% set t = 1 %}{% else %}{% set t = 2 %}{% endif %}{{ t }}",
        "{% if tools is not defined %}{% set tools = none %}{% endif %}{{ tools }}",
        "{% set ns = namespace(a=b) %}{% set ns.c = d %}{% with e = f %}{{ e }}{{ g }}{% endwith %}",
    ):
        variables = cpp.ask(source=source, names=True)["variables"]
        assert set(variables) == ChatTemplate(source).variables


def check_random(cpp, seed: int, count: int) -> None:
    """Text equal to text, failure to failure."""
    maker = Maker(random.Random(seed))
    for i in range(count):
        source = maker.statements() if i % 3 == 0 else "{{ " + maker.expression() + " }}"
        rendered, expected = both(cpp, source, MESSAGES, VARIABLES)
        if " at 0x" in str(expected).lower() or re.search(
            "63 bits|a complex number", str(rendered)
        ):
            continue  # an address, a number that is none here
        assert rendered.keys() == expected.keys(), (source, rendered, expected)
        assert rendered.get("text") == expected.get("text"), source


def test_templates_at_random(cpp):
    check_random(cpp, 1, 400)


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(2, 12))
def test_many_templates_at_random(cpp, seed):
    check_random(cpp, seed, 5000)
