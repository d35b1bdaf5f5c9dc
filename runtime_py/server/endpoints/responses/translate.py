"""Translates a request of the Responses API to a chat request."""

from __future__ import annotations

from typing import Any

from ....errors import RequestError
from ....shapes.fields import SamplingFields
from ....shapes.requests import ChatRequest, parse
from .items import Json, messages_of
from .shapes import CountRequest, ResponsesRequest, Tool, ToolChoice


def chat_request(request: CountRequest, items: list[Json]) -> ChatRequest:
    """Return the equivalent chat request.

    Args:
        request: the request of the Responses API.
        items: the conversation's items in stored form.

    Raises:
        RequestError: a kind of tool is not supported.
    """
    fields: Json = {
        "model": request.model,
        "messages": messages_of(request.instructions, items),
        "reasoning_effort": request.reasoning.effort if request.reasoning else None,
        "response_format": _format(request),
        "tools": [_tool(tool, i) for i, tool in enumerate(request.tools or ())] or None,
        "tool_choice": _choice(request.tool_choice),
        "parallel_tool_calls": request.parallel_tool_calls,
        "truncation": request.truncation,
    }
    if isinstance(request, ResponsesRequest):
        sampling = SamplingFields.model_fields
        fields |= {name: getattr(request, name) for name in sampling}
        fields |= {
            "stream": request.stream,
            "logprobs": request.wants_logprobs or None,
            "top_logprobs": request.top_logprobs,
            "user": request.user,
            "safety_identifier": request.safety_identifier,
            "seed": request.seed,
        }
    return parse(ChatRequest, {name: v for name, v in fields.items() if v is not None})


def _format(request: CountRequest) -> Json | None:
    asked = request.text.format if request.text else None
    if asked is None or asked.get("type") != "json_schema":
        return asked
    inner = {name: v for name, v in asked.items() if name != "type"}
    return {"type": "json_schema", "json_schema": inner}


def _tool(tool: Tool, index: int) -> Json:
    if tool.type != "function":
        raise RequestError(
            f"tools[{index}] is of type {tool.type!r}, which OpenAI runs on its own servers; here "
            "tools are functions, which the client runs",
            param=f"tools[{index}].type",
            code="unsupported_tool",
        )
    names = ("name", "description", "parameters", "strict")
    given = {name: v for name in names if (v := getattr(tool, name)) is not None}
    return {"type": "function", "function": given}


def _choice(choice: str | ToolChoice | None) -> Any:
    if not isinstance(choice, ToolChoice):
        return choice
    if choice.type == "function":
        return {"type": "function", "function": {"name": choice.name}}
    if choice.type == "allowed_tools":
        tools = [(tool.get("type"), tool.get("name")) for tool in choice.tools or ()]
        named = [{"type": kind, "function": {"name": name}} for kind, name in tools]
        allowed = {"mode": choice.mode or "auto", "tools": named}
        return {"type": "allowed_tools", "allowed_tools": allowed}
    raise RequestError(
        f"tool_choice is of type {choice.type!r}; accepted are 'none', 'auto', 'required', and "
        "objects of type 'function' or 'allowed_tools'",
        param="tool_choice.type",
    )
