"""The families, and which of them a model belongs to.

A family is told by what its chat template says, never by a model's name: it is the first row whose
`signs` are all in the template's text. A new family is a row here, and if it writes calls as no
other does, a file in formats/.
"""
# ruff: noqa: RUF001 - DeepSeek's marks are written with U+FF5C

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from wherry.errors import UsageError

from .call_object import CallObject
from .format import Format, call_id, short, short_id
from .formats.braces import Braces
from .formats.harmony import Harmony
from .formats.headed import Headed
from .formats.llama import Bare
from .formats.markup import Markup
from .formats.mistral import Mistral
from .formats.pythonic import Pythonic
from .formats.tagged import Tagged


@dataclass(frozen=True, slots=True)
class Family:
    """Models that write calls in one way.

    Attributes:
        name: for the option that names a family.
        signs: texts that are all in the chat templates of its models.
        format: how it writes.
        new_id: makes the id of a call.
        stops: special tokens that end an answer.
        known_id: what the template is told for an id that may have come from elsewhere.
        thinking_field: whether earlier reasoning is a message's "thinking" to the template.
        channels: whether all text comes in the format, calls or none.
    """

    name: str
    signs: tuple[str, ...]
    format: Format
    new_id: Callable[[], str] = call_id
    stops: tuple[str, ...] = ()
    known_id: Callable[[str], str] = str
    thinking_field: bool = False
    channels: bool = False


_HERMES = Tagged(("<tool_call>",), "</tool_call>", space="\n")
_GLM = Markup(
    "<tool_call>",
    "</tool_call>",
    call="",
    call_end="",
    key="<arg_key>",
    keyed=("</arg_key>", "<arg_value>"),
    ended="</arg_value>",
)
_LFM = Pythonic(("<|tool_call_start|>",), "<|tool_call_end|>")


def _dsml(outer: str) -> Markup:
    return Markup(
        f"<｜DSML｜{outer}>",
        f"</｜DSML｜{outer}>",
        call='<｜DSML｜invoke name="',
        named='">',
        call_end="</｜DSML｜invoke>",
        key='<｜DSML｜parameter name="',
        ended="</｜DSML｜parameter>",
        several=True,
        typed=True,
        wrappers=("arguments", "input"),
    )


_OBJECT = ('{"name":', '{ "name":', '{"type": "function",', '[{"name":')
_COHERE = CallObject(("tool_name",), ("parameters",))
GENERIC = Family(
    "json",
    (),
    Bare(
        ("<tool_call>",),
        (("```json", "```"), ("```tool_code", "```"), ("```", "```")),
        amid=(
            *_OBJECT,
            *(f"{fence}\n{begin}" for fence in ("```json", "```") for begin in _OBJECT),
        ),
        middle='", "arguments": ',
    ),
)

FAMILIES = (
    Family(
        "harmony",
        ("<|channel|>", "<|message|>"),
        Harmony(),
        stops=("<|call|>", "<|return|>"),
        thinking_field=True,
        channels=True,
    ),
    Family(
        "deepseek-v3",
        ("<｜tool▁calls▁begin｜>", "```json"),
        Headed(
            "<｜tool▁call▁begin｜>",
            ("\n```json\n",),
            before="function<｜tool▁sep｜>",
            end=("\n```<｜tool▁call▁end｜>", "<｜tool▁call▁end｜>"),
            section="<｜tool▁calls▁begin｜>",
            section_end="<｜tool▁calls▁end｜>",
            between="\n",
        ),
    ),
    Family(
        "deepseek-v3.1",
        ("<｜tool▁calls▁begin｜>",),
        Headed(
            "<｜tool▁call▁begin｜>",
            ("<｜tool▁sep｜>",),
            end=("<｜tool▁call▁end｜>",),
            section="<｜tool▁calls▁begin｜>",
            section_end="<｜tool▁calls▁end｜>",
        ),
    ),
    Family(
        "kimi",
        ("<|tool_calls_section_begin|>",),
        Headed(
            "<|tool_call_begin|>",
            ("<|tool_call_argument_begin|>",),
            before="functions.",
            tag=":",
            whole_id=True,
            end=("<|tool_call_end|>",),
            section="<|tool_calls_section_begin|>",
            section_end="<|tool_calls_section_end|>",
        ),
    ),
    Family("mistral", ("[TOOL_CALLS]", "[ARGS]"), Mistral(named=True), short_id, known_id=short),
    Family("mistral-list", ("[TOOL_CALLS]",), Mistral(), short_id, known_id=short),
    Family(
        "cohere",
        ("<|START_ACTION|>",),
        Tagged(
            ("<|START_ACTION|>",),
            "<|END_ACTION|>",
            listed=True,
            form=_COHERE,
            head='{"tool_call_id": "0", "tool_name": "',
            middle='", "parameters": ',
        ),
    ),
    Family(
        "gemma",
        ("<|tool_call>", "<tool_call|>"),
        Braces("<|tool_call>", "<tool_call|>", '<|"|>'),
        stops=("<|tool_response>",),
    ),
    Family(
        "function-gemma",
        ("<start_function_call>",),
        Braces("<start_function_call>", "<end_function_call>", "<escape>"),
        stops=("<start_function_response>",),
    ),
    Family(
        "minimax",
        ("<minimax:tool_call>",),
        Markup(
            "<minimax:tool_call>",
            "</minimax:tool_call>",
            call='<invoke name="',
            named='">',
            call_end="</invoke>",
            key='<parameter name="',
            keyed=('">',),
            several=True,
        ),
    ),
    Family("deepseek-v3.2", ("｜DSML｜", "function_calls"), _dsml("function_calls")),
    Family("deepseek-v4", ("｜DSML｜", "tool_calls"), _dsml("tool_calls")),
    Family("seed", ("<seed:tool_call>",), Markup("<seed:tool_call>", "</seed:tool_call>")),
    Family("glm", ("<arg_key>", "\\n<arg_value>"), _GLM),
    Family("glm", ("<arg_key>", "\n<arg_value>"), _GLM),
    Family("glm-4.7", ("<arg_key>",), replace(_GLM, line="")),
    Family(
        "qwen-coder",
        ("<tool_call>", "<function=", "<parameter="),
        Markup(
            "<tool_call>",
            "</tool_call>",
            pad="\n",
            unclosed=("\n<parameter=", "\n</function>"),
        ),
    ),
    Family(
        "function-tags",
        ("<function=", "</function>"),
        Headed("<function=", (">",), end=("</function>",)),
        stops=("<|eom_id|>",),
    ),
    Family(
        "phi",
        ("<|tool_call|>", "<|/tool_call|>"),
        Tagged(("<|tool_call|>", "functools"), "<|/tool_call|>", listed=True),
    ),
    Family("granite", ("<|tool_call|>",), Tagged(("<|tool_call|>", "<tool_call>"), listed=True)),
    Family("functools", ("functools[",), Tagged(("functools",), listed=True)),
    Family("nemotron", ("<TOOLCALL>",), Tagged(("<TOOLCALL>",), "</TOOLCALL>", listed=True)),
    Family("apriel", ("<tool_calls>",), Tagged(("<tool_calls>",), "</tool_calls>", listed=True)),
    Family("gigachat", ("<|function_call|>",), Tagged(("<|function_call|>",))),
    Family(
        "gigachat-3",
        ("function call", "<|role_sep|>"),
        Tagged(
            ("<|message_sep|>\n\nfunction call<|role_sep|>\n", "function call<|role_sep|>\n"),
            silent=("<|message_sep|>", "<|role_sep|>"),
        ),
    ),
    Family("hermes", ("<tool_call>",), _HERMES),
    Family("lfm2", ("<|tool_call_start|>",), _LFM),
    Family("lfm2", ("<|tool_list_start|>",), _LFM),
    Family(
        "olmo",
        ("<function_calls>", "</function_calls>"),
        Pythonic(("<function_calls>\n", "<function_calls>"), "\n</function_calls>", brackets=False),
    ),
    Family("tool-code", ("```tool_code",), Pythonic(("```tool_code\n",), "\n```", brackets=False)),
    Family("pythonic", ("[func_name1(",), Pythonic()),
    Family(
        "llama",
        ("<|python_tag|>",),
        Bare(("<|python_tag|>",), amid=_OBJECT),
        stops=("<|eom_id|>",),
    ),
    Family(
        "llama", ('{"name": function name, "parameters":',), Bare(("<|python_tag|>",), amid=_OBJECT)
    ),
)
NAMES = tuple(dict.fromkeys(family.name for family in (*FAMILIES, GENERIC)))


def family_of(template: str) -> Family:
    """The family whose signs a template shows; GENERIC if none."""
    return next((f for f in FAMILIES if all(sign in template for sign in f.signs)), GENERIC)


def family_of_tokens(known: Callable[[str], bool]) -> Family:
    """The family whose signs are all tokens of a model; GENERIC if there is none."""
    for family in FAMILIES:
        if all(map(known, family.signs)):
            return family
    return GENERIC


def named(name: str) -> Family:
    """The family of this name.

    Raises:
        UsageError: there is none.
    """
    for family in (*FAMILIES, GENERIC):
        if family.name == name:
            return family
    raise UsageError(f"tool_format is {name!r}; it takes one of {', '.join(NAMES)}")
