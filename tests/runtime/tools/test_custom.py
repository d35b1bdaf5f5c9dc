"""Custom tools: the grammar of their input in every family's calls, and the input read back."""

from __future__ import annotations

import json
import random
import re

import pytest

from wherry.runtime.errors import RequestError
from wherry.runtime.grammar.quoted import quoted

from ...support.families import named
from ...support.readers import OutputParser, Tools, message_of
from ..grammar.walking import accepts, bytes_vocabulary, outputs
from .test_enforcement import compiled, enforcement, every_family, function, random_outputs

# A small language of patches: lines of any text, among them what JSON escapes.
PATCH = r"""
start: begin hunk+ end
begin: "*** Begin Patch" LF
end: "*** End Patch" LF?
hunk: "*** Add: \"" name "\"" LF add+  // a comment
name: /[a-z"\/\\]{1,3}/
add: "+" /.{0,3}/ LF -> line
%import common.LF
"""
PATCHES = re.compile(
    r'\*\*\* Begin Patch\n(\*\*\* Add: "[a-z"/\\]{1,3}"\n(\+[^\n]{0,3}\n)+)+\*\*\* End Patch\n?'
)
DATE = r"^\d{4}-\d{2}\"$"


PARAMETERS = {
    "type": "object",
    "properties": {"input": {"type": "string"}},
    "required": ["input"],
    "additionalProperties": False,
}


def tool(syntax, definition, name="apply_patch"):
    """The function that the model sees in place of a custom tool."""
    return function(name, PARAMETERS, input=[syntax, definition])


def read(family, text, called):
    tools = Tools({called["name"]: called["parameters"]}, constrained=True)
    parser = OutputParser(family, tools, custom=[called["name"]])
    parts = [p for c in text.decode("utf-8", "replace") for p in parser.push(c)]
    return message_of(parts + parser.finish())


@every_family
@pytest.mark.parametrize(
    ("syntax", "definition", "form"),
    [("lark", PATCH, PATCHES), ("regex", DATE, re.compile(r"\d{4}-\d{2}\""))],
    ids=["lark", "regex"],
)
def test_an_input_follows_its_grammar(family, syntax, definition, form):
    patch = tool(syntax, definition)
    grammar = compiled(enforcement(family).calls([patch], several=False))
    texts = random_outputs(grammar, family, 4, 5)
    assert texts
    for text in texts:
        (call,) = read(family, text, patch).calls
        assert call.custom and form.fullmatch(call.arguments), (text, call)


def test_a_grammar_of_texts_in_json():
    terminals = [
        (r'start: /[^"]+/', "a\n\\b\x01", '"'),
        (r"start: /a.b/", 'a"b', "a\nb"),
        (r"start: /(?s:a.b)/", "a\nb", "ab"),
        (r"start: /(?i)a\tb\"/", 'A\tB"', 'A"'),
        (r"start: /\s+\S/", "\n\tx", "x"),
        (r"start: /[\p{L}\x{e9}\u0041]+/", "éA", "1"),
        ('start: A B\nA: "x\\n"\n%import common.WS\nB: WS', "x\n \n", "x"),
        ('start: "a"i "\\\\"', "A\\", "A"),
        ('start: a\na: "(" a ")" | "\\""', '(("))', "()"),
    ]
    for lark, right, wrong in terminals:
        grammar = bytes_vocabulary().compile("lark", quoted(lark))
        for text, expected in ((right, True), (wrong, False)):
            escaped = json.dumps(text, ensure_ascii=False)[1:-1]
            assert accepts(grammar, escaped) == expected, (lark, text)
        for text in outputs(grammar, 3):
            json.loads(b'"' + text + b'"')


@pytest.mark.parametrize(
    "lark",
    ["start: /[[:alpha:]]/", "start: /a\\b/", 'start: "\\n"i', "start: A & B", "start: <[1]>"],
)
def test_what_has_no_form_in_json_is_named(lark):
    with pytest.raises(ValueError):
        quoted(lark)
    patch = tool("lark", lark)
    with pytest.raises(RequestError, match=r"tools\[0\].custom.format") as e:
        enforcement(named("hermes")).calls([patch], several=True)
    assert e.value.code == "unsupported_schema"


def read_call(pieces):
    """The call of a custom tool whose arguments a model writes in these pieces."""
    parser = OutputParser("hermes", Tools({"t": PARAMETERS}), custom=["t"])
    head = '<tool_call>\n{"name": "t", "arguments": '
    parts = [p for piece in [head, *pieces, "}\n</tool_call>"] for p in parser.push(piece)]
    (call,) = message_of(parts + parser.finish()).calls
    return call


@pytest.mark.parametrize(
    "arguments",
    ['{"input": "a\\n\\"\\u00e9\\ud83d\\ude00 \U0001f600\\\\"}', '{"input":"a"}', ' {"input": ""}'],
)
def test_the_input_is_read_in_pieces(arguments):
    expected = json.loads(arguments)["input"]
    rng = random.Random(0)
    for _ in range(20):
        cuts = sorted(rng.sample(range(len(arguments) + 1), 4))
        pieces = [arguments[a:b] for a, b in zip([0, *cuts], [*cuts, None], strict=True)]
        call = read_call(pieces)
        assert (call.arguments, call.custom) == (expected, True)


def test_arguments_of_another_shape_are_the_input():
    assert read_call(['{"patch": "a"}']).arguments == '{"patch": "a"}'


def test_a_lone_surrogate_is_replaced():
    assert read_call(['{"input": "a\\ud83dz"}']).arguments == "a\ufffdz"
