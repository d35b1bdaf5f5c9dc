"""What models write where they forget their format, or go beyond it, and what is read of it.

vLLM's tests of its readers showed what there is (tests/tool_parsers, tests/tool_use and
tests/reasoning of its repository); the rows say the same in other words. Where a reader here does
otherwise than vLLM's on purpose:

| what | vLLM | here | why |
|---|---|---|---|
| white space before calls | content keeps it in most readers | left out, unless words follow the calls | a template prints it again; a message of spaces is no message |
| words after calls | some readers drop them, some join them by a line break | kept, with the space that was there | nothing that a model says is lost |
| arguments that are no JSON | the call is text, or is dropped | a call; the arguments are as the model wrote them | they have streamed, and OpenAI's are so |
| a call that cannot be read among others | dropped | text, or a call with what there is | nothing is lost, and the log is not needed |
| JSON without a marker that names an unknown tool | a call | text | it is an example, or an answer in JSON |
| Kimi's header with a number and no name | the tool is inferred from its arguments | a call of a tool of that name | nothing is guessed |
| Gemma's `call:f{...}` without its mark, `<call>f{...}`, `<turn|>` as the end of a call | a call; the end | text, but for the end, which ends the answer | `call:` is a word, too |
| DeepSeek's `string="true"` although the schema says integer | the schema counts | the model's word counts | it says what it has written |
| LFM2's echo of a call behind its end | dropped | text | it may be what the user asked for |
| `</think>` behind a call amid reasoning | words behind it come before the call | they come behind it | a stream cannot go back |
| a call amid reasoning where a grammar holds the output | a call | reasoning | the grammar has calls of its own after the reasoning, which keep to their schemas |
"""
# ruff: noqa: E501, RUF001 - a table; as the models write it

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple


class Slip(NamedTuple):
    """An output of one family.

    Attributes:
        what: went wrong.
        output: of the model.
        calls: names and arguments; arguments that are a text are no JSON.
        text, reasoning: the rest of the output.
        prompt: its last characters.
        ids: of the calls, where the model says them.
    """

    what: str
    family: str
    output: str
    calls: Sequence[tuple[str, Any]] = ()
    text: str = ""
    reasoning: str = ""
    prompt: str = ""
    ids: tuple[str, ...] = ()


def hermes(name: str, arguments: str = "{}") -> str:
    """A call as Hermes writes it."""
    return f'<tool_call>\n{{"name": "{name}", "arguments": {arguments}}}\n</tool_call>'


def kimi(*calls: tuple[str, str]) -> str:
    """Headers and arguments as Kimi writes them."""
    calls_text = (
        f"<|tool_call_begin|>{header}<|tool_call_argument_begin|>{arguments}<|tool_call_end|>"
        for header, arguments in calls
    )
    return f"<|tool_calls_section_begin|>{''.join(calls_text)}<|tool_calls_section_end|>"


def coder(inner: str) -> str:
    """A call of get_weather as Qwen3-Coder writes it."""
    return f"<tool_call>\n<function=get_weather>\n{inner}\n</function>\n</tool_call>"


def dsml(*arguments: tuple[str, bool, str]) -> str:
    """A call of get_weather as DeepSeek V3.2 writes it."""
    parameters = "".join(
        f'<｜DSML｜parameter name="{key}" string="{str(text).lower()}">{value}</｜DSML｜parameter>\n'
        for key, text, value in arguments
    )
    return (
        '<｜DSML｜function_calls>\n<｜DSML｜invoke name="get_weather">\n'
        f"{parameters}</｜DSML｜invoke>\n</｜DSML｜function_calls>"
    )


def lfm(calls: str) -> str:
    """Calls as LFM2 writes them."""
    return f"<|tool_call_start|>[{calls}]<|tool_call_end|>"


NOW: tuple[str, Any] = ("now", {})
PARIS: tuple[str, Any] = ("get_weather", {"city": "Paris"})
PAYLOAD = r"cd /src && python3 -c \"from a import b\nprint(b(3, sep='\\,'))\""
SLIPS = [
    # Words around calls keep what stands between them, and no more.
    Slip("words around", "hermes", f"One. {hermes('now')} Two.", [NOW], "One. Two."),
    Slip("lines around", "hermes", f"One.\n\n{hermes('now')}\nTwo.", [NOW], "One.\n\nTwo."),
    Slip("space behind alone", "hermes", f"One.{hermes('now')}\nTwo.\n", [NOW], "One.\nTwo.\n"),
    Slip("words behind alone", "hermes", f"\n{hermes('now')}\n Two.", [NOW], "Two."),
    Slip(
        "words around two calls",
        "hermes",
        f"One.{hermes('now')}\n{hermes('now')} Two.",
        [NOW, NOW],
        "One.\nTwo.",
    ),
    Slip("words before alone", "kimi", f"So. {kimi(('functions.now:0', '{}'))} ", [NOW], "So."),
    # A call ends reasoning that was not closed.
    Slip("amid thoughts", "hermes", f"I look: {hermes('now')}", [NOW], "", "I look:", "<think>"),
    Slip(
        "thoughts that are closed late",
        "hermes",
        f"<think>Hm. {hermes('now')}\n</think>\n\nSo be it.",
        [NOW],
        "So be it.",
        "Hm.",
    ),
    Slip(
        "a mark that the model thinks of",
        "hermes",
        "I could write <tool_call> here.</think>No.",
        [],
        "No.",
        "I could write <tool_call> here.",
        "<think>",
    ),
    Slip(
        "two amid thoughts",
        "qwen-coder",
        f"Hm.\n{coder('')}\n{coder('')}",
        [("get_weather", {})] * 2,
        "",
        "Hm.",
        "<think>\n",
    ),
    Slip(
        "deepseek's amid thoughts",
        "deepseek-v3.2",
        "Hm.\n\n" + dsml(("city", True, "Paris")),
        [PARIS],
        "",
        "Hm.",
        "<think>",
    ),
    # Kimi's header has a space behind it, in the model's own tokenizer's words.
    Slip(
        "space behind the id",
        "kimi",
        kimi(("functions.now:0 ", "{}"), ("functions.now:1 ", ' {"a": 1} ')),
        [NOW, ("now", {"a": 1})],
        ids=("functions.now:0", "functions.now:1"),
    ),
    Slip("space before it", "kimi", kimi((" now:3 ", "{}")), [NOW], ids=("now:3",)),
    Slip(
        "arguments that are not closed",
        "kimi",
        kimi(("functions.f:0 ", '{"a": "b"'), ("functions.now:1 ", "{}")),
        [("f", '{"a": "b"'), NOW],
    ),
    # Qwen's markup
    Slip(
        "a value that is not closed before the next",
        "qwen-coder",
        coder("<parameter=city>\nParis\n<parameter=days>\n3\n</parameter>"),
        [("get_weather", {"city": "Paris", "days": 3})],
    ),
    Slip(
        "a number that is not closed",
        "qwen-coder",
        coder("<parameter=days>\n3\n<parameter=city>\nParis\n</parameter>"),
        [("get_weather", {"days": 3, "city": "Paris"})],
    ),
    Slip("the last value", "qwen-coder", coder("<parameter=city>\nParis"), [PARIS]),
    Slip(
        "markup inside a line",
        "qwen-coder",
        coder("<parameter=city>\na <parameter=b> c\n</parameter>"),
        [("get_weather", {"city": "a <parameter=b> c"})],
    ),
    Slip(
        "no end of the function",
        "qwen-coder",
        "<tool_call>\n<function=get_weather>\n<parameter=city>\nParis\n</parameter>\n</tool_call> So.",
        [PARIS],
        "So.",
    ),
    # Gemma's colon
    Slip("a colon more", "gemma", "<|tool_call>:call:now{a:1}<tool_call|>", [("now", {"a": 1})]),
    Slip("the word left out", "gemma", "<|tool_call>:now{}<tool_call|>", [NOW]),
    Slip(
        "word and colon left out",
        "gemma",
        '<|tool_call>get_weather{city:<|"|>Paris<|"|>}<tool_call|>',
        [PARIS],
    ),
    # Python that is none
    Slip("zeros", "lfm2", lfm("now(a=07, b=-007, c=00)"), [("now", {"a": 7, "b": -7, "c": 0})]),
    Slip("a set", "lfm2", lfm("now(a={'x', 'y'}, b={3})"), [("now", {"a": ["x", "y"], "b": [3]})]),
    Slip(
        "a dictionary is none",
        "lfm2",
        lfm("now(a={}, b={'x': {1, 2}})"),
        [("now", {"a": {}, "b": {"x": [1, 2]}})],
    ),
    Slip(
        "quotes in quotes",
        "lfm2",
        lfm("now(a='tail -n '+2' x.txt', b=1)"),
        [("now", {"a": "tail -n '+2' x.txt", "b": 1})],
    ),
    Slip("an apostrophe", "lfm2", lfm("now(a='it's so')"), [("now", {"a": "it's so"})]),
    Slip(
        "brackets behind quotes in quotes",
        "lfm2",
        lfm(f"now(a='{PAYLOAD}')") + " So.",
        [("now", {"a": PAYLOAD.replace('\\"', '"').replace("\\n", "\n").replace("\\\\", "\\")})],
        "So.",
    ),
    Slip(
        "a comma behind quotes in quotes",
        "lfm2",
        lfm("now(a='say 'hi', then go', b=2,)"),
        [("now", {"a": "say 'hi', then go", "b": 2})],
    ),
    Slip("quotes in a list", "lfm2", lfm("now(a=['it's', 'b'])"), [("now", {"a": ["it's", "b"]})]),
    Slip("a line break", "lfm2", lfm("now(a='x\ny\0z')"), [("now", {"a": "x\ny\0z"})]),
    Slip("a bracket", "lfm2", lfm("now(a='grep \"]\" f')"), [("now", {"a": 'grep "]" f'})]),
    Slip("space before", "lfm2", "<|tool_call_start|> [now()]<|tool_call_end|>\nSo.", [NOW], "So."),
    Slip("no calls", "lfm2", lfm(""), [], lfm("")),
    Slip("bytes", "lfm2", lfm("now(), now(a=b'z')"), [NOW, ("now", {"a": "b'z'"})]),
    # JSON amid words, of families that write it without a mark
    Slip(
        "an object amid words",
        "llama",
        'I look. {"name": "now", "parameters": {}} Shall I go on?',
        [NOW],
        "I look. Shall I go on?",
    ),
    Slip(
        "several amid words",
        "llama",
        'So: {"name": "now", "parameters": {}}; {"name": "get_weather", "parameters": {"city": "Paris"}} {x}',
        [NOW, PARIS],
        "So: {x}",
    ),
    Slip(
        "an object of another tool",
        "llama",
        'As in {"name": "other", "parameters": {}} or {"city": 1}.',
        [],
        'As in {"name": "other", "parameters": {}} or {"city": 1}.',
    ),
    Slip(
        "in a fence amid words",
        "json",
        'I look.\n\n```json\n{"name": "now", "arguments": {}}\n```\nSo.',
        [NOW],
        "I look.\n\nSo.",
    ),
    Slip("another fence", "json", '```json\n{"a": 1}\n```', [], '```json\n{"a": 1}\n```'),
    Slip(
        "another mark than the template's",
        "phi",
        'functools[{"name": "now", "arguments": {}}] by functools.cache',
        [NOW],
        "by functools.cache",
    ),
    # DeepSeek's arguments in one
    Slip(
        "a wrapper",
        "deepseek-v3.2",
        dsml(("arguments", False, '{"city": "Paris"}')),
        [PARIS],
    ),
    Slip(
        "an input",
        "deepseek-v4",
        dsml(("input", True, ' {"city": "Paris"} ')).replace("function_calls", "tool_calls"),
        [PARIS],
    ),
    Slip(
        "a wrapper with other arguments",
        "deepseek-v3.2",
        dsml(("arguments", False, "{}"), ("city", True, "Paris")),
        [("get_weather", {"arguments": {}, "city": "Paris"})],
    ),
    Slip(
        "a wrapper of no object",
        "deepseek-v3.2",
        dsml(("arguments", True, "Paris")),
        [("get_weather", {"arguments": "Paris"})],
    ),
    # GigaChat 3 calls in a message of its own; 3.1 has a mark.
    Slip(
        "a message behind words",
        "gigachat-3",
        'I look.<|message_sep|>\n\nfunction call<|role_sep|>\n{"name": "now", "arguments": {}}',
        [NOW],
        "I look.",
    ),
    Slip(
        "a message alone",
        "gigachat-3",
        'function call<|role_sep|>\n{"name": "get_weather", "arguments": {"city": "Paris"}}<|message_sep|>\n\n',
        [PARIS],
    ),
    Slip(
        "words alone", "gigachat-3", "A function call is<|message_sep|>", [], "A function call is"
    ),
    Slip(
        "a mark", "gigachat", 'So.<|function_call|>{"name": "now", "arguments": {}}', [NOW], "So."
    ),
]


def fields_of(message: Any) -> tuple[str, str, list[tuple[str, Any]]]:
    """The text, reasoning and calls of a message as a row has them."""
    calls = []
    for call in message.calls:
        try:
            calls.append((call.name, json.loads(call.arguments)))
        except ValueError:
            calls.append((call.name, call.arguments))
    return message.text, message.reasoning, calls
