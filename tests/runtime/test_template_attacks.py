"""Templates that would run for ever, take all memory, or fail in ways of their own.

What they may take is counted, so the tests are the same on every machine; the time limits here are
those of a slow one, and every attack that is let through misses them by minutes.
"""

# ruff: noqa: E501 - a template is read as one line
from __future__ import annotations

import random
import resource
import time

import pytest

from wherry.errors import ModelError
from wherry.runtime.caller import Abandoned, Caller
from wherry.runtime.errors import RequestError
from wherry.runtime.text import template_budget
from wherry.runtime.text.chat_template import ChatTemplate

MESSAGES = [{"role": "user", "content": "hello world " * 50}]
BIG = "{% set big = 'x' * 4000000 %}"
NESTED = "{% set a0 = ['x'] %}" + "".join(
    f"{{% set a{i} = [a{i - 1}, a{i - 1}] %}}" for i in range(1, 41)
)
SPACE = "{% set ns = namespace() %}" + BIG + "{% set ns.x = big %}"

ATTACKS = {
    # time
    "nested loops": "{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}",
    "loops of sums": "{% for a in range(100000) %}{% if range(100000)|sum %}{% endif %}{% endfor %}",
    "loops of generators": (
        "{% for a in range(100000) %}{% if range(100000)|map('string')|list %}{% endif %}{% endfor %}"
    ),
    "a filter of maps": "{{ range(100000)|map('string')|map('list')|map('join')|list|length }}" * 40,
    "double recursion": "{% macro f(n) %}{% if n %}{{ f(n - 1) }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(60) }}",
    "recursive loop": (
        "{% for x in range(300) recursive %}{{ loop(range(300)) }}{% endfor %}"
    ),
    "searches": BIG + "{% for a in range(100000) %}{% if (big ~ 'y') in (big ~ 'z') %}{% endif %}{% endfor %}",
    "comparisons": BIG + "{% for a in range(100000) %}{{ '' if big[1:] == big[:-1] }}{% endfor %}",
    "splits": BIG + "{% for a in range(100000) %}{% if big.split('x') %}{% endif %}{% endfor %}",
    "sorting": BIG + "{{ range(100000)|map('default', big, true)|sort|length }}{{ ([0] * 9999)|map('default', big, true)|sort|length }}",
    "sorting by an attribute": SPACE + "{{ ([0] * 9999)|map('default', ns, true)|sort(attribute='x')|length }}",
    "sorting a list by an attribute": SPACE + "{% set l = [ns, ns] %}" + "{% set l = l + l %}" * 12 + "{{ l|sort(attribute='x')|length }}",
    "a list whose namespaces grow": "{% set ns = namespace(x='') %}{% set l = [ns, ns] %}" + "{% set l = l + l %}" * 12 + BIG + "{% set ns.x = big %}{{ l|sort(attribute='x')|length }}",
    "a list that grows": "{% set ns = namespace(l=[]) %}{% for a in range(99999) %}{% set _ = ns.l.append(a) %}{% endfor %}",
    "a list in itself": "{% set ns = namespace(l=['aaaa']) %}{% for a in range(99) %}{% set _ = ns.l.append(ns.l) %}{% endfor %}",
    "sorting characters": BIG + "{{ big|sort }}",
    # numbers
    "a power": "{{ 10 ** 1000000000 }}",
    "powers": "{% set ns = namespace(n=10) %}{% for i in range(60) %}{% set ns.n = ns.n * ns.n %}{% endfor %}{{ ns.n }}",
    "a precision": "{{ 1.5|round(1000000000, 'ceil') }}",
    "bytes of a number": "{{ (1).to_bytes(1000000000, 'big') }}",
    "digits": BIG + "{{ ('1' * 4000000)|int(0, 2) }}",
    # texts
    "a product": "{{ 'a' * 10 ** 9 }}",
    "a product the other way": "{{ 1000000000 * 'a' }}",
    "a list's product": "{{ ([0] * 1000000000)|length }}",
    "doubling": "{% set ns = namespace(s='aa') %}{% for i in range(40) %}{% set ns.s = ns.s + ns.s %}{% endfor %}",
    "doubling by ~": "{% set ns = namespace(s='aa') %}{% for i in range(40) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}",
    "one long ~": BIG + "{% set x = " + " ~ ".join(["big"] * 2000) + " %}",
    "output": BIG + "{% for i in range(100000) %}{{ big }}{% endfor %}",
    "output of a macro": BIG + "{% macro m() %}{% for i in range(100000) %}{{ big }}{% endfor %}{% endmacro %}{% set x = m() %}",
    "output of a block": BIG + "{% set x %}{% for i in range(100000) %}{{ big }}{% endfor %}{% endset %}",
    "constant output": "{% for i in range(100000) %}" + "x" * 100_000 + "{% endfor %}",
    "a joined list": BIG + "{{ ([big] * 100)|join }}",
    "a joined generator": BIG + "{{ range(100000)|map('default', big)|join }}{{ ([0] * 9999)|map('default', big, true)|join }}",
    "a joined attribute": SPACE + "{{ ([0] * 9999)|map('default', ns, true)|join(attribute='x') }}",
    "a separator": BIG + "{{ range(100000)|join(big) }}",
    "str.join": BIG + "{{ big.join(range(1000)|map('string')) }}",
    "str.join of many": BIG + "{{ ''.join([big] * 1000) }}",
    "replace": BIG + "{{ big|replace('x', big) }}",
    "str.replace": BIG + "{{ big.replace('x', big) }}",
    "ljust": "{{ 'a'.ljust(1000000000) }}",
    "zfill": "{{ 'a'.zfill(1000000000) }}",
    "center": "{{ 'a'|center(1000000000) }}",
    "expandtabs": "{{ ('\t' * 1000000).expandtabs(100000) }}",
    "translate": BIG + "{{ 'a'.translate({97: big}) }}",
    "indent": "{{ ('a\n' * 1000000)|indent(1000) }}",
    "indent by a text": "{{ ('a\n' * 1000000)|indent('a' * 1000) }}",
    "percent": "{{ '%1000000000d' % 1 }}",
    "percent star": "{{ '%*d' % (1000000000, 1) }}",
    "percent precision": "{{ '%.1000000000f' % 1.5 }}",
    "many percents": BIG + "{{ ('%(a)s' * 5000) % {'a': big} }}",
    "format filter": "{{ '%1000000000d'|format(1) }}",
    "str.format": "{{ '{:>1000000000}'.format(1) }}",
    "a nested format": "{{ '{:>{}}'.format(1, 1000000000) }}",
    "many fields": BIG + "{{ ('{0}' * 5000).format(big) }}",
    "format_map": "{{ '{a:>1000000000}'.format_map({'a': 1}) }}",
    "strftime": "{{ strftime_now('%1000000000Y' * 1000) }}",
    "batch": "{{ [1]|batch(1000000000, 'x')|list }}",
    "slice": "{{ [1]|slice(1000000000)|list }}",
    "sum of lists": "{{ ([[0]] * 100000)|sum(start=[]) }}",
    "fromkeys": BIG + "{{ {}.fromkeys(range(100000), big) }}",
    "dict": BIG + "{{ dict(a=[big] * 1000) }}",
    # texts of nested lists
    "laughs": NESTED + "{{ a40 }}",
    "laughs as JSON": NESTED + "{{ a40|tojson }}",
    "laughs joined": NESTED + "{{ a40 ~ '' }}",
    "laughs formatted": NESTED + "{{ '%s' % a40 }}{{ '{}'.format(a40) }}",
    "laughs compared": NESTED + NESTED.replace("a", "b").replace("bsm", "asm") + "{{ a40 == b40 }}",
    "laughs of tuples": NESTED.replace("[", "(").replace("]", ",)") + "{{ {a40: 1} }}",
    "laughs of dicts": "{% set d = {} %}" + "{% set d = {'a': d, 'b': d} %}" * 40 + "{{ d }}",
    "laughs of products": "{% set a = [[['x'] * 1000] * 1000] * 1000 %}{{ a }}",
    "indented JSON": "{% set a = range(100000)|list %}{{ a|tojson(indent=60) }}{{ [a, a, a, a, a]|tojson(indent=60) }}",
    "deep JSON": "{% set ns = namespace(x=1) %}{% for i in range(5000) %}{% set ns.x = dict(a=ns.x) %}{% endfor %}{{ ns.x|tojson }}",
    "a namespace in itself": "{% set ns = namespace() %}{% set ns.x = [ns] %}{{ ns }}{{ ns.x }}",
    "laughs of namespaces": "{% set n0 = namespace(a='x') %}" + "".join(f"{{% set n{i} = namespace(a=[n{i - 1}, n{i - 1}]) %}}" for i in range(1, 41)) + "{{ [n40] }}",
    # failures
    "recursion": "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
    "zero": "{{ 1 // 0 }}",
    "a block in itself": "{% block a %}{{ self.a() }}{% endblock %}",
    "an include": "{% include 'x' %}",
    "no such thing": "{{ nothing.at.all }}",
    "a long refusal": "{{ raise_exception('x' * 3000000) }}",
    "a wrong type": "{{ 'a' + 1 }}",
}  # fmt: skip


def cost(work) -> tuple[float, int]:
    """Seconds of the thread, and bytes by which the process's peak grew."""
    start, before = time.thread_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    work()
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return time.thread_time() - start, (after - before) * 1024


@pytest.mark.parametrize("name", ATTACKS)
def test_attacks_end_as_one_kind_of_error(name, monkeypatch):
    monkeypatch.setattr(template_budget, "SECONDS", 1.0)
    rendered: list[str] = []

    def attack():
        with pytest.raises(RequestError) as e:
            rendered.append(ChatTemplate(ATTACKS[name]).render(MESSAGES))
        assert e.value.code == "chat_template"
        assert e.value.param == "messages"
        assert 60 < len(str(e.value)) < 1500

    seconds, grown = cost(attack)
    assert seconds < 5
    assert grown < 400e6


@pytest.mark.parametrize(
    "source",
    [
        "{{" + "(" * 50_000 + ")" * 50_000 + "}}",
        "{{ " + "-" * 100_000 + "1 }}",
        "{{ " + "1+" * 50_000 + "1 }}",
        "{{ a" + ".b" * 50_000 + " }}",
        "{{ " + "[" * 5_000 + "]" * 5_000 + "}}",
        "{% if a %}" * 5_000 + "{% endif %}" * 5_000,
        "{% for a in b %}" * 30 + "{% endfor %}" * 30,  # Python's limit of nested blocks is 20
        "x" * 2**20,
        "{% nothing %}",
        "{{ a|urlize }}",
        "{{ 'a",
    ],
    ids=range(11),
)  # fmt: skip
def test_what_cannot_be_compiled_is_the_models_fault(source):
    def attack():
        with pytest.raises(ModelError, match="chat template"):
            ChatTemplate(source)

    seconds, grown = cost(attack)
    assert seconds < 15
    assert grown < 400e6


@pytest.mark.parametrize(
    "source",
    [
        "{{ 'a' * 1000000000 }}",
        "{{ 'a'|center(1000000000) }}",
        "{{ 10 ** 10 ** 10 }}",
        "{{ range(100000)|list }}",
        "{{ ['a', 'b']|join }}",
    ],
)
def test_nothing_is_worked_out_at_loading(source):
    seconds, grown = cost(lambda: ChatTemplate("{% if false %}" + source + "{% endif %}"))
    assert seconds < 5
    assert grown < 100e6


def test_a_caller_who_goes_ends_it():
    caller = Caller()
    caller.gone = True
    template = ChatTemplate("{% for a in range(10000) %}{% endfor %}")
    with pytest.raises(Abandoned):
        template.render(MESSAGES, caller=caller)


def test_long_chats_are_within_the_budget():
    """Copies, a namespace that grows, a search backwards: what real templates do with each message."""
    source = (
        "{% set ns = namespace(text='', last=-1) %}"
        "{% for m in messages[::-1] %}{% if m.role == 'user' and ns.last < 0 %}"
        "{% set ns.last = loop.index0 %}{% endif %}{% endfor %}"
        "{% for m in messages %}{% set c = m.content.split('</think>')[-1].lstrip('\n') | trim %}"
        "{% set ns.text = ns.text ~ '<|' ~ m.role ~ '|>' ~ c %}"
        "{% if loop.last or messages | length == loop.index %}!{% endif %}"
        "{{ '<|' + m['role'] + '|>\n' + c + '<|end|>\n' }}{% endfor %}"
    )
    rng = random.Random(0)
    messages = [
        {"role": "user", "content": "".join(rng.choices("ab \n", k=300))} for _ in range(1000)
    ]
    assert len(ChatTemplate(source).render(messages)) > 290_000
    one = [{"role": "user", "content": "x" * 10_000_000}]
    assert len(ChatTemplate(source).render(one)) > 10_000_000
