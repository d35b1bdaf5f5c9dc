"""Conversations that a chat template refuses, or of which it leaves a part out."""

from __future__ import annotations

import json
from typing import Any

import pytest

from wherry.runtime.core.host_abi import answer_to
from wherry.runtime.errors import RequestError
from wherry.runtime.text.chat_template import ChatTemplate, from_folder, sources_of

from ...support.chats import chats

TURN = "{{ '[' + m.role + ']' + m.content }}"
REFUSE = "{{ raise_exception('no') }}"
SYSTEM_FIRST = (
    "{% for m in messages %}{% if m.role == 'system' and not loop.first %}"
    + REFUSE
    + "{% endif %}"
    + TURN
    + "{% endfor %}"
)
FIRST_SYSTEM_ONLY = (
    "{% if messages[0].role == 'system' %}{{ messages[0].content }}{% endif %}"
    "{% for m in messages if m.role != 'system' %}" + TURN + "{% endfor %}"
)
ALTERNATE = (
    "{% if messages[0].role == 'system' %}" + REFUSE + "{% endif %}"
    "{% for m in messages %}{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}"
    + REFUSE
    + "{% endif %}"
    + TURN
    + "{% endfor %}"
)
CALLS = "{% for c in m.tool_calls %}<call>{{ c.function.name }}{% for k, v in c.function.arguments"
CALLS += " | items %}({{ k }}={{ v }}){% endfor %}{% endfor %}"
TOOLS_SHOWN = "{% if tools %}{{ tools | tojson }}<tool_call>{% endif %}"
MAPPINGS = TOOLS_SHOWN + "{% for m in messages %}" + TURN + CALLS + "{% endfor %}"
ONE_CALL = (
    TOOLS_SHOWN
    + "{% for m in messages %}{% if m.tool_calls and m.tool_calls | length > 1 %}"
    + REFUSE
    + "{% endif %}"
    + TURN
    + CALLS
    + "{% endfor %}"
)
FIRST_CALL_ONLY = (
    TOOLS_SHOWN + "{% for m in messages %}" + TURN + "{% if m.tool_calls %}<call>"
    "{{ m.tool_calls[0].function.name }}{{ m.tool_calls[0].function.arguments | tojson }}"
    "{% endif %}{% endfor %}"
)
NO_CALLS = (
    "{% if tools %}<|tool_list_start|>{{ tools | tojson }}{% endif %}{% for m in messages %}"
    + TURN
    + "{% endfor %}"
)
# Turns of user and assistant alternate, calls and their results apart; no turn is empty.
STRICT_WITH_CALLS = (
    "{% if tools %}[TOOL_CALLS]{{ tools | tojson }}{% endif %}{% set ns = namespace(n=0) %}"
    "{% for m in messages %}{% if m.role == 'system' and not loop.first %}" + REFUSE + "{% endif %}"
    "{% if m.role == 'user' or (m.role == 'assistant' and not m.tool_calls) %}"
    "{% if (m.role == 'user') != (ns.n % 2 == 0) %}" + REFUSE + "{% endif %}"
    "{% set ns.n = ns.n + 1 %}{% endif %}"
    "{% if m.role == 'assistant' and not m.tool_calls and not m.content %}" + REFUSE + "{% endif %}"
    "{% if m.tool_calls %}{{ m.tool_calls | tojson }}{% else %}" + TURN + "{% endif %}{% endfor %}"
)

# As Firefunction's template, which is rendered with functions, as JSON, or not at all.
FUNCTIONS = (
    "{{ 'Functions: ' + functions }}{{ '.' if (datetime + '').endswith(' GMT') }}"
    "{% for m in messages %}" + TURN + "{% for c in m.tool_calls or [] %}"
    "functools[{{ c.function | tojson }}]{% endfor %}{% endfor %}"
)


def system(text: str) -> dict[str, Any]:
    return {"role": "system", "content": text}


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def assistant(text: str, **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": text, **more}


def call(number: int, name: str, arguments: Any) -> dict[str, Any]:
    return {
        "id": f"id{number}",
        "type": "function",
        "function": {"name": name, "arguments": arguments},
    }


def result(number: int, text: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": f"id{number}", "content": text}


def tool(name: str) -> dict[str, Any]:
    properties = {"x": {"type": "string"}}
    parameters = {"type": "object", "properties": properties}
    return {"type": "function", "function": {"name": name, "parameters": parameters}}


def prompt(
    source: str, messages: list[dict[str, Any]], *, tools: bool = False, adapts: bool = True
) -> tuple[str, tuple[str, ...]]:
    """The prompt of a chat, and how its messages were adapted."""
    fields = {"messages": messages, "tools": [tool("f"), tool("g")] if tools else None}
    with chats(ChatTemplate(source), adapts=adapts) as prompted:
        return prompted({name: value for name, value in fields.items() if value is not None})


def in_order(text: str, *parts: str) -> bool:
    at = 0
    for part in parts:
        at = text.find(part, at)
        if at < 0:
            return False
        at += len(part)
    return True


AGENT = [system("s1"), {"role": "developer", "content": "s2"}, user("u1"), user("u2")]
AGENT += [assistant("a1"), system("s3"), user("u3")]


@pytest.mark.parametrize("source", [SYSTEM_FIRST, FIRST_SYSTEM_ONLY, ALTERNATE, STRICT_WITH_CALLS])
def test_several_systems_and_users(source):
    text, changes = prompt(source, AGENT)
    assert in_order(text, "s1\n\ns2", "u1", "u2", "a1", "<system-reminder>\ns3\n", "u3")
    assert {"system-joined", "system-reminders"} <= set(changes)
    assert ("system-in-user" in changes) == (source == ALTERNATE)
    if source == FIRST_SYSTEM_ONLY:
        assert "s3" not in prompt(source, AGENT, adapts=False)[0]
    else:
        with pytest.raises(RequestError, match="does not accept these messages: no"):
            prompt(source, AGENT, adapts=False)


@pytest.mark.parametrize("source", [SYSTEM_FIRST, FIRST_SYSTEM_ONLY, MAPPINGS, FIRST_CALL_ONLY])
def test_what_a_template_takes_stays(source):
    chat = [system("s"), user("u"), assistant("a"), user("v")]
    assert prompt(source, chat) == (prompt(source, chat, adapts=False)[0], ())


def test_a_system_alone_becomes_the_users():
    assert prompt(ALTERNATE, [system("s")]) == ("[user]s", ("system-in-user",))


def test_turns_that_do_not_alternate():
    text, changes = prompt(ALTERNATE, [assistant("a0"), user("u1"), assistant(""), user("u2")])
    assert in_order(text, "[user]", "[assistant]a0", "[user]u1", "u2")
    assert "turns-added" in changes


def test_a_user_after_a_result():
    chat = [user("u1"), assistant("", tool_calls=[call(1, "f", "{}")]), result(1, "r"), user("u2")]
    text, changes = prompt(STRICT_WITH_CALLS, chat, tools=True)
    assert in_order(text, "[user]u1", '"f"', "[tool]r", "[assistant]", "[user]u2")
    assert changes == ("turns-added",)


CUT = {
    '{"x": "abc': {"x": "abc"},
    '{"x": "a\\': {"x": "a"},
    '{"x": "a\\u00e': {"x": "a"},
    '{"x": "a\\ud83d': {"x": "a"},
    '{"x": "a", "y': {"x": "a"},
    '{"x": "a", "y": tr': {"x": "a"},
    '{"x": ["a", {"y": 1': {"x": ["a", {"y": 1}]},
    '{"x": ["a", {"y": -': {"x": ["a", {}]},
    '{"x": {"y": "}]"': {"x": {"y": "}]"}},
    "{": {},
}


@pytest.mark.parametrize("arguments", CUT)
def test_arguments_that_were_cut(arguments):
    chat = [user("u"), assistant("", tool_calls=[call(1, "f", arguments)]), result(1, "r")]
    source = MAPPINGS.replace("({{ k }}={{ v }})", "{{ {k: v} | tojson }}")
    text, changes = prompt(source, chat, tools=True)
    expected = "".join(json.dumps({k: v}) for k, v in CUT[arguments].items())
    assert f"<call>f{expected}[tool]r" in text
    assert changes == ("call-arguments",)
    with pytest.raises(RequestError):
        prompt(source, chat, tools=True, adapts=False)


@pytest.mark.parametrize("arguments", ['["abc"]', '"abc"', "abc"])
def test_arguments_that_are_no_object(arguments):
    chat = [user("u"), assistant("t", tool_calls=[call(1, "f", arguments)]), result(1, "r")]
    text, changes = prompt(MAPPINGS, chat, tools=True)
    assert in_order(text, f"[assistant]t\n{arguments}", "<call>f", "[tool]r")
    assert changes == ("call-arguments",)


TWO = [
    user("u"),
    assistant("t", tool_calls=[call(1, "f", '{"x": "1"}'), call(2, "g", '{"x": "2"}')]),
]


@pytest.mark.parametrize("source", [ONE_CALL, FIRST_CALL_ONLY])
@pytest.mark.parametrize("results", [[1, 2], [2, 1], [1], []], ids=str)
def test_one_call_a_turn(source, results):
    chat = [*TWO, *(result(n, f"r{n}") for n in results)]
    text, changes = prompt(source, chat, tools=True)
    expected = ["t", "<call>f", "1", *(["r1"] if 1 in results else [])]
    expected += ["<call>g", "2", *(["r2"] if 2 in results else [])]
    assert in_order(text, *expected)
    assert changes == ("one-call-per-turn",)


def test_calls_as_the_family_writes_them():
    chat = [*TWO, result(1, "r1"), result(2, "r2")]
    text, changes = prompt(NO_CALLS, chat, tools=True)
    written = "<|tool_call_start|>[f(x='1'), g(x='2')]<|tool_call_end|>"
    assert in_order(text, f"[assistant]t\n{written}", "[tool]r1", "[tool]r2")
    assert changes == ("calls-as-text",)


def test_functions_as_a_text():
    chat = [*TWO, result(1, "r1"), result(2, "r2")]
    text, changes = prompt(FUNCTIONS, chat, tools=True)
    functions, _, rest = text.removeprefix("Functions: ").partition("].")
    assert [f["name"] for f in json.loads(functions + "]")] == ["f", "g"]
    assert functions.startswith('[\n    {\n        "name": "f"')
    assert in_order(rest, "t", '"x": "1"', '"x": "2"', "r1", "r2") and changes == ()
    assert prompt(FUNCTIONS, [user("u")]) == ("Functions: [].[user]u", ())


def test_older_fields_of_calls():
    chat = [user("u"), assistant("", function_call={"name": "f", "arguments": '{"x": "1"}'})]
    chat.append({"role": "function", "name": "f", "content": "r"})
    text, changes = prompt(MAPPINGS, chat, tools=True)
    assert in_order(text, "<call>f(x=1)", "[tool]r")
    assert changes == ()
    with pytest.raises(RequestError, match="function_call"):
        prompt(MAPPINGS, [user("u"), assistant("", function_call={"name": 1})])


def test_what_no_step_mends_is_refused_in_the_templates_words():
    with pytest.raises(RequestError, match="these messages: never"):
        prompt("{{ raise_exception('never') }}", AGENT)


def test_the_template_for_tools(tmp_path):
    """As Hermes 2 and 3, Command R+ and Mixtral 8x22B have it."""
    named = [{"name": "default", "template": "plain"}]
    named.append({"name": "tool_use", "template": "{{ tools[0].function.name }}<tool_call>"})
    config = tmp_path / "tokenizer_config.json"
    config.write_text(json.dumps({"chat_template": named}))
    template = from_folder(tmp_path, {})
    assert template is not None and template.source == "plain"
    assert template.for_tools is not None
    traits = answer_to("wherry_template_traits", template.for_tools.source)
    assert (traits["tool_format"], traits["tools"]) == ("hermes", True)
    with chats(template) as prompted:
        assert prompted({"messages": [user("u")]}) == ("plain", ())
        assert prompted({"messages": [user("u")], "tools": [tool("f")]}) == ("f<tool_call>", ())
    config.unlink()
    further = tmp_path / "additional_chat_templates"
    further.mkdir()
    (further / "tool_use.jinja").write_text("tools")
    (tmp_path / "chat_template.jinja").write_text("plain")
    assert sources_of(tmp_path) == {"tool_use": "tools", "default": "plain"}
    for path in (tmp_path / "chat_template.jinja", further / "tool_use.jinja"):
        path.unlink()
    (tmp_path / "chat_template.json").write_text(json.dumps({"chat_template": "alone"}))
    assert sources_of(tmp_path) == {"default": "alone"}
