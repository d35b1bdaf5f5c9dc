"""One request to /v1/responses: its plan, and the storage of its response."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from ....caller import Caller
from ....errors import RequestError
from ....host.request import HostRequest
from ....load.model import LoadedModel
from ...wire.errors import ApiError
from ...wire.errors import body as error_body
from ..parts import IN_PARTS, Translated
from ..shapes.requests import not_known, refuse, validated
from .items import Json, Origins, check_calls, kept_items, new_id, tools_of
from .local import Local
from .memory import KeptResponse, Memory, encoded, encoded_items
from .reply import OPENAI_THOUGHTS, ResponseReply
from .shapes import LOGPROBS, MAX_ITEMS, MEANINGFUL, CountRequest, ResponsesRequest, ToolChoice
from .tools import OfferedTools
from .translate import chat_fields

_log = logging.getLogger(__name__)
# HTTP fields that have no meaning on a WebSocket, with their harmless values.
_OF_HTTP = {"stream": True, "stream_options": None, "background": False}
MAX_OUTPUT = 1024  # maximum number of items of one response: twice the maximum number of calls


def parse_request(fields: Any) -> ResponsesRequest:
    """Parse the body of /v1/responses.

    Raises:
        RequestError: a field is wrong, or would change the answer if it were ignored.
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


def parse_message(local: Local, fields: Any) -> ResponsesRequest:
    """Parse a message of a WebSocket; errors as in `parse_request`.

    Args:
        local: the connection's last response; it records which response the turn continues.
        fields: the message's fields.
    """
    named = fields if isinstance(fields, dict) else {}
    previous = named.get("previous_response_id")
    local.begin(previous if isinstance(previous, str) else None)
    if named.get("type") != "response.create":
        raise RequestError(
            f"The message is of type {str(named.get('type'))[:100]!r}; accepted are objects of "
            "type 'response.create'",
            param="type",
            code="unknown_message",
        )
    for name, harmless in _OF_HTTP.items():
        if named.get(name) not in (None, harmless):
            raise RequestError(
                f"{name} belongs to requests over HTTP; over a WebSocket every response is "
                "streamed, and none runs in the background",
                param=name,
                code="unsupported_parameter",
            )
    kept = {n: v for n, v in named.items() if n != "type" and n not in _OF_HTTP}
    return parse_request({**kept, "stream": True})


def parse_count(fields: Any) -> CountRequest:
    """Parse the body of /v1/responses/input_tokens; errors as in `parse_request`."""
    request = validated(CountRequest, fields)
    refuse(request, MEANINGFUL)
    _check(request)
    return request


def _check(request: CountRequest) -> None:
    if request.previous_response_id and request.conversation:
        raise RequestError(
            "previous_response_id and conversation are two conversations; send one of them",
            param="previous_response_id",
        )


def ignored_fields(request: ResponsesRequest, ignored: Sequence[str]) -> list[str]:
    """Return the names of fields without effect, out of those of the equivalent chat."""
    nested = (("reasoning", request.reasoning), ("text", request.text))
    inner = [f"{name}.{n}" for name, shape in nested if shape for n in not_known(shape)]
    # `prompt_cache_key` has no effect, because prompts share the cache without it.
    key = ["prompt_cache_key"] if request.prompt_cache_key else []
    included = [f"include.{name}" for name in request.include or () if name != LOGPROBS]
    effort = ["reasoning.effort"] if "reasoning_effort" in ignored else []
    detail = ["input.content.detail"] if "messages.content.image_url.detail" in ignored else []
    names = {*not_known(request), *inner, *key, *included, *effort, *detail, *request.left_out}
    return sorted(names)


class Turn:
    """Plans one request and stores its response.

    Args:
        memory: the server's store of responses.
        tenant: name of the request's key.
        local: the last response of the WebSocket connection; None: the request came over HTTP.
        thoughts: prefix of the reasoning events' names.

    Attributes:
        origins: paths of the items that `items` has returned, for errors.
    """

    def __init__(
        self,
        memory: Memory,
        tenant: str,
        local: Local | None = None,
        thoughts: str = OPENAI_THOUGHTS,
    ) -> None:
        self._memory = memory
        self._tenant = tenant
        self._local = local
        self._thoughts = thoughts
        self._reply: ResponseReply | None = None
        self.origins: Origins = {}

    def plan(
        self, loaded: LoadedModel, request: ResponsesRequest, caller: Caller
    ) -> tuple[HostRequest, Translated]:
        """Return the request for C++, and the writer of the response."""
        left_out: list[str] = []
        before, new = self.items(request, left_out)
        tools = OfferedTools(request.tools or (), tools_of(before + new))
        fields = chat_fields(request, before + new, self.origins, tools)
        request.note_left_out([f"tools.{kind}" for kind in tools.left_out])
        request.note_left_out([f"input.{kind}" for kind in left_out])
        writes = request.generate is not False
        self._reply = ResponseReply(
            partial(_head, request),
            self._keeper(request, before, new),
            tools=tools.known,
            thoughts=self._thoughts,
            writes=writes,
            # a WebSocket has no header for each response
            ignored=partial(ignored_fields, request) if self._local else None,
        )
        # the requested number of tokens may exceed the context
        limits = {"max_tokens": request.max_output_tokens, "prompt_only": not writes}
        return HostRequest("chat", fields, {**IN_PARTS, **limits}), Translated(self._reply)

    def count(self, loaded: LoadedModel, request: CountRequest, caller: Caller) -> Json:
        """Return the count of tokens that precede the output, in the Responses API's shape."""
        before, new = self.items(request, [])
        tools = OfferedTools(request.tools or (), tools_of(before + new))
        fields = chat_fields(request, before + new, self.origins, tools)
        prompt = loaded.prompt(fields, caller)
        return {"object": "response.input_tokens", "input_tokens": len(prompt)}

    def failure(self, error: ApiError) -> Json:
        """Return the fields of a response that fails after its first event."""
        if self._local:
            self._local.failed()
        return self._reply.failed(error) if self._reply else error_body(error)

    def keep_alive(self) -> Json:
        """Return an event that shows that the response still runs; call it during a stream."""
        assert self._reply is not None
        return self._reply.keep_alive()

    def items(self, request: CountRequest, left_out: list[str]) -> tuple[list[Json], list[Json]]:
        """Return the items of earlier turns, and those of this turn.

        `left_out` receives the kinds of items that are left out.

        Raises:
            RequestError: the request has no items, or an item does not exist.
        """
        before: list[Json] = []
        if request.previous_response_id:
            before = self._context_of(request.previous_response_id)
        elif request.conversation_id:
            before = self._memory.conversation(self._tenant, request.conversation_id).context
        earlier = "previous_response_id" if request.previous_response_id else "conversation"
        self.origins = {id(item): f"{earlier}[{i}]" for i, item in enumerate(before)}
        new = kept_items(
            request.input,
            lambda id: self._memory.item(self._tenant, id),
            left_out=left_out,
            origins=self.origins,
        )
        if not before and not new:
            raise RequestError("input is empty; it takes a text, or a list of items", param="input")
        if request.conversation_id and len(before) + len(new) > MAX_ITEMS - MAX_OUTPUT:
            raise RequestError(
                f"The conversation has {len(before)} items, and takes {MAX_ITEMS}; begin another",
                param="conversation",
            )
        check_calls(before + new)
        return before, new

    def _context_of(self, id: str) -> list[Json]:
        kept = self._local.get(id) if self._local else None
        kept = kept or self._memory.responses.get((self._tenant, id))
        if kept is None:
            raise RequestError(
                f"There is no response {id!r} here to continue: it was never stored, was deleted, "
                "or was dropped for newer ones; the store ends with the server",
                param="previous_response_id",
                code="previous_response_not_found",
            )
        return kept.context

    def _keeper(
        self, request: ResponsesRequest, before: list[Json], new: list[Json]
    ) -> Callable[[Json], None]:
        """Return a function that stores the complete response.

        The expensive part of the work is done in this call, which runs on a thread.
        """
        stored, conversation = request.store is not False, request.conversation_id
        local = None if stored else self._local
        known = encoded_items(before) if stored or local else ()
        input_items = encoded_items(new) if stored or local or conversation else ()

        def keep(response: Json) -> None:
            if conversation:
                said = input_items + encoded_items(response["output"])
                try:
                    self._memory.extend(self._tenant, conversation, said)
                # other requests have deleted or filled the conversation meanwhile
                except (ApiError, RequestError) as e:
                    _log.warning("%s was not kept: %s", response["id"], e)
            if stored:
                self._memory.keep(self._tenant, response, known + input_items)
            if local:
                local.keep(response["id"], KeptResponse(encoded(response), known + input_items))

        return keep


def _head(request: ResponsesRequest, about: Json) -> Json:
    """Return the fields of a response that are known before the output."""
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
        "frequency_penalty": about["frequency_penalty"],
        "incomplete_details": None,
        "instructions": request.instructions,
        "max_output_tokens": request.max_output_tokens,
        "max_tool_calls": None,
        "metadata": request.metadata or {},
        "model": request.model,
        "output": [],
        "parallel_tool_calls": request.parallel_tool_calls is not False,
        "presence_penalty": about["presence_penalty"],
        "previous_response_id": request.previous_response_id,
        "prompt_cache_key": request.prompt_cache_key,
        "reasoning": {"effort": effort, "summary": None},
        "safety_identifier": request.safety_identifier,
        "service_tier": "default",
        "store": request.store is not False,
        "temperature": about["temperature"],
        "text": {"format": _format(request)},
        "tool_choice": _choice(request),
        "tools": [tool.described() for tool in request.tools or ()],
        "top_logprobs": request.top_logprobs or 0,
        "top_p": about["top_p"],
        "truncation": request.truncation or "disabled",
        "usage": None,
        "user": request.user,
    }


def _format(request: ResponsesRequest) -> Json:
    """Return the format of the text; a schema is always enforced."""
    requested = (request.text and request.text.format) or {"type": "text"}
    if requested.get("type") != "json_schema":
        return requested
    return {"name": "answer", "description": None, **requested, "strict": True}


def _choice(request: ResponsesRequest) -> Any:
    choice = request.tool_choice
    if not isinstance(choice, ToolChoice):
        return choice or "auto"
    shown = choice.model_dump(exclude_unset=True)
    return {"mode": "auto", **shown} if choice.type == "allowed_tools" else shown
