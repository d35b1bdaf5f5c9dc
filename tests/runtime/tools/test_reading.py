"""Outputs of thirty models, cut in every way: what is read is the same, and nothing is lost."""

from __future__ import annotations

import json
import random
import time

import pytest

from wherry.runtime.core.host_abi import answer_to
from wherry.runtime.text.chat_template import ChatTemplate

from ...support.chats import chats
from ...support.families import NAMES, named
from ...support.readers import (
    CallArguments,
    CallBegin,
    CallEnd,
    OutputParser,
    Tools,
    joined,
    message_of,
    opened,
    thoughts_of,
)
from .slips import SLIPS, Slip, fields_of
from .written import WRITTEN, Written

WEATHER = {
    "type": "object",
    "properties": {
        "city": {"type": "string"},
        "days": {"type": "integer"},
        "tags": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["city"],
}
TOOLS = Tools({"get_weather": WEATHER, "now": {"type": "object", "properties": {}}})
NOW = {"type": "function", "function": {"name": "now"}}
CONSTRAINED = Tools(TOOLS.schemas, constrained=True)
ARGUMENTS = {"city": "Paris", "days": 3, "tags": ['a "b"', "é"]}
every_model = pytest.mark.parametrize("w", WRITTEN, ids=lambda w: w.model)


def parser_of(w: Written, tools: Tools = TOOLS, **options) -> OutputParser:
    thoughts = thoughts_of("\n".join(w.signs))
    begun = thoughts is not None and opened(thoughts, w.prompt)
    return OutputParser(w.family, tools, thoughts, opened=begun, **options)


def read(w: Written, pieces=None, **options):
    """All parts of an output that comes in these pieces; neighbours joined, ids left out."""
    parser = parser_of(w, **options)
    parts = [p for piece in pieces or [w.output] for p in parser.push(piece)]
    parts = joined(parts + parser.finish())
    for part in parts:
        if isinstance(part, CallBegin):
            assert part.id
            part.id = ""
    return parts


@every_model
def test_the_template_tells_the_family(w):
    template = "{{ tools }}{% raw %}" + "\n".join(w.signs) + "{% endraw %}"
    assert answer_to("wherry_template_traits", template)["tool_format"] == w.family


@every_model
def test_calls_and_reasoning(w):
    message = message_of(read(w))
    assert [c.name for c in message.calls] == ["get_weather", "now"][: w.calls]
    assert json.loads(message.calls[0].arguments) == ARGUMENTS
    assert all(json.loads(c.arguments) == {} for c in message.calls[1:])
    assert message.text == ""
    assert message.reasoning == w.reasoning


@every_model
def test_how_it_is_cut_changes_nothing(w):
    full = read(w)
    assert read(w, list(w.output)) == full
    rng = random.Random(w.model)
    for _ in range(20):
        cuts = sorted(rng.sample(range(len(w.output)), 5))
        pieces = [w.output[a:b] for a, b in zip([0, *cuts], [*cuts, None], strict=True)]
        assert read(w, pieces) == full


@every_model
def test_what_has_streamed_is_a_beginning_of_the_full_output(w):
    """At every character: names, arguments and texts so far are beginnings of the final ones."""
    final = message_of(read(w))
    parser, parts = parser_of(w), []
    for char in w.output:
        parts += parser.push(char)
        now = message_of(parts)
        assert final.text.startswith(now.text)
        assert final.reasoning.startswith(now.reasoning)
        for call, full in zip(now.calls, final.calls, strict=False):
            assert call.name == full.name
            assert full.arguments.startswith(call.arguments)
    ended = [p.index for p in parts + parser.finish() if isinstance(p, CallEnd) and p.complete]
    assert ended == list(range(w.calls))


@every_model
def test_an_output_that_is_cut_off_loses_nothing(w):
    """At every length: what is no call yet is text, what has begun ends."""
    final = message_of(read(w))
    for end in range(len(w.output)):
        parts = read(w, [w.output[:end]])
        now = message_of(parts)
        begun = [p for p in parts if isinstance(p, CallBegin)]
        ended = [p for p in parts if isinstance(p, CallEnd)]
        assert [p.index for p in begun] == [p.index for p in ended] == list(range(len(begun)))
        for call, full in zip(now.calls, final.calls, strict=False):
            assert full.arguments.startswith(call.arguments) or not ended[-1].complete
        if not now.calls and not named(w.family).channels:
            thoughts = thoughts_of("\n".join(w.signs))
            marks = (thoughts.begin, thoughts.end) if thoughts else ()
            came = w.output[:end]
            for mark in marks:
                came = came.replace(mark, "", 1)
            assert "".join((now.reasoning + now.text).split()) == "".join(came.split())


@every_model
def test_arguments_stream(w):
    """They are not held until the call is whole."""
    parser = parser_of(w)
    pieces = [p.text for c in w.output for p in parser.push(c) if isinstance(p, CallArguments)]
    assert len(pieces) > 10


@every_model
def test_text_before_and_after_calls(w):
    """Where a format allows it: words first, then calls. No call among them changes the words."""
    family = named(w.family)
    if family.channels or (family.bare and not family.begins):
        return
    said = "Well: {1} [2] <3> ```\n \n"
    begin = next((b for b in family.begins if b in w.output), None)
    if begin is None:
        return
    at = w.output.index(begin)
    with_words = w._replace(output=w.output[:at] + said + w.output[at:])
    message = message_of(read(with_words, list(with_words.output)))
    assert message.text.strip() == said.rstrip()
    assert len(message.calls) == w.calls
    assert json.loads(message.calls[0].arguments) == ARGUMENTS


@every_model
def test_words_alone(w):
    for said in ("Hello", " {x} \n[y]", "<tool", "call: {", "", "\n\n"):
        text = w._replace(output=said, prompt="")
        assert message_of(read(text, list(said))).text.strip() == said.strip()


@every_model
def test_one_call_is_enough(w):
    parser = parser_of(w, most=1)
    parts = []
    for char in w.output:
        parts += parser.push(char)
        if parser.done:
            break
    assert len(message_of(parts).calls) == 1
    assert parser.done


@pytest.mark.parametrize("name", NAMES)
def test_the_example_is_a_call(name):
    """What a model is told that has to be told in words."""
    ask = {"messages": [{"role": "user", "content": "x"}], "tools": [NOW]}
    with chats(ChatTemplate("{{ messages[0].content }}"), tool_format=name) as prompted:
        _, _, rest = prompted(ask)[0].partition("nothing after it:\n")
    example, _, _ = rest.partition("\n You get")
    if name in ("harmony", "json"):
        assert example == ""
        return
    for word, meant in (("NAME", "now"), ("{ARGUMENTS}", '{"a": 1}'), ("KEY", "a"), ("VALUE", "1")):
        example = example.replace(word, meant)
    message = of(name, example)
    assert [c.name for c in message.calls] == ["now"]
    assert message.text == ""
    assert json.loads(message.calls[0].arguments) in ({"a": 1}, {"a": "1"})


PIECES = [
    *[
        "<think>",
        "</think>",
        "get_weather",
        "now",
        "functions.",
        '{"name": "now"',
        ', "arguments": ',
    ],
    *["{", "}", "[", "]", "(", ")", '"', "'", "\\", ":", "=", ",", ";", " ", "\n", "-", "1", "NaN"],
    *["call:", "city", "```json", "\\u", "00e9", "\\ud83d", "\\x4", "é", "text", "True"],
    *["<parameter=city>", "</parameter>", "<arg_key>", "</arg_key>", "<arg_value>"],
    "\N{IDEOGRAPHIC SPACE}",
]


def check_junk(family: str, seed: int, times: int) -> None:
    """Pieces of the format in any order: no error, and however it is cut, the same parts."""
    rng = random.Random(f"{family} {seed}")
    form = named(family)
    words = [*form.markers, *form.begins, *PIECES]
    for _ in range(times):
        output = "".join(rng.choices(words, k=rng.randrange(1, 25)))
        w = Written("", family, ("</think>",), rng.choice(["", "<think>"]), output)
        parts = read(w)
        assert read(w, list(output)) == parts, output
        begun = [p.index for p in parts if isinstance(p, CallBegin)]
        ended = [p.index for p in parts if isinstance(p, CallEnd)]
        assert begun == ended == list(range(len(begun))), output
        if not begun and not form.channels:
            shown = "".join(getattr(p, "text", "") for p in parts)
            for mark in ("<think>", "</think>", *form.silent):
                output, shown = output.replace(mark, ""), shown.replace(mark, "")
            assert "".join(shown.split()) == "".join(output.split())


@pytest.mark.parametrize("family", NAMES)
def test_junk(family):
    check_junk(family, 0, 150)


def check_damaged(w: Written, seed: int, times: int) -> int:
    """Spans left out, written twice or replaced: no error, and however it is cut, the same.

    Returns how many of the outputs still have a call.
    """
    rng = random.Random(f"{w.model} {seed}")
    junk = ["", '"', "}", "{", "]", "<", "\\", "\n", "x", "'", *named(w.family).markers]
    called = 0
    for _ in range(times):
        a, b = sorted(rng.sample(range(len(w.output) + 1), 2))
        b = rng.choice([b, min(b, a + 3)])
        middle = rng.choice([rng.choice(junk), w.output[a:b] * 2])
        damaged = w._replace(output=w.output[:a] + middle + w.output[b:])
        if not damaged.output:
            continue
        parts = read(damaged)
        assert read(damaged, list(damaged.output)) == parts, damaged.output
        begun = [p.index for p in parts if isinstance(p, CallBegin)]
        assert (
            begun == [p.index for p in parts if isinstance(p, CallEnd)] == list(range(len(begun)))
        )
        called += bool(begun)
    return called


@every_model
def test_damaged_calls(w):
    assert check_damaged(w, 0, 80) > 20


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(1, 6))
def test_much_junk(seed):
    for family in NAMES:
        check_junk(family, seed, 400)
    for w in WRITTEN:
        check_damaged(w, seed, 150)


LONG = {  # output before, repeated piece, output after
    "string": ("hermes", '<tool_call>{"name": "now", "arguments": {"a": "', "abc ", '"}}'),
    "escapes": ("hermes", '<tool_call>{"name": "now", "arguments": {"a": "', '\\"\\n', '"}}'),
    "members": ("hermes", '<tool_call>{"name": "now", "arguments": {"a": [1', ', {"b": 2}', "]}}"),
    "elements": ("qwen-coder", "<function=now>", "<parameter=a>b</parameter>", "</function>"),
    "arguments": ("pythonic", "[now(a=1", ", b=[2, {'c': 3}]", ")]"),
    "items": ("pythonic", "[now(a=[1", ", {'b': '\\n', 'c': [d]}", "])]"),
    "calls": ("hermes", "", '<tool_call>{"name": "now"}</tool_call>', ""),
    "text": ("hermes", "", "so < ", ""),
}


@pytest.mark.parametrize("name", LONG)
@pytest.mark.by_day("escapes", "arguments", "items")
def test_the_cost_grows_as_the_length(name):
    """A character costs the same at the beginning of 100,000 and at their end."""
    family, before, piece, after = LONG[name]
    parser = OutputParser(named(family), TOOLS)
    text = before + piece * (100_000 // len(piece)) + after
    seconds = []
    for start in range(0, len(text), 10_000):
        began = time.process_time()
        for char in text[start : start + 10_000]:
            parser.push(char)
        seconds.append(time.process_time() - began)
    parser.finish()
    assert min(seconds[6:9]) < 3 * max(seconds[1:4]), seconds


def test_depth_is_bounded():
    for family, text in (
        ("hermes", "<tool_call>" + '{"function": ' * 5000),
        ("pythonic", "[now(a=" + "[" * 5000),
        ("hermes", '<tool_call>{"name": "now", "arguments": ' + "[" * 5000),
        ("qwen-coder", "<function=now><parameter=a>" + "[" * 99999 + "</parameter></function>"),
    ):
        of(family, text)


def of(family: str, output: str, **options):
    return message_of(read(Written("", family, (), "", output), list(output), **options))


@pytest.mark.parametrize(
    ("family", "output"),
    [
        ("hermes", '<tool_call>\n{"name": 7}\n</tool_call> so'),
        ("hermes", "<tool_call> is how I call tools"),
        ("hermes", '<tool_call>{"name": "f", "arg'),
        ("llama", '{"name": "unknown", "parameters": {}}'),
        ("llama", '{"answer": 42}'),
        ("json", "[1, 2, 3]"),
        ("pythonic", "[unknown(a=1)]"),
        ("pythonic", "[get_weather, now]"),
        ("mistral", "[TOOL_CALLS] nothing"),
        ("mistral-list", "[TOOL_CALLS] [1]"),
        ("qwen-coder", "<function= is how"),
        ("glm", "<tool_call>get_weather tells"),
        ("gemma", "<|tool_call>none<tool_call|>"),
        ("deepseek-v3", "<｜tool▁calls▁begin｜>none"),  # noqa: RUF001
        ("kimi", "<|tool_calls_section_begin|><|tool_call_begin|>f"),
        ("harmony", "just text"),
    ],
)
def test_what_is_no_call_is_text(family, output):
    message = of(family, output)
    assert message.calls == []
    assert message.text == output


@pytest.mark.parametrize(
    ("family", "output", "arguments"),
    [
        # As written: bad JSON is the client's to see, as with OpenAI.
        ("hermes", "<tool_call>{'name': 1}</tool_call>", None),
        ("hermes", '<tool_call>{"name": "now", "arguments": {"a": tru}}</tool_call>', '{"a": tru}'),
        ("hermes", '<tool_call>{"name": "now", "arguments": {"a": 1</tool_call>', '{"a": 1'),
        # Arguments first; arguments as a text; none at all; braces too many.
        ("hermes", '<tool_call>{"arguments": {"a": 1}, "name": "now"}</tool_call>', '{"a": 1}'),
        (
            "hermes",
            '<tool_call>{"name": "now", "arguments": "{\\"a\\": \\"\\u00e9\\ud83d\\ude00\\"}"}',
            '{"a": "é😀"}',
        ),
        ("hermes", '<tool_call>{"name": "now"}</tool_call>', "{}"),
        ("hermes", '<tool_call>{"name": "now", "arguments": null}</tool_call>', "{}"),
        ("hermes", '<tool_call>{"name": "now", "arguments": {}}}\n</tool_call>', "{}"),
        ("llama", '<|python_tag|>{"name": "now", "parameters": {"x": "}"}}', '{"x": "}"}'),
        ("llama", '{"type": "function", "name": "now", "parameters": {}}', "{}"),
        ("llama", '{"type": "function", "function": {"name": "now", "parameters": {}}}', "{}"),
        ("pythonic", "[now(a=-1.5, b=(1, 2), c={'k': None}, d=x y)]", None),
        ("gemma", '<|tool_call>call:now{a:None,b:{c:[true,<|"|>}<|"|>]}}<tool_call|>', None),
        ("qwen-coder", "<function=now>\n<parameter=a>\n1\n</parameter>\n</function>", '{"a": 1}'),
    ],
)
def test_odd_calls(family, output, arguments):
    message = of(family, output)
    if arguments is None and "'name'" in output:
        assert message.calls == []
        assert message.text == output
        return
    assert [c.name for c in message.calls] == ["now"]
    assert message.text == ""
    if arguments is not None:
        assert message.calls[0].arguments == arguments
    elif family == "pythonic":
        expected = {"a": -1.5, "b": [1, 2], "c": {"k": None}, "d": "x y"}
        assert json.loads(message.calls[0].arguments) == expected
    else:
        assert json.loads(message.calls[0].arguments) == {"a": None, "b": {"c": [True, "}"]}}


def slipped(slip: Slip) -> Written:
    """A row as an output of a model, which thinks where its row says so."""
    marks = ("<think>", "</think>") if "<think>" in slip.prompt + slip.output else ()
    return Written(slip.what, slip.family, marks, slip.prompt, slip.output)


@pytest.mark.parametrize("slip", SLIPS, ids=lambda s: f"{s.family}, {s.what}")
def test_slips(slip):
    w = slipped(slip)
    parser = parser_of(w)
    message = message_of([*parser.push(w.output), *parser.finish()])
    assert fields_of(message) == (slip.text, slip.reasoning, list(slip.calls))
    assert tuple(c.id for c in message.calls) == slip.ids or not slip.ids
    full = read(w)
    assert read(w, list(w.output)) == full
    rng = random.Random(slip.what)
    for _ in range(5):
        cuts = sorted(rng.sample(range(len(w.output)), 4))
        assert read(w, [w.output[a:b] for a, b in zip([0, *cuts], [*cuts, None], strict=True)]) == (
            full
        )


def test_what_a_grammar_holds_is_read_as_it_says():
    """No call counts that the grammar did not hold to a schema."""
    think = thoughts_of("</think>")
    amid = '<tool_call>{"name": "now", "arguments": {}}</tool_call>'
    for family, thoughts, output in (
        ("hermes", think, f"Hm. {amid}"),
        ("llama", None, 'So {"name": "now", "parameters": {}}'),
    ):
        for tools, count in ((CONSTRAINED, 0), (TOOLS, 1)):
            parser = OutputParser(named(family), tools, thoughts, opened=thoughts is not None)
            message = message_of([*parser.push(output), *parser.finish()])
            assert len(message.calls) == count
            assert count or message.reasoning + message.text == output
    value = "a\n<parameter=days>\n3"
    call = f"<function=get_weather>\n<parameter=city>\n{value}\n</parameter>\n</function>"
    parser = OutputParser(named("qwen-coder"), CONSTRAINED)
    (call_read,) = message_of([*parser.push(call), *parser.finish()]).calls
    assert json.loads(call_read.arguments) == {"city": value}


def test_several_of_llama():
    output = (
        '{"name": "now", "parameters": {}}; {"name": "get_weather", "parameters": {"city": "x"}}'
    )
    assert [c.name for c in of("llama", output).calls] == ["now", "get_weather"]


def test_values_have_the_types_that_the_schema_says():
    def value(text):
        output = f"<function=get_weather>\n<parameter=city>\n{text}\n</parameter>\n</function>"
        return json.loads(of("qwen-coder", output).calls[0].arguments)["city"]

    assert value("12") == "12"
    assert value('"quoted"') == '"quoted"'
    assert value("two\nlines \\ \t") == "two\nlines \\ \t"
    assert value("a < b </param") == "a < b </param"


def test_ids():
    w = next(w for w in WRITTEN if w.model.startswith("mistralai/Mistral-Small"))
    assert [c.id for c in message_of(parser_of(w).push(w.output)).calls] == [
        "abc123456",
        "abc123457",
    ]
    w = next(w for w in WRITTEN if w.family == "kimi")
    ids = [c.id for c in message_of(parser_of(w).push(w.output)).calls]
    assert ids == ["functions.get_weather:0", "functions.now:1"]
    w = next(w for w in WRITTEN if w.family == "hermes")
    ids = [c.id for c in message_of(parser_of(w).push(w.output)).calls]
    assert len(set(ids)) == 2 and all(i.startswith("call_") for i in ids)


def test_a_literal_in_three_pieces():
    """Wherever they are cut: that a reader has come no further is not seen from what is left."""
    output = '[now(a=["x", "é"])'
    w = Written("", "pythonic", (), "", output)
    full = read(w)
    assert json.loads(message_of(full).calls[0].arguments) == {"a": ["x", "é"]}
    for a in range(len(output)):
        for b in range(a, len(output)):
            pieces = [p for p in (output[:a], output[a:b], output[b:]) if p]
            assert read(w, pieces) == full, pieces
