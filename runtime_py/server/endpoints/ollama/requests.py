"""Parses requests in Ollama's shapes, and translates them to Wherry's requests."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from ....errors import RequestError
from ....host.request import Task, checked
from ...catalog.quantities import seconds_of
from ..shapes.contents import ChatPart, base64_part, text_part
from ..shapes.counts import at_most
from ..shapes.kinds import MAX_MESSAGES
from . import options as ollama_options
from .parsing import validated

MAX_OPTIONS = 256
MAX_IMAGES = 256  # in a message; C++ has a limit for the request
_EFFORTS = ("low", "medium", "high")
# files in base64; their bytes tell their formats
Images = Annotated[list[str] | None, at_most(MAX_IMAGES, "images")]
KeepAlive = Annotated[float | None, BeforeValidator(lambda v: None if v is None else seconds_of(v))]


class _Shape(BaseModel):
    model_config = ConfigDict(extra="allow", allow_inf_nan=True, protected_namespaces=())


class ShowRequest(_Shape):
    """The body of POST /api/show: the name of a model, which older clients send as `name`."""

    model: str = Field("", max_length=1024)
    name: str | None = Field(None, max_length=1024)

    @property
    def requested(self) -> str:
        """Return the name of the model that the request asks for."""
        return self.model or self.name or ""


class AnswerFields(ShowRequest):
    """Fields that the requests of /api/chat and /api/generate share."""

    stream: bool | None = None
    format: str | dict[str, Any] | None = None
    options: Annotated[dict[str, Any] | None, at_most(MAX_OPTIONS, "options")] = None
    keep_alive: KeepAlive = None
    think: bool | Literal["low", "medium", "high"] | None = None
    logprobs: bool | None = None
    top_logprobs: int | None = None
    template: str | None = None
    # whether the oldest turns of too long a conversation are dropped; null: they are
    truncate: bool | None = None


class Called(_Shape):
    """The function of a tool call; its arguments are a JSON object."""

    name: str = ""
    arguments: dict[str, Any] = Field(default_factory=dict)


class Call(_Shape):
    """A tool call in an assistant's message."""

    id: str | None = None
    function: Called


class Message(_Shape):
    """One message of the conversation."""

    role: str
    content: str | None = ""
    thinking: str | None = None
    images: Images = None
    tool_calls: Annotated[list[Call] | None, at_most(512, "calls")] = None
    tool_name: str | None = None
    tool_call_id: str | None = None


class OllamaChatRequest(AnswerFields):
    """The body of POST /api/chat."""

    messages: Annotated[list[Message] | None, at_most(MAX_MESSAGES, "messages")] = None
    tools: list[dict[str, Any]] | None = None


class OllamaGenerateRequest(AnswerFields):
    """The body of POST /api/generate."""

    prompt: str | None = None
    suffix: str | None = None
    system: str | None = None
    raw: bool | None = None
    images: Images = None
    context: list[int] | None = None


Fields = TypeVar("Fields", bound=AnswerFields)


@dataclass(slots=True)
class OllamaRequest:
    """A parsed request for generated text, as the pipeline expects it (`pipeline.AnswerRequest`).

    Attributes:
        model: the requested name; the pipeline replaces it by the model's own.
        name: the client's name of the model.
        chat: fields of the request for a model with a chat template; None: a raw prompt.
        completion: fields of the request for a model without one; None: such a model cannot serve
            the request.
        context: maximum tokens of prompt and output together; None: the model's context.
        most: maximum tokens of output; None: until the context is full.
        ignored: names of fields without effect.
        model_context: tokens of the model's context, once it is known.
    """

    fields: AnswerFields
    model: str
    name: str
    stream: bool | None
    chat: dict[str, Any] | None
    completion: dict[str, Any] | None
    context: int | None
    most: int | None
    ignored: list[str]
    started: float = field(default_factory=time.perf_counter)
    model_context: int | None = None


def chat(body: Any) -> OllamaRequest:
    """Return the request in a body of /api/chat.

    Raises:
        RequestError: lists everything that is wrong.
    """
    fields = validated(OllamaChatRequest, body)
    _refuse(fields)
    request = _checked(
        "chat",
        _shared(fields)
        | {
            "messages": _messages(fields.messages or []),
            "tools": fields.tools or None,
            "truncation": "disabled" if fields.truncate is False else "auto",
            **_continuing(fields.messages or []),
            **_thinking(fields),
            **_logprobs(fields),
        },
    )
    return _request_of(fields, request, None)


def generate(body: Any) -> OllamaRequest:
    """Return the request in a body of /api/generate.

    It is one turn of a chat, unless it is raw or has a suffix.

    Raises:
        RequestError: lists everything that is wrong.
    """
    fields = validated(OllamaGenerateRequest, body)
    _refuse(fields)
    if fields.context:
        raise RequestError(
            "context is not supported: send the conversation's messages to /api/chat",
            param="context",
            code="unsupported_parameter",
        )
    prompt = {"prompt": fields.prompt or "", "suffix": fields.suffix or None}
    logprobs = {"logprobs": fields.top_logprobs or 0} if fields.logprobs else {}
    if fields.raw or fields.suffix:
        if fields.images:
            raise RequestError(
                "images are not supported with raw or suffix: only a chat template has places for "
                "them",
                param="images",
                code="unsupported_parameter",
            )
        return _request_of(
            fields, None, _checked("completion", _shared(fields) | prompt | logprobs)
        )
    content = _content(fields.images, fields.prompt or "", "images")
    messages: list[dict[str, Any]] = [{"role": "user", "content": content}]
    if fields.system:
        messages.insert(0, {"role": "system", "content": fields.system})
    turn = {"messages": messages, **_thinking(fields), **_logprobs(fields)}
    request = _checked("chat", _shared(fields) | turn)
    if fields.system or fields.images:
        return _request_of(fields, request, None)
    # Models without a chat template complete the text of the prompt.
    return _request_of(fields, request, _checked("completion", _shared(fields) | prompt | logprobs))


def asks_nothing(fields: AnswerFields) -> bool:
    """Tell whether the request only loads or unloads a model."""
    if isinstance(fields, OllamaChatRequest):
        return not fields.messages
    return isinstance(fields, OllamaGenerateRequest) and not (
        fields.prompt or fields.suffix or fields.images
    )


def _checked(task: Task, fields: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a request that C++ has validated."""
    given = {name: value for name, value in fields.items() if value is not None}
    checked(task, given)
    return given


def _request_of(
    fields: AnswerFields, chat: dict[str, Any] | None, completion: dict[str, Any] | None
) -> OllamaRequest:
    name, most = fields.requested, None
    for request in (chat, completion):
        if request:
            # Ollama's limit may exceed the context, which would be an error in OpenAI's API.
            most = request.pop("max_tokens", None)
            request["stream"] = fields.stream is not False
    return OllamaRequest(
        fields=fields,
        model=name,
        name=name,
        stream=fields.stream is not False,
        chat=chat,
        completion=completion,
        context=ollama_options.context_of(fields.options or {}),
        most=most,
        ignored=sorted(
            [n for n, v in (fields.model_extra or {}).items() if v is not None]
            # a prompt has no turns that could be dropped
            + ["truncate"] * (fields.truncate is True and not isinstance(fields, OllamaChatRequest))
        ),
    )


def _shared(fields: AnswerFields) -> dict[str, Any]:
    """Return the options and the output's constraint as fields of Wherry's requests."""
    constraint: dict[str, Any] = {}
    if isinstance(fields.format, dict):
        constraint = {
            "type": "json_schema",
            "json_schema": {"name": "format", "schema": fields.format},
        }
    elif fields.format == "json":
        constraint = {"type": "json_object"}
    elif fields.format:
        raise RequestError(
            f'format is {fields.format[:100]!r}; it takes "json" or a JSON Schema', param="format"
        )
    return {
        "model": fields.requested,
        "response_format": constraint or None,
        **ollama_options.translated(fields.options or {}),
    }


def _thinking(fields: AnswerFields) -> dict[str, Any]:
    if fields.think is None:
        return {}
    if fields.think in _EFFORTS:
        return {"enable_thinking": True, "reasoning_effort": fields.think}
    return {"enable_thinking": fields.think}


def _continuing(messages: list[Message]) -> dict[str, Any]:
    """Return fields that let the model continue a last message of the assistant, as in Ollama."""
    if not messages or messages[-1].role != "assistant" or messages[-1].tool_calls:
        return {}
    return {"continue_final_message": True, "add_generation_prompt": False}


def _logprobs(fields: AnswerFields) -> dict[str, Any]:
    if not fields.logprobs:
        return {}
    return {"logprobs": True, "top_logprobs": fields.top_logprobs}


def _messages(messages: list[Message]) -> list[dict[str, Any]]:
    """Return OpenAI's messages.

    Ollama's calls have no ids, so results follow their calls in order.
    """
    translated: list[dict[str, Any]] = []
    open_ids: list[str] = []
    count = 0
    for i, message in enumerate(messages):
        fields: dict[str, Any] = {
            **(message.model_extra or {}),
            "role": message.role,
            "content": _content(message.images, message.content, f"messages[{i}].images"),
            "reasoning_content": message.thinking,
        }
        if message.tool_calls:
            calls, open_ids = [], []
            for call in message.tool_calls:
                # The id has 9 characters, as Mistral's templates require.
                identifier = call.id or f"call{count:05d}"
                open_ids.append(identifier)
                count += 1
                function = {"name": call.function.name, "arguments": call.function.arguments}
                calls.append({"id": identifier, "type": "function", "function": function})
            fields["tool_calls"] = calls
        if message.role == "tool":
            fields["name"] = message.tool_name
            fields["tool_call_id"] = message.tool_call_id or (open_ids.pop(0) if open_ids else None)
        translated.append({n: v for n, v in fields.items() if v is not None})
    return translated


def _content(images: list[str] | None, text: str | None, where: str) -> str | list[ChatPart] | None:
    """Return a content with its images before the text, as Ollama's templates have them."""
    if not images:
        return text
    parts = [base64_part(image, f"{where}[{i}]") for i, image in enumerate(images)]
    return [*parts, text_part(text)] if text else parts


def _refuse(fields: AnswerFields) -> None:
    """Raise an error for fields that would change the response if they were ignored."""
    if fields.template:
        raise RequestError(
            "template is not supported: the model's own is used. With raw: true the prompt is "
            "taken as it is.",
            param="template",
            code="unsupported_parameter",
        )


Parse = Callable[[Any], OllamaRequest]
