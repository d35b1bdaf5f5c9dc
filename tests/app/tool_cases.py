"""Chats with tools and reasoning: what is asked, what the model says. Rows for every runtime.

A row is JSON: "template", "request", "said" (the model's text), "specials" and "words" (special
and tokens that the small tokenizer lacks), "tool_format". What must come of it, Python's
engine says.
"""

# ruff: noqa: RUF001 - marks of DeepSeek

from __future__ import annotations

from typing import Any

from ..runtime.tools import test_history
from ..runtime.tools.test_chats import CALL, MISTRAL, NOW, PLAIN, TEMPLATE, TOOLS

ASK = [{"role": "user", "content": "x"}]
TEXTS = "{{ tools }}{% for m in messages %}{% for c in m.tool_calls or [] %}" + (
    "{{ '[' + c.function.arguments + ']' }}{% endfor %}{{ m.content }}{% endfor %}"
)
NO_SYSTEM = PLAIN.replace(
    "<|{{ m.role", "{{ raise_exception('no') if m.role == 'system' }}<|{{ m.role"
)
BEGIN, SEP, END = "<｜tool▁calls▁begin｜>", "<｜tool▁sep｜>", "<｜tool▁calls▁end｜>"
DEEPSEEK = PLAIN.replace(
    "{% endfor %}",
    f"{{% for c in m.tool_calls or [] %}}{BEGIN}<｜tool▁call▁begin｜>{{{{ c.function.name }}}}{SEP}"
    "{{ c.function.arguments | tojson }}{% endfor %}{% endfor %}",
)
DEEPSEEK_CALL = f'{BEGIN}<｜tool▁call▁begin｜>now{SEP}{{"a": 1}}<｜tool▁call▁end｜>{END}'
HARMONY = (
    "{{ tools }}{{ reasoning_effort }}{% for m in messages %}{{ m.thinking }};{{ m.content }}"
    "{% endfor %}<|start|>assistant {# <|channel|><|message|> #}"
)
HARMONY_MARKS = ["<|start|>", "<|channel|>", "<|message|>", "<|end|>", "<|call|>", "<|constrain|>"]
HM = "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant"
HARMONY_CALL = '<|channel|>commentary to=functions.now <|constrain|>json<|message|>{"a":1}<|call|>x'
THINK = PLAIN + "{# [THINK] [/THINK] #}"
IDS = MISTRAL + "{% for m in messages %}{{ m.tool_call_id }};{{ m.tool_calls }}{% endfor %}"


def call(name: str, arguments: Any, call_id: str | None = "c1") -> dict[str, Any]:
    """A call in a message."""
    tool_call = {"type": "function", "function": {"name": name, "arguments": arguments}}
    return tool_call if call_id is None else {"id": call_id, **tool_call}


HISTORY: list[dict[str, Any]] = [
    {"role": "developer", "content": "be kind"},
    {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
    {
        "role": "assistant",
        "content": None,
        "reasoning_content": "hm",
        "tool_calls": [
            call("weather", '{"city": "Oslo", "n": [1, 2.5, null, "é"]}'),
            call("now", "{bad", "c2"),
            call("now", {"a": {"b": True}}, "c3"),
            call("now", "", None),
            call("now", "[1]", "c4"),
        ],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "rain"},
    {"role": "tool", "tool_call_id": "?", "content": "two", "name": None, "more": {"a": None}},
    {"role": "function", "name": "own", "content": "three"},
    {"role": "assistant", "content": " said ", "tool_calls": [call("now", "{}", "c5")]},
    {"role": "user", "content": "go on", "extra": 1},
]
PARALLEL = [*test_history.TWO, test_history.result(1, "r"), test_history.result(2, "q")]
OLDER: list[dict[str, Any]] = [
    *ASK,
    {"role": "assistant", "content": None, "function_call": {"name": "now", "arguments": "{}"}},
    {"role": "function", "name": "now", "content": "noon"},
]
TOOL_FIELDS: list[dict[str, Any]] = [
    {"type": "function", "function": {"name": "a", "parameters": {}, "x": 1, "strict": False}},
    {"type": "function", "function": {"name": "b", "parameters": None, "description": None}},
    {
        "type": "function",
        "more": [1],
        "function": {"name": "c", "description": "d", "strict": None},
    },
]
ONE = {"type": "function", "function": {"name": "now"}}
ALLOWED = {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [ONE]}}
TWO = f"I look.\n{CALL}{NOW}"


def row(said: str, template: str = TEMPLATE, **fields: Any) -> dict[str, Any]:
    """A case; fields beginning with a capital are the case's own."""
    own = {k.lower(): fields.pop(k) for k in list(fields) if k[0].isupper()}
    request = {"messages": ASK, "tools": TOOLS, **fields}
    return {"template": template, "request": request, "said": said, "specials": [], **own}


CHATS = [
    row(TWO),
    row(CALL),
    row("No."),
    row(f"So.{CALL}{NOW} "),
    row(TWO, n=2),
    row(TWO, Words=[TWO]),  # all in one chunk
    row(TWO, Words=[CALL[:-30], CALL[-30:]]),  # a name and the first of its arguments
    row(TWO, tool_choice="none"),
    row(TWO, tool_choice="auto"),
    row(TWO, tool_choice=ALLOWED),
    row(TWO + " cat" * 200, parallel_tool_calls=False),
    row(TWO, max_tokens=30),
    row(TWO, stop="Oslo"),
    row(TWO, stop=["weather"]),
    row(TWO, logprobs=True, top_logprobs=0),
    row("x", messages=HISTORY),
    row("x", messages=HISTORY, tools=None),
    row("x", tools=TOOL_FIELDS),
    row("x", TEXTS, messages=HISTORY),
    row("x", PLAIN, messages=HISTORY),
    row("x", PLAIN, messages=HISTORY, tools=None),
    row("x", PLAIN, messages=HISTORY[1:]),
    row("x", NO_SYSTEM, messages=HISTORY[1:]),
    row('[{"name": "weather", "arguments": {"city": "Rome"}}]', PLAIN),
    row('```json\n{"name": "now", "parameters": "{\\"a\\": 1}"}\n```', PLAIN),
    row('[{"name": "other", "arguments": {}}] so', PLAIN),
    row(DEEPSEEK_CALL, DEEPSEEK, Specials=[BEGIN, SEP, END]),
    row("x", DEEPSEEK, messages=HISTORY),
    row(
        "<|tool_call_start|>[now(a='b')]<|tool_call_end|>",
        "{{ tools }}" + PLAIN,
        Specials=["<|tool_call_start|>", "<|tool_call_end|>"],
    ),
    row('[TOOL_CALLS]now[ARGS]{"a": "é"}', MISTRAL, Specials=["[TOOL_CALLS]", "[ARGS]"]),
    row('[TOOL_CALLS]now[ARGS]{"a": "é"}', MISTRAL, Specials=["[TOOL_CALLS]"], tools=None),
    row("x", IDS, messages=HISTORY),
    row("x", IDS, messages=[*ASK, {"role": "tool", "tool_call_id": "abcdefghi", "content": "a"}]),
    row('[TOOL_CALLS]now{"a": 1}', Tool_format="mistral"),
    row("<think>\nI see.\n</think>\n\nYes.", tools=None),
    row("<think>\nI see.\n</think>\n\n" + CALL),
    row("<think>\nI see.\n</think>\n\nYes.", tools=None, include_reasoning=False),
    row("<think>\nI see.\n</think>\n\nYes.", tools=None, reasoning_format="none"),
    row("<think>\nI see.\n</think>\n\n" + CALL, separate_reasoning=False),
    row("<think>\nI look. " + CALL + "\n</think> So."),  # a call ends reasoning
    row(f"I look. {CALL} So."),
    row("I see.</think>Yes.", tools=None, reasoning_effort="high"),
    row("I see.</think>Yes.", tools=None, enable_thinking=True),
    row("I see.</think>Yes.", tools=None, reasoning_effort="none"),
    row(
        "I see.</think>Yes.",
        tools=None,
        reasoning_effort="none",
        chat_template_kwargs={"enable_thinking": True},
    ),
    row("I see.</think>Yes.", tools=None, enable_thinking=True, max_tokens=3),
    row("  <think>one two</think>three four", tools=None, stop="four"),
    row("<think>one two</think>three four", tools=None, stop="two"),
    row(
        "see.</think>Yes.",
        messages=[*ASK, {"role": "assistant", "content": "<think>I "}],
        continue_final_message=True,
        tools=None,
    ),
    row(HM + HARMONY_CALL, HARMONY, Specials=HARMONY_MARKS, reasoning_effort="xhigh"),
    row(HM + "<|channel|>final<|message|>Yes. ", HARMONY, Specials=HARMONY_MARKS, tools=None),
    row(
        HM + "<|channel|>final<|message|>Yes.",
        HARMONY,
        Specials=HARMONY_MARKS,
        tools=None,
        reasoning_format="none",
    ),
    row("x", HARMONY, messages=HISTORY),
    row("x", test_history.SYSTEM_FIRST, messages=test_history.AGENT, tools=None),
    row("x", test_history.ALTERNATE, messages=test_history.AGENT, tools=None),
    row("x", test_history.ONE_CALL, messages=PARALLEL),
    row("x", test_history.NO_CALLS, messages=PARALLEL),
    row("x", test_history.FUNCTIONS, messages=PARALLEL),
    row("x", test_history.FUNCTIONS, tools=None),
    row("x", messages=OLDER),
    row(
        "on.", messages=[*ASK, {"role": "assistant", "content": "go ", "prefix": True}], tools=None
    ),
    row("[THINK]Hm 🎉[/THINK]Yes.", THINK, Specials=["[THINK]", "[/THINK]"], tools=None),
    row("[THINK]Hm 🎉[/THINK]Yes. \n", THINK, Specials=["[THINK]"], tools=None),
]

# Custom tools, whose calls the model writes as those of a function with one text.
CUSTOM = {"type": "custom", "custom": {"name": "patch", "description": "Edits.", "more": 1}}
_INPUT = r"a\"b\n\u00e9\ud83e\udd8a \ud800."


def custom_call(arguments: str) -> str:
    """What the model writes."""
    return f'<tool_call>\n{{"name": "patch", "arguments": {arguments}}}\n</tool_call>'


_PATCHED = [
    *ASK,
    {
        "role": "assistant",
        "tool_calls": [{"id": "c1", "type": "custom", "custom": {"name": "patch", "input": "é"}}],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "done"},
]
CHATS += [
    row(custom_call(f'{{"input": "{_INPUT}"}}'), tools=[CUSTOM, *TOOLS]),
    row(custom_call('{"other": "x"}') + CALL, tools=[CUSTOM, *TOOLS]),
    row(custom_call('{"input": "é🎉"}'), tools=[CUSTOM, *TOOLS], Words=["é🎉"]),
    row("x", tools=[{**CUSTOM, "extra": True}], messages=_PATCHED),
    row("x", TEXTS, tools=[CUSTOM], messages=_PATCHED),
]

# What both runtimes refuse, for the same reasons.
REFUSED: list[dict[str, Any]] = [
    {"tool_choice": {"type": "function", "function": {"name": "nothing"}}},
    {"tools": None, "tool_choice": "any"},
    {"tools": [], "tool_choice": "required"},
    {"tools": [TOOLS[1], TOOLS[1]]},
    {"tools": [TOOLS[0], TOOLS[1], TOOLS[1], TOOLS[0]]},
    {"tools": 1},
    {"tools": [1]},
    {"tools": [{}]},
    {"tools": [{"type": "x", "function": {"name": ""}}]},
    {"tools": [{"type": "function", "function": {}}, {}]},
    {"tools": [{"type": "function", "function": {"name": "a b"}}]},
    {"tools": [{"type": "function", "function": {"name": 1, "parameters": [], "strict": 7}}]},
    {"tools": [{"type": "function", "function": {"name": "x" * 257, "description": {}}}]},
    {"tools": [TOOLS[1]] * 513},
    {"tools": [{"type": "custom"}]},
    {"tools": [{"type": "custom", "custom": {"name": "", "format": {"type": "x"}}}]},
    {"tools": [{"type": "custom", "custom": {"name": "a", "format": {"type": "grammar"}}}, 7]},
    {"tool_choice": {"type": "custom", "custom": {"name": "other"}}},
    {"tool_choice": "sometimes"},
    {"tool_choice": 1},
    {"tool_choice": {"type": "function"}},
    {"tool_choice": {"type": "function", "function": {}}},
    {"tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "x", "tools": []}}},
    {"tool_choice": {**ALLOWED, "allowed_tools": {"mode": "auto", "tools": [{**ONE, "type": 1}]}}},
    {"parallel_tool_calls": "perhaps"},
    {"reasoning_format": "loud"},
    {"messages": [{"role": "assistant", "tool_calls": 1}]},
    {"messages": [{"role": "assistant", "tool_calls": [1]}]},
    {"messages": [{"role": "assistant", "tool_calls": [{"type": "x", "id": 1}]}]},
    {"messages": [{"role": "assistant", "tool_calls": [{"function": {"arguments": 1}}, 2]}]},
    {"messages": [{"role": "assistant", "tool_calls": [{"function": {"name": "x" * 257}}]}]},
    {"messages": [*ASK, HISTORY[-2]], "continue_final_message": True},
]

# Words where JSON's values stand in Python's literals.
WORDS = (
    "0x1F 0X_1f -0b101 0o17 1_000 1__0 _1 1_ 007 00 0_0 +5 -0 +0 .5 5. -.5 1e5 +1e5 "
    "1_0.5_0 1e400 inf -inf nan 0x 0b2 0o8 0xffffffffffffffffffffff - + . e5 1e 1e+ "
    "0x1.8p3 ٣ 1.5e-7 123456789012345678.0 infinity 1_e5 0b1_0 ++1 1+1 a None 12"
).split()
