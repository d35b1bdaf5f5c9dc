"""Converts a request's messages to the form that the model's chat template needs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from ..errors import RequestError
from ..shapes.kinds import Message
from ..shapes.tools import MessageCall, Tool
from .dialect import Dialect

_PREAMBLE = (
    "You can call functions. Each line here describes one, as JSON:\n{tools}\n\n"
    "{how} You get the results in the next message. Where no function helps, answer in words."
)
# fields of messages that templates get in another form
_REWRITTEN = {"tool_calls", "function_call", "reasoning", "prefix"}
_IN_JSON = (
    "To call a function, answer with nothing but a JSON object of its name and its arguments: "
    '{"name": "NAME", "arguments": {...}}. To call several, answer with a list of such objects.'
)
_AS_HERE = (
    "To call a function, write this, with what is meant in place of the words in capitals, and "
    "nothing after it:\n{example}\n"
)


def conversation(
    messages: Sequence[Message], tools: Sequence[Tool], dialect: Dialect
) -> list[dict[str, Any]]:
    """Return the template's messages; the parts of a content are joined to one text.

    "developer" becomes "system", and OpenAI's older names "function" and "function_call" become
    "tool" and "tool_calls", which templates know. If the template has no tools, a text describes
    them to the model, and earlier calls and their results become texts, too.

    Raises:
        RequestError: content is not text.
    """
    names = _names_of_calls(messages)
    plain = [_plain(m, i, names, dialect) for i, m in enumerate(messages)]
    if not dialect.takes_calls:
        plain = _without_calls(plain)
    if dialect.native:
        return plain
    return _with_preamble(plain, tools, dialect) if tools else plain


def described(tool: Tool) -> dict[str, Any]:
    """Return the description of a tool in the form that templates print."""
    extra = tool.model_dump(exclude_none=True, exclude={"type", "function", "custom"})
    function = tool.function.model_dump(exclude_none=True, exclude={"strict"})
    function.setdefault("description", "")
    function["parameters"] = tool.function.schema_of_arguments
    return {"type": "function", "function": function, **extra}


def _names_of_calls(messages: Sequence[Message]) -> dict[str, str]:
    return {c.id: c.function.name for m in messages for c in _calls(m) if c.id is not None}


def _calls(message: Message) -> Sequence[MessageCall]:
    """Return the calls of a message, also one in `function_call`, OpenAI's older field.

    Raises:
        RequestError: `function_call` has another shape.
    """
    older = (message.model_extra or {}).get("function_call")
    if message.tool_calls or older is None:
        return message.tool_calls or ()
    try:
        return [MessageCall.model_validate({"function": older})]
    except ValidationError as e:
        raise RequestError(
            "function_call in a message takes a name and arguments", param="messages"
        ) from e


def _plain(message: Message, index: int, names: Mapping[str, str], d: Dialect) -> dict[str, Any]:
    fields = message.model_dump(exclude_none=True, exclude=_REWRITTEN)
    fields["content"] = _text(message, index)
    if message.role == "developer":
        fields["role"] = "system"
    if message.role in ("tool", "function"):
        fields["role"] = "tool"
        fields.setdefault("name", names.get(message.tool_call_id or "", "unknown"))
    if message.tool_call_id is not None:
        fields["tool_call_id"] = d.family.known_id(message.tool_call_id)
    calls = _calls(message)
    if calls:
        fields["tool_calls"] = [_call(call, d) for call in calls]
    thoughts = message.reasoning_content or message.reasoning
    if thoughts:
        fields["reasoning_content"] = thoughts
        if d.family.thinking_field and not (fields["content"] and calls):
            fields["thinking"] = thoughts
    return fields


def _text(message: Message, index: int) -> str:
    if not isinstance(message.content, list):
        return message.content or ""
    for i, part in enumerate(message.content):
        if part.type not in ("text", "input_text", "output_text") or part.text is None:
            raise RequestError(
                f"Content of type {part.type!r} is not supported; this model reads text",
                param=f"messages[{index}].content[{i}].type",
                code="unsupported_content",
            )
    return "".join(part.text or "" for part in message.content)


def _call(call: MessageCall, dialect: Dialect) -> dict[str, Any]:
    """Return a call with its arguments in the form that the template needs.

    Arguments that are no JSON object stay a text: a model may have written them, and should see
    what it wrote.
    """
    arguments: Any = call.function.arguments or "{}"
    if dialect.takes_text and not isinstance(arguments, str):
        arguments = json.dumps(arguments, ensure_ascii=False)
    if not dialect.takes_text and isinstance(arguments, str):
        arguments = _object(arguments)
    function = {"name": call.function.name, "arguments": arguments}
    made = {"type": "function", "function": function}
    return made if call.id is None else {"id": dialect.family.known_id(call.id), **made}


def _object(text: str) -> Any:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return found if isinstance(found, dict) else text


def _without_calls(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return messages with calls and results as texts.

    Neighbouring results become one message of the user.
    """
    made: list[dict[str, Any]] = []
    for message in messages:
        message = dict(message)
        if calls := message.pop("tool_calls", None):
            written = json.dumps([c["function"] for c in calls], ensure_ascii=False)
            message["content"] = f"{message['content']}\n{written}".strip()
        if message["role"] == "tool":
            text = f"Result of {message['name']}:\n{message['content']}"
            if made and made[-1].pop("results", False):
                text = f"{made.pop()['content']}\n\n{text}"
            message = {"role": "user", "content": text, "results": True}
        made.append(message)
    for message in made:
        message.pop("results", None)
    return made


def _with_preamble(
    messages: Sequence[dict[str, Any]], tools: Sequence[Tool], dialect: Dialect
) -> list[dict[str, Any]]:
    lines = (json.dumps(described(tool)["function"], ensure_ascii=False) for tool in tools)
    example = dialect.family.format.example
    how = _AS_HERE.format(example=example) if example else _IN_JSON
    text = _PREAMBLE.format(tools="\n".join(lines), how=how)
    # role of the message that describes the tools
    role = "system" if dialect.takes_system else "user"
    made = [dict(m) for m in messages]
    if role == "user":
        made[0]["content"] = f"{text}\n\n{made[0]['content']}"
        return made
    if made[0]["role"] == "system":
        made[0]["content"] = f"{made[0]['content']}\n\n{text}".strip()
        return made
    return [{"role": "system", "content": text}, *made]
