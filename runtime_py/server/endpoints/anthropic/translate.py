"""Translates Anthropic's requests to chat requests."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from ....errors import RequestError
from ..shapes.contents import ChatPart, base64_part, content_of, image_part, text_part
from ..shapes.requests import refuse, validated
from .shapes import (
    MEANINGFUL,
    CountRequest,
    ImageBlock,
    MessagesRequest,
    OtherBlock,
    RedactedThinkingBlock,
    TextBlock,
    ThinkingBlock,
    Tool,
    ToolChoice,
    ToolReferenceBlock,
    ToolResultBlock,
    ToolUseBlock,
    Turn,
)

_CHOICES = {"auto": "auto", "any": "required", "none": "none"}


def parse_messages(fields: Any) -> MessagesRequest:
    """Parse the body of /v1/messages.

    Raises:
        RequestError: a field is wrong, or would change the response if it were ignored.
    """
    request = validated(MessagesRequest, fields)
    refuse(request, MEANINGFUL)
    return request


def parse_count(fields: Any) -> CountRequest:
    """Parse the body of /v1/messages/count_tokens; errors as in `parse_messages`."""
    request = validated(CountRequest, fields)
    refuse(request, MEANINGFUL)
    return request


def chat_fields(request: CountRequest) -> dict[str, Any]:
    """Return the fields of the equivalent chat request, without a limit on the output's length.

    Raises:
        RequestError: a kind of content or tool is not supported.
    """
    fields: dict[str, Any] = {
        "model": request.model,
        "messages": list(_messages(request)),
        **_thinking(request),
        **_format(request),
        **_choice(request.tool_choice),
        "tools": [_tool(tool, i) for i, tool in enumerate(request.tools or ())] or None,
    }
    # the output continues the last message of the assistant
    if request.messages[-1].role == "assistant":
        fields["continue_final_message"] = True
    if isinstance(request, MessagesRequest):
        fields |= {
            "stream": request.stream,
            "stop": request.stop_sequences or None,
            "temperature": request.temperature,
            "top_p": request.top_p,
            "top_k": request.top_k,
            "user": request.metadata.user_id if request.metadata else None,
        }
    return {name: v for name, v in fields.items() if v is not None}


def _thinking(request: CountRequest) -> dict[str, Any]:
    """Return chat fields that disable thinking in the output, unless the client asks for it."""
    thinks = request.thinks
    return {
        "enable_thinking": thinks,
        "include_reasoning": thinks,
        "reasoning_effort": request.effort if thinks else None,
    }


def _format(request: CountRequest) -> dict[str, Any]:
    nested = request.output_config.format if request.output_config else None
    name, requested = "output_config.format", nested
    if requested is None:
        name, requested = "output_format", request.output_format
    if requested is None:
        return {}
    if requested.get("type") != "json_schema" or "schema" not in requested:
        raise RequestError(f'{name} takes {{"type": "json_schema", "schema": {{...}}}}', param=name)
    schema = {"name": "answer", "schema": requested["schema"], "strict": True}
    return {"response_format": {"type": "json_schema", "json_schema": schema}}


def _tool(tool: Tool, index: int) -> dict[str, Any]:
    if tool.type not in (None, "custom"):
        raise RequestError(
            f"tools[{index}] {tool.name!r} is of type {tool.type!r}, which Anthropic's own models "
            "and servers know; here a tool has an input_schema and is run by the client",
            param=f"tools[{index}].type",
            code="unsupported_tool",
        )
    function = {
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.input_schema,
        "strict": tool.strict,
    }
    given = {name: value for name, value in function.items() if value is not None}
    return {"type": "function", "function": given}


def _choice(choice: ToolChoice | None) -> dict[str, Any]:
    if choice is None:
        return {}
    translated: Any = _CHOICES.get(choice.type)
    if choice.type == "tool":
        if not choice.name:
            raise RequestError("tool_choice of type 'tool' needs a name", param="tool_choice.name")
        translated = {"type": "function", "function": {"name": choice.name}}
    alone = choice.disable_parallel_tool_use
    return {"tool_choice": translated} | (
        {} if alone is None else {"parallel_tool_calls": not alone}
    )


def _messages(request: CountRequest) -> Iterator[dict[str, Any]]:
    if request.system:
        yield {"role": "system", "content": _text(request.system, "system")}
    for i, turn in enumerate(request.messages):
        where = f"messages[{i}].content"
        if isinstance(turn.content, str):
            yield {"role": turn.role, "content": turn.content}
        elif turn.role == "assistant":
            yield _assistant(turn, where)
        else:
            yield from _others(turn, where)


def _text(content: str | Iterable[TextBlock | ToolReferenceBlock | OtherBlock], where: str) -> str:
    if isinstance(content, str):
        return content
    return "".join(_text_of(block, where, i) for i, block in enumerate(content))


def _text_of(block: TextBlock | ToolReferenceBlock | OtherBlock, where: str, index: int) -> str:
    if isinstance(block, TextBlock):
        return block.text
    if isinstance(block, ToolReferenceBlock):
        return f"The tool {block.tool_name} can be called now.\n"
    return _refused(block, where, index)


def _image(block: ImageBlock, where: str) -> ChatPart:
    source = block.source
    if source.type == "base64" and source.data is not None:
        return base64_part(source.data, f"{where}.source.data")
    if source.type == "url" and source.url is not None:
        return image_part(source.url, f"{where}.source.url")
    raise RequestError(
        f"{where}.source is of type {source.type[:100]!r}; images are sent as "
        '{"type": "base64", "media_type": "image/png", "data": "..."}, or with a data: URL as '
        '{"type": "url", "url": "data:image/png;base64,..."}',
        param=f"{where}.source",
        code="unsupported_content",
    )


def _result(block: ToolResultBlock, where: str) -> str | list[ChatPart]:
    content = block.content or ""
    parts = [text_part("Error: ")] if block.is_error else []
    if isinstance(content, str):
        return content_of([*parts, text_part(content)])
    for i, inner in enumerate(content):
        if isinstance(inner, ImageBlock):
            parts.append(_image(inner, f"{where}.content[{i}]"))
        else:
            parts.append(text_part(_text_of(inner, f"{where}.content", i)))
    return content_of(parts)


def _assistant(turn: Turn, where: str) -> dict[str, Any]:
    """Return one message of the assistant.

    Text between its tool calls is dropped, as in templates.
    """
    message: dict[str, Any] = {"role": "assistant", "content": ""}
    for i, block in enumerate(turn.content):
        if isinstance(block, TextBlock):
            message["content"] += block.text
        elif isinstance(block, ThinkingBlock):
            message["reasoning_content"] = message.get("reasoning_content", "") + block.thinking
        elif isinstance(block, ToolUseBlock):
            function = {"name": block.name, "arguments": _json(block.input)}
            call = {"id": block.id, "type": "function", "function": function}
            message.setdefault("tool_calls", []).append(call)
        elif not isinstance(block, RedactedThinkingBlock):
            _refused(block, where, i)
    return message


def _others(turn: Turn, where: str) -> Iterator[dict[str, Any]]:
    """Yield a message for each tool result, and for the parts between the results.

    An image in a result stays there: C++ lets a template that reads results write its place, and
    makes messages of the user of the results for others.
    """
    parts: list[ChatPart] = []
    for i, block in enumerate(turn.content):
        if isinstance(block, TextBlock):
            parts.append(text_part(block.text))
        elif isinstance(block, ImageBlock) and turn.role == "user":
            parts.append(_image(block, f"{where}[{i}]"))
        elif isinstance(block, ToolResultBlock) and turn.role == "user":
            if parts:
                yield {"role": turn.role, "content": content_of(parts)}
                parts = []
            content = _result(block, f"{where}[{i}]")
            yield {"role": "tool", "tool_call_id": block.tool_use_id, "content": content}
        else:
            _refused(block, where, i)
    if parts:
        yield {"role": turn.role, "content": content_of(parts)}


def _refused(block: Any, where: str, index: int) -> str:
    raise RequestError(
        f"{where}[{index}] is of type {block.type[:100]!r}, which is not supported here; this "
        "API reads text, and images in messages of the user and in results of tools",
        param=f"{where}[{index}].type",
        code="unsupported_content",
    )


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
