"""One request to /v1/responses, and what becomes of it."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from typing import Any

from ....answer.delta import LoggedToken
from ....answer.openai import token_logprobs
from ....load.model import LoadedModel
from ....request.caller import Caller
from ....request.errors import RequestError
from ....request.plan import Plan
from ....request.sampling_fields import SamplingFields
from ....request.shapes import ChatRequest, not_known, parse, refuse, validated
from ...wire.errors import ApiError
from ...wire.errors import body as error_body
from .items import Json, kept_items, messages_of, new_id
from .memory import Encoded, Memory, encoded_items
from .reply import ResponseReply
from .shapes import MAX_ITEMS, MEANINGFUL, CountRequest, ResponsesRequest, Tool, ToolChoice

_log = logging.getLogger(__name__)
MAX_OUTPUT = 1024  # items of one answer: twice its calls


def parse_request(fields: Any) -> ResponsesRequest:
    """The body of /v1/responses.

    Raises:
        RequestError: a field is missing or out of range, or its neglect would change the answer.
    """
    request = validated(ResponsesRequest, fields)
    refuse(request, MEANINGFUL)
    _check(request)
    if request.background:
        raise RequestError(
            "background responses are not supported; use stream: true, or wait for the answer",
            param="background",
            code="unsupported_parameter",
        )
    return request


def parse_count(fields: Any) -> CountRequest:
    """The body of /v1/responses/input_tokens; raises as `parse_request`."""
    request = validated(CountRequest, fields)
    refuse(request, MEANINGFUL)
    _check(request)
    return request


def _check(request: CountRequest) -> None:
    if request.truncation == "auto":
        raise RequestError(
            "truncation 'auto' would leave out parts of the conversation unseen; shorten it, or "
            "take 'disabled'",
            param="truncation",
            code="unsupported_parameter",
        )
    if request.previous_response_id and request.conversation:
        raise RequestError(
            "previous_response_id and conversation are two conversations; send one of them",
            param="previous_response_id",
        )


def ignored_fields(request: ResponsesRequest) -> list[str]:
    """Names of what was sent and has no effect."""
    nested = (("reasoning", request.reasoning), ("text", request.text))
    inner = [f"{name}.{n}" for name, shape in nested if shape for n in not_known(shape)]
    return sorted([*not_known(request), *inner, *request.unused])


class Turn:
    """One request.

    Args:
        memory: of the server.
        tenant: who asks.
    """

    def __init__(self, memory: Memory, tenant: str) -> None:
        self._memory = memory
        self._tenant = tenant
        self._reply: ResponseReply | None = None

    def plan(
        self, loaded: LoadedModel, request: ResponsesRequest, caller: Caller
    ) -> tuple[Plan, ResponseReply]:
        """What the model is asked, and the shapes of the answer."""
        before, new = self._items(request)
        chat = _chat(request, before + new)
        plan, _ = loaded.chat(chat, caller)
        request.note_unused(chat.unused)
        head = _head(request, plan)
        before_, new_ = encoded_items(before), encoded_items(new)

        def keep(response: Json) -> None:
            self._keep(request, response, before_, new_)

        self._reply = ResponseReply(head, _logprobs if plan.logprobs else None, keep)
        return plan, self._reply

    def count(self, loaded: LoadedModel, request: CountRequest, caller: Caller) -> Json:
        """The tokens that come before an answer."""
        before, new = self._items(request)
        prompt = loaded.planner.prompt_of(_chat(request, before + new), caller)
        return {"object": "response.input_tokens", "input_tokens": len(prompt)}

    def failure(self, error: ApiError) -> Json:
        """What is said of an error after the first event."""
        return self._reply.failed(error) if self._reply else error_body(error)

    def _items(self, request: CountRequest) -> tuple[list[Json], list[Json]]:
        """Items of earlier turns, and those of this one."""
        before: list[Json] = []
        if request.previous_response_id:
            before = self._context_of(request.previous_response_id)
        elif request.conversation_id:
            before = self._memory.conversation(self._tenant, request.conversation_id).context
        new = kept_items(request.input, lambda id: self._memory.item(self._tenant, id))
        if not before and not new:
            raise RequestError("input is empty; it takes a text, or a list of items", param="input")
        if request.conversation_id and len(before) + len(new) > MAX_ITEMS - MAX_OUTPUT:
            raise RequestError(
                f"The conversation has {len(before)} items, and takes {MAX_ITEMS}; begin another",
                param="conversation",
            )
        return before, new

    def _context_of(self, id: str) -> list[Json]:
        kept = self._memory.responses.get((self._tenant, id))
        if kept is None:
            raise RequestError(
                f"There is no response {id!r} here to go on from: it was never kept, was deleted, "
                "or made room for others; and what is kept ends with the server",
                param="previous_response_id",
                code="previous_response_not_found",
            )
        return kept.context

    def _keep(
        self, request: ResponsesRequest, response: Json, before: Encoded, new: Encoded
    ) -> None:
        if request.conversation_id:
            said = new + encoded_items(response["output"])
            try:
                self._memory.extend(self._tenant, request.conversation_id, said)
            except (ApiError, RequestError) as e:  # deleted, or filled by others, meanwhile
                _log.warning("%s was not kept: %s", response["id"], e)
        if request.store is not False:
            self._memory.keep(self._tenant, response, before + new)


def _logprobs(tokens: Sequence[LoggedToken]) -> list[Json]:
    return [token.model_dump() for token in token_logprobs(tokens)]


def _chat(request: CountRequest, items: list[Json]) -> ChatRequest:
    fields: Json = {
        "model": request.model,
        "messages": messages_of(request.instructions, items),
        "reasoning_effort": request.reasoning.effort if request.reasoning else None,
        "response_format": _format(request),
    }
    if request.tools:
        fields["tools"] = [_tool(tool, i) for i, tool in enumerate(request.tools)]
        fields["tool_choice"] = _choice(request.tool_choice)
        fields["parallel_tool_calls"] = request.parallel_tool_calls
    if isinstance(request, ResponsesRequest):
        sampling = SamplingFields.model_fields
        fields |= {name: getattr(request, name) for name in sampling}
        fields |= {
            "stream": request.stream,
            "max_completion_tokens": request.max_output_tokens,
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


def _head(request: ResponsesRequest, plan: Plan) -> Json:
    """What of a response is known before the answer."""
    params = plan.jobs[0].params
    effort = request.reasoning.effort if request.reasoning else None
    conversation = request.conversation_id
    return {
        "id": new_id("resp"),
        "object": "response",
        "created_at": int(time.time()),
        "completed_at": None,
        "status": "in_progress",
        "background": False,
        "conversation": {"id": conversation} if conversation else None,
        "error": None,
        "incomplete_details": None,
        "instructions": request.instructions,
        "max_output_tokens": request.max_output_tokens,
        "max_tool_calls": None,
        "metadata": request.metadata or {},
        "model": request.model,
        "output": [],
        "parallel_tool_calls": request.parallel_tool_calls is not False,
        "previous_response_id": request.previous_response_id,
        "reasoning": {"effort": effort, "summary": None},
        "safety_identifier": request.safety_identifier,
        "service_tier": "default",
        "store": request.store is not False,
        "temperature": params.temperature,
        "text": {"format": (request.text and request.text.format) or {"type": "text"}},
        "tool_choice": _shown(request.tool_choice) or "auto",
        "tools": [_shown(tool) for tool in request.tools or ()],
        "top_logprobs": request.top_logprobs or 0,
        "top_p": params.top_p,
        "truncation": "disabled",
        "usage": None,
        "user": request.user,
    }


def _shown(value: Any) -> Any:
    return value.model_dump(exclude_unset=True) if hasattr(value, "model_dump") else value
