"""Translates a request of the Responses API to a chat request."""

from __future__ import annotations

from ..shapes.fields import SamplingFields
from .items import Json, Origins, messages_of
from .shapes import CountRequest, ResponsesRequest
from .tools import OfferedTools


def chat_fields(
    request: CountRequest, items: list[Json], origins: Origins, tools: OfferedTools | None = None
) -> Json:
    """Return the fields of the equivalent chat request.

    Args:
        request: the request of the Responses API.
        items: the conversation's items in stored form.
        origins: paths of the items in the request, for errors.
        tools: the tools of the request and of the items; None: none are offered.

    Raises:
        RequestError: the chosen tool cannot be called here.
    """
    fields: Json = {
        "model": request.model,
        "messages": messages_of(request.instructions, items, origins),
        "reasoning_effort": request.reasoning.effort if request.reasoning else None,
        "response_format": _format(request),
        "tools": (tools.chat if tools else None) or None,
        "tool_choice": tools.choice(request.tool_choice) if tools else None,
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
            "add_generation_prompt": request.generate,
        }
    return {name: v for name, v in fields.items() if v is not None}


def _format(request: CountRequest) -> Json | None:
    requested = request.text.format if request.text else None
    if requested is None or requested.get("type") != "json_schema":
        return requested
    inner = {name: v for name, v in requested.items() if name != "type"}
    return {"type": "json_schema", "json_schema": inner}
