"""The items of a conversation: their stored form, and their form as chat messages."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ....errors import RequestError
from .shapes import (
    CallItem,
    CallOutputItem,
    CompactionItem,
    Item,
    MessageItem,
    Part,
    ReasoningItem,
    ReferenceItem,
)
from .summary import as_message, opened

Json = dict[str, Any]
_TEXTS = ("input_text", "output_text", "text", "reasoning_text", "summary_text")


def new_id(kind: str) -> str:
    """Return a random id that clients cannot guess."""
    return f"{kind}_{secrets.token_hex(16)}"


def kept_items(
    items: str | Sequence[Item], find: Callable[[str], Json | None], where: str = "input"
) -> list[Json]:
    """Return the stored form of items: with ids, and with content in parts.

    Args:
        items: the items of a request.
        find: returns an item of an earlier response, by id.
        where: name of the request field, for errors.

    Raises:
        RequestError: an item's kind is not supported, or a reference has no target.
    """
    if isinstance(items, str):
        items = [MessageItem(role="user", content=items)]
    return [_kept(item, f"{where}[{i}]", find) for i, item in enumerate(items)]


def _kept(item: Item, where: str, find: Callable[[str], Json | None]) -> Json:
    if isinstance(item, ReferenceItem):
        if found := find(item.id):
            return found
        raise RequestError(
            f"{where}: there is no item {item.id!r} here; send the item itself",
            param=where,
            code="item_not_found",
        )
    extra = item.model_extra or {}
    given = extra.get("id")
    id = given if isinstance(given, str) and 0 < len(given) <= 256 else None
    if isinstance(item, MessageItem):
        kind = "output_text" if item.role == "assistant" else "input_text"
        content = [_text_part(kind, text) for text in _texts(item.content, f"{where}.content")]
        head = {"id": id or new_id("msg"), "type": "message", "status": "completed"}
        phase = {"phase": item.phase} if item.phase and item.role == "assistant" else {}
        return {**head, "role": item.role, **phase, "content": content}
    if isinstance(item, CallItem):
        head = {"id": id or new_id("fc"), "type": "function_call", "status": "completed"}
        return {**head, "call_id": item.call_id, "name": item.name, "arguments": item.arguments}
    if isinstance(item, CallOutputItem):
        output = "".join(_texts(item.output, f"{where}.output"))
        head = {"id": id or new_id("fco"), "type": "function_call_output", "status": "completed"}
        return {**head, "call_id": item.call_id, "output": output}
    if isinstance(item, ReasoningItem):
        texts = _texts(item.content or [], f"{where}.content")
        content = [{"type": "reasoning_text", "text": text} for text in texts]
        return {"id": id or new_id("rs"), "type": "reasoning", "summary": [], "content": content}
    if isinstance(item, CompactionItem):
        try:
            opened(item.encrypted_content)
        except ValueError as e:
            raise RequestError(f"{where}: the compaction cannot be read: {e}", param=where) from e
        head = {"id": id or new_id("cmp"), "type": "compaction"}
        return {**head, "encrypted_content": item.encrypted_content}
    raise RequestError(
        f"{where} is of type {item.type!r}, which is not supported here; accepted are 'message', "
        "'function_call', 'function_call_output', 'reasoning', 'compaction' and 'item_reference'",
        param=f"{where}.type",
        code="unsupported_item",
    )


def _text_part(kind: str, text: str) -> Json:
    if kind == "output_text":
        return {"type": kind, "text": text, "annotations": [], "logprobs": []}
    return {"type": kind, "text": text}


def _texts(content: str | Sequence[Part], where: str) -> list[str]:
    if isinstance(content, str):
        return [content]
    return [_text_of(part, f"{where}[{i}]") for i, part in enumerate(content)]


def _text_of(part: Part, where: str) -> str:
    if part.type == "refusal" and part.refusal is not None:
        return part.refusal
    if part.type in _TEXTS and part.text is not None:
        return part.text
    raise RequestError(
        f"{where} is of type {part.type!r}, which is not supported here; this model reads text",
        param=f"{where}.type",
        code="unsupported_content",
    )


def messages_of(instructions: str | None, items: Iterable[Json]) -> list[Json]:
    """Return chat messages; an assistant's reasoning, text and calls become one message."""
    messages: list[Json] = []
    if instructions:
        messages.append({"role": "system", "content": instructions})
    # a compaction's summary is merged into a message, because templates may require alternating
    # roles
    summary = ""
    for item in items:
        kind = item["type"]
        if summary and (kind != "message" or item["role"] == "assistant"):
            messages.append({"role": "user", "content": summary})
            summary = ""
        if kind == "compaction":
            summary = as_message(item["encrypted_content"])
        elif kind == "message" and item["role"] != "assistant":
            content = _joined(item["content"])
            if summary and item["role"] == "user":
                content, summary = f"{summary}\n\n{content}", ""
            messages.append({"role": item["role"], "content": content})
        elif kind == "function_call_output":
            answer = {"tool_call_id": item["call_id"], "content": item["output"]}
            messages.append({"role": "tool", **answer})
        else:
            _say(_assistants(messages, item), item)
    if summary:
        messages.append({"role": "user", "content": summary})
    return messages


def check_calls(items: Iterable[Json]) -> None:
    """Check that each tool result follows its call.

    Raises:
        RequestError: a result has no call; the message names the call's id.
    """
    called: set[str] = set()
    for item in items:
        if item["type"] == "function_call":
            called.add(item["call_id"])
        elif item["type"] == "function_call_output" and item["call_id"] not in called:
            raise RequestError(
                f"There is no function_call with call_id {item['call_id'][:100]!r} before its "
                "function_call_output; send the call, too, or continue the response that has it",
                param="input",
                code="function_call_not_found",
            )


def _assistants(messages: list[Json], item: Json) -> Json:
    """Return the assistant's message to which an item belongs."""
    last = messages[-1] if messages else {}
    said = last.get("content") or last.get("tool_calls")
    if last.get("role") != "assistant" or (item["type"] != "function_call" and said):
        messages.append({"role": "assistant", "content": ""})
    return messages[-1]


def _say(message: Json, item: Json) -> None:
    if item["type"] == "message":
        message["content"] = _joined(item["content"])
    elif item["type"] == "reasoning":
        thought = message.get("reasoning_content", "") + _joined(item["content"])
        if thought:
            message["reasoning_content"] = thought
    else:
        function = {"name": item["name"], "arguments": item["arguments"]}
        call = {"id": item["call_id"], "type": "function", "function": function}
        message.setdefault("tool_calls", []).append(call)


def _joined(content: Iterable[Json]) -> str:
    return "".join(part["text"] for part in content)
