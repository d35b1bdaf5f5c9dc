"""The items of a conversation: their stored form, and their form as chat messages."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from wherry.data import read

from ....errors import RequestError
from ..shapes.contents import ChatPart, content_of, image_part, text_part
from .shapes import (
    ACCEPTED,
    AdditionalToolsItem,
    CallItem,
    CallOutputItem,
    CompactionItem,
    CustomCallItem,
    Item,
    MessageItem,
    Part,
    ReasoningItem,
    ReferenceItem,
    SearchCallItem,
    SearchOutputItem,
    ShellCallItem,
    Tool,
)
from .summary import as_message, opened
from .tools import model_name

Json = dict[str, Any]
Origins = dict[int, str]  # `id()` of an item in stored form -> its path in the request
_DATA = read("responses")
CALLS: dict[str, Json] = {row["type"]: row for row in _DATA["calls"]}
OUTPUTS = frozenset(row["output"] for row in _DATA["calls"])
# Kinds of items that only OpenAI's servers make; they are left out.
_LEFT_OUT = frozenset(_DATA["items_left_out"])
_IMAGE = "input_image"
_TEXTS = ("input_text", "output_text", "text", "reasoning_text", "summary_text")


def new_id(kind: str) -> str:
    """Return a random id that clients cannot guess."""
    return f"{kind}_{secrets.token_hex(16)}"


def kept_items(
    items: str | Sequence[Item],
    find: Callable[[str], Json | None],
    where: str = "input",
    left_out: list[str] | None = None,
    origins: Origins | None = None,
) -> list[Json]:
    """Return the stored form of items: with ids, and with content in parts.

    Args:
        items: the items of a request.
        find: returns an item of an earlier response, by id.
        where: name of the request field, for errors.
        left_out: receives the kinds of items that are left out; None: they are errors.
        origins: receives the paths of the items.

    Raises:
        RequestError: an item's kind is not supported, or a reference has no target.
    """
    if isinstance(items, str):
        items = [MessageItem(role="user", content=items)]
    kept: list[Json] = []
    for i, item in enumerate(items):
        if item.type in _LEFT_OUT and left_out is not None:
            left_out.append(str(item.type))
        else:
            kept.append(_kept(item, f"{where}[{i}]", find))
            if origins is not None:
                origins[id(kept[-1])] = f"{where}[{i}]"
    return kept


def _kept(item: Item, where: str, find: Callable[[str], Json | None]) -> Json:
    if isinstance(item, ReferenceItem):
        if kept := find(item.id):
            return kept
        raise RequestError(
            f"{where}: there is no item {item.id!r} here; send the item itself",
            param=where,
            code="item_not_found",
        )
    extra = item.model_extra or {}
    given = extra.get("id")
    id = given if isinstance(given, str) and 0 < len(given) <= 256 else None
    if isinstance(item, MessageItem):
        content = _kept_content(item, f"{where}.content")
        head = {"id": id or new_id("msg"), "type": "message", "status": "completed"}
        phase = {"phase": item.phase} if item.phase and item.role == "assistant" else {}
        return {**head, "role": item.role, **phase, "content": content}
    if isinstance(item, (CallItem, CustomCallItem, SearchCallItem, ShellCallItem)):
        return _kept_call(item, id)
    if isinstance(item, (CallOutputItem, SearchOutputItem)):
        head = {"id": id or new_id("out"), "type": item.type, "status": "completed"}
        if isinstance(item, SearchOutputItem):
            tools = [tool.described() for tool in item.tools]
            return {**head, "execution": "client", "call_id": item.call_id, "tools": tools}
        output = _kept_output(item.output, f"{where}.output")
        return {**head, "call_id": item.call_id, "output": output}
    if isinstance(item, AdditionalToolsItem):
        head = {"id": id or new_id("at"), "type": "additional_tools", "role": "developer"}
        return {**head, "tools": [tool.described() for tool in item.tools]}
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
        f"{where} is of type {item.type!r}, which is not supported here; accepted are "
        f"{', '.join(map(repr, ACCEPTED))}",
        param=f"{where}.type",
        code="unsupported_item",
    )


def _kept_call(item: CallItem | CustomCallItem | SearchCallItem | ShellCallItem, id: Any) -> Json:
    row = CALLS[item.type]
    field = row.get("text") or row["object"]
    head = {"id": id or new_id(row["id"]), "type": item.type, "status": "completed"}
    head["call_id"] = item.call_id
    if isinstance(item, (CallItem, CustomCallItem)):
        head |= {"name": item.name} | ({"namespace": item.namespace} if item.namespace else {})
    elif isinstance(item, SearchCallItem):
        head["execution"] = "client" if item.call_id else "server"
    return {**head, field: getattr(item, field)}


def tools_of(items: Iterable[Json]) -> list[Tool]:
    """Return the tools that items of a conversation add to those of the request."""
    return [
        Tool.model_validate(tool)
        for item in items
        if item["type"] in ("additional_tools", "tool_search_output")
        for tool in item["tools"]
    ]


def _kept_content(item: MessageItem, where: str) -> list[Json]:
    if item.role == "user" and not isinstance(item.content, str):
        return [_input_part(part, f"{where}[{i}]") for i, part in enumerate(item.content)]
    kind = "output_text" if item.role == "assistant" else "input_text"
    return [_text_part(kind, text) for text in _texts(item.content, where)]


def _kept_output(output: str | Sequence[Part], where: str) -> str | list[Json]:
    if isinstance(output, str):
        return output
    parts = [_input_part(part, f"{where}[{i}]") for i, part in enumerate(output)]
    return parts if any(part["type"] == _IMAGE for part in parts) else _joined(parts)


def _input_part(part: Part, where: str) -> Json:
    if part.type != _IMAGE:
        return _text_part("input_text", _text_of(part, where))
    if isinstance(part.image_url, str):
        return {"type": _IMAGE, "detail": part.detail or "auto", "image_url": part.image_url}
    name = "file_id" if part.image_url is None and part.file_id is not None else "image_url"
    reason = "there are no files here" if name == "file_id" else "an image_url is missing"
    raise RequestError(
        f'{where}: {reason}; an image is sent as {{"type": "input_image", "image_url": '
        '"data:image/png;base64,..."}',
        param=f"{where}.{name}",
        code="unsupported_content" if name == "file_id" else "invalid_image",
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
        f"{where} is of type {part.type!r}, which is not supported here; this API reads text, and "
        "images in messages of the user and in results of calls",
        param=f"{where}.type",
        code="unsupported_content",
    )


def messages_of(instructions: str | None, items: Iterable[Json], origins: Origins) -> list[Json]:
    """Return chat messages; an assistant's reasoning, text and calls become one message.

    Args:
        instructions: text of the first message.
        items: the conversation's items in stored form.
        origins: paths of the items that errors of their images name.
    """
    messages: list[Json] = []
    if instructions:
        messages.append({"role": "system", "content": instructions})
    # a compaction's summary is merged into a message, because templates may require alternating
    # roles
    summary = ""
    for item in items:
        kind = item["type"]
        if summary and kind != "additional_tools" and item.get("role") in (None, "assistant"):
            messages.append({"role": "user", "content": summary})
            summary = ""
        if kind == "compaction":
            summary = as_message(item["encrypted_content"])
        elif kind == "message" and item["role"] != "assistant":
            parts = _chat_parts(item["content"], f"{origins.get(id(item), 'input')}.content")
            if summary and item["role"] == "user":
                parts, summary = [text_part(f"{summary}\n\n"), *parts], ""
            messages.append({"role": item["role"], "content": content_of(parts)})
        elif kind in OUTPUTS:
            if item["call_id"]:
                content = _result(item, f"{origins.get(id(item), 'input')}.output")
                answer = {"tool_call_id": item["call_id"], "content": content}
                messages.append({"role": "tool", **answer})
        elif kind != "additional_tools" and item.get("call_id", True):
            _say(_assistants(messages, item), item)
    if summary:
        messages.append({"role": "user", "content": summary})
    return messages


def _chat_parts(content: Iterable[Json], where: str) -> list[ChatPart]:
    return [
        image_part(part["image_url"], f"{where}[{i}].image_url", part["detail"])
        if part["type"] == _IMAGE
        else text_part(part["text"])
        for i, part in enumerate(content)
    ]


def _result(item: Json, where: str) -> str | list[ChatPart]:
    if "output" not in item:
        return _names_of_tools(item["tools"])
    output = item["output"]
    return output if isinstance(output, str) else content_of(_chat_parts(output, where))


def _names_of_tools(tools: Iterable[Json]) -> str:
    """Return what the model reads as the result of a search for tools."""
    spaces = ((t.get("name"), t.get("tools") or [t]) for t in tools)
    names = [
        model_name(str(t.get("name")), str(space) if t.get("name") != space else None)
        for space, inner in spaces
        for t in inner
    ]
    return f"Tools that can be called now: {', '.join(names) or 'none'}"


def check_calls(items: Iterable[Json]) -> None:
    """Check that each tool result follows its call.

    Raises:
        RequestError: a result has no call; the message names the call's id.
    """
    called: set[str] = set()
    for item in items:
        if item["type"] in CALLS:
            called.add(item["call_id"])
        elif item["type"] in OUTPUTS and item["call_id"] not in {*called, None}:
            call = next(kind for kind, row in CALLS.items() if row["output"] == item["type"])
            raise RequestError(
                f"There is no {call} with call_id {item['call_id'][:100]!r} before its "
                f"{item['type']}; send the call, too, or continue the response that has it",
                param="input",
                code="function_call_not_found",
            )


def _assistants(messages: list[Json], item: Json) -> Json:
    """Return the assistant's message to which an item belongs."""
    last = messages[-1] if messages else {}
    said = last.get("content") or last.get("tool_calls")
    if last.get("role") != "assistant" or (item["type"] not in CALLS and said):
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
        row = CALLS[item["type"]]
        name = row.get("name") or model_name(item["name"], item.get("namespace"))
        if "object" in row:
            arguments = json.dumps(item[row["object"]] or {}, ensure_ascii=False)
        else:
            arguments = item[row["text"]]
            arguments = _as_arguments(arguments) if row["text"] == "input" else arguments
        function = {"name": name, "arguments": arguments}
        call = {"id": item["call_id"], "type": "function", "function": function}
        message.setdefault("tool_calls", []).append(call)


def _joined(content: Iterable[Json]) -> str:
    return "".join(part["text"] for part in content)


def _as_arguments(text: str) -> str:
    """Return the arguments by which the model sees the input of a custom tool."""
    return json.dumps({"input": text}, ensure_ascii=False)
