"""What the server's engine answers to the table of requests, and when another answer is equal."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from wherry.artifact.manifest import MANIFEST, read_manifest, record
from wherry.errors import UsageError
from wherry.runtime import MLCEngine
from wherry.runtime.host.request import HostRequest, Task, checked
from wherry.runtime.host.sinks import BlockingSink

from .request_cases import TEMPLATE, TOOL_TEMPLATE, Request


def with_template(folder: Path, to: Path) -> Path:
    """Copy a compiled folder and replace its chat templates by the table's."""
    to.mkdir(parents=True)
    for path in folder.iterdir():
        if path.name != MANIFEST:
            (to / path.name).symlink_to(path)
    manifest = read_manifest(folder)
    files = dict(manifest.files)
    for name, text in (("", TEMPLATE), (".tool_use", TOOL_TEMPLATE)):
        path = to / f"chat_template{name}.jinja"
        path.write_text(text, encoding="utf-8")
        files[path.name] = record(path)
    (to / MANIFEST).write_text(replace(manifest, files=files).to_json(), encoding="utf-8")
    return to


def _numbers(engine: MLCEngine, task: Task, fields: Request) -> Any:
    """The answer to a request for a ranking, for scores or for classes."""
    checked(task, fields)
    sink, chunks = BlockingSink(), []
    running = engine.loaded.start(HostRequest(task, fields), sink)
    while not running.done:
        chunks += running.take(sink.take())
    return json.loads(chunks[-1])


def _answer(engine: MLCEngine, request: Request) -> Any:
    fields = {name: value for name, value in request.items() if name != "task"}
    task = request.get("task", "rerank" if "query" in request else "")
    if task in ("classify", "rerank", "score"):
        return _numbers(engine, task, fields)
    if "input" in request:
        return engine.embeddings.create(**fields).model_dump()
    endpoint = engine.chat.completions if "messages" in request else engine.completions
    return endpoint.create(**request).model_dump()


def fixed(answer: Any) -> str:
    """JSON without what differs from run to run; order of fields included."""
    answer = json.loads(json.dumps(answer))
    answer |= {"id": "", "created": 0}
    if answer.get("timings"):
        answer["timings"] = list(answer["timings"])
    # What either engine has cached depends on what was asked before.
    if "prompt_tokens_details" in (answer.get("usage") or {}):
        answer["usage"]["prompt_tokens_details"]["cached_tokens"] = 0
    return json.dumps(answer)


def answered(engine: MLCEngine, request: Request) -> str:
    """The engine's answer, fixed."""
    return fixed(_answer(engine, request))


def refused(engine: MLCEngine, request: Request) -> dict[str, Any]:
    """The object of the engine's error."""
    with pytest.raises(UsageError) as e:
        _answer(engine, request)
    error = e.value
    fields = {"message": str(error), "type": "invalid_request_error"}
    return {"error": {**fields, "param": error.param, "code": error.code}}


def meaning(answer: dict[str, Any]) -> tuple[Any, ...]:
    """What errors of one request have in common wherever it is sent: not their words.

    Code, field, and all the places that are named, in their order. Pydantic names a boolean that
    may be something else, too.
    """
    error = answer["error"]
    code, param = error.get("code"), error.get("param")  # a library may leave out what is null
    listed = re.findall(r"^  - (\S+): ", error["message"], re.MULTILINE) or [str(param)]
    places = list(dict.fromkeys(place.removesuffix(".bool") for place in listed))
    return error["type"], code, param, places


def streamed(request: Request) -> Request:
    """The same, in chunks, and what it took at the end."""
    return {**request, "stream": True, "stream_options": {"include_usage": True}}


def check_stream(chunks_seen: list[Any], engine: MLCEngine, request: Request) -> None:
    """The same shapes as the engine's, fields in one order, and joined the same text."""
    endpoint = engine.chat.completions if "messages" in request else engine.completions
    expected = [chunk.model_dump() for chunk in endpoint.create(**streamed(request))]
    assert fixed(chunks_seen[0]) == fixed(expected[0]) or "prompt" in request
    assert fixed(chunks_seen[-1]) == fixed(expected[-1])
    for chunks in (chunks_seen, expected):
        assert len({chunk["id"] for chunk in chunks}) == 1
    assert joined(chunks_seen) == joined(expected)
    assert [list(chunk) for chunk in chunks_seen[-2:]] == [list(chunk) for chunk in expected[-2:]]


def joined(chunks: list[Any]) -> tuple[str, str | None]:
    """The text of a stream, and why it ended."""
    choices = [chunk["choices"][0] for chunk in chunks if chunk["choices"]]
    texts = [c["text"] if "text" in c else c["delta"].get("content") or "" for c in choices]
    return "".join(texts), choices[-1]["finish_reason"]
