"""The table of request cases that Kotlin and Swift answer as Python's engine does."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import wherry
from wherry.runtime import MLCEngine

from ..app.answers import (
    answered,
    check_stream,
    fixed,
    meaning,
    refused,
    streamed,
    with_template,
)
from ..app.request_cases import (
    ANSWERS,
    ERRORS,
    STREAMS,
    TEMPLATE_ANSWERS,
    TEMPLATE_ERRORS,
    VECTOR_ERRORS,
    VECTORS,
    Request,
    typed,
)
from ..app.tool_answers import calls_in, joined_stream, without_ids
from ..app.tool_cases import CHATS
from ..app.tool_models import folders
from ..app.vector_models import MODELS as VECTOR_MODELS
from ..app.vector_models import shared

Answers = list[list[Any]]  # for each request all objects that it was answered with


class RequestTable:
    """Requests to the demo model, to its copy with another template, and to tool models."""

    def __init__(self, demo: Path, folder: Path) -> None:
        self.demo = demo
        self.templated = with_template(demo, folder / "templated")
        self.tools = folders(CHATS, folder)
        self.vectors = {name: shared(name) for name in VECTOR_MODELS}

    @property
    def groups(self) -> list[dict[str, Any]]:
        """The table as the libraries read it: requests of one model after the other."""
        rows: list[tuple[Path, dict[str, Any], list[Request]]] = [
            (self.demo, {}, [*ANSWERS, *ERRORS, *map(streamed, STREAMS)]),
            (self.templated, {}, [*TEMPLATE_ERRORS, *TEMPLATE_ANSWERS]),
            *((f, {}, _numbers(name)) for name, f in self.vectors.items()),
            *((t.folder, t.options, [*_complete_and_streamed(t.cases)]) for t in self.tools),
        ]
        return [{"folder": str(f), "options": o, "requests": r} for f, o, r in rows]

    def check_demo(self, groups_of_answers: Answers, engine: MLCEngine) -> None:
        """Compare the first group, whole answers, errors and streams, with Python's."""
        complete, pieces = groups_of_answers[: -len(STREAMS)], groups_of_answers[-len(STREAMS) :]
        for request, answers in zip([*ANSWERS, *ERRORS], complete, strict=True):
            self._check_complete(answers, engine, request)
        for request, chunks in zip(STREAMS, pieces, strict=True):
            check_stream(chunks, engine, request)

    def check_templates(self, answers_given: Answers) -> None:
        """Compare the second group with Python's answers by the same template."""
        with wherry.MLCEngine(self.templated, threads=1) as engine:
            rows = [*TEMPLATE_ERRORS, *TEMPLATE_ANSWERS]
            for request, answers in zip(rows, answers_given, strict=True):
                self._check_complete(answers, engine, request)

    def check_vectors(self, groups: list[Answers]) -> list[Answers]:
        """Compare the groups of models whose answers are numbers; return those after them."""
        for (name, folder), group in zip(self.vectors.items(), groups, strict=False):
            with wherry.MLCEngine(folder, threads=1) as engine:
                for request, answers in zip(_numbers(name), group, strict=True):
                    self._check_complete(answers, engine, request)
        return groups[len(self.vectors) :]

    def check_tools(self, groups: list[Answers]) -> None:
        """Compare the other groups: models that write what the rows say, in the same folders."""
        called = 0
        for model, group in zip(self.tools, groups, strict=True):
            with wherry.MLCEngine(model.folder, threads=1, **model.options) as engine:
                answers = iter(group)
                for case in model.cases:
                    called += _check_calls(engine, case, answers)
        assert called > 20

    def _check_complete(self, answers: list[Any], engine: MLCEngine, request: Request) -> None:
        (answer,) = answers
        if "error" in answer:
            assert meaning(answer) == meaning(refused(engine, request))
            return
        assert fixed(answer) == answered(engine, request)


def _numbers(name: str) -> list[Request]:
    """The requests to a model whose answers are numbers."""
    return typed([*VECTORS[name], *VECTOR_ERRORS[name]])


def _complete_and_streamed(cases: list[dict[str, Any]]) -> Iterator[Request]:
    """Yield each row's request, whole and as a stream, which has one choice."""
    for case in cases:
        yield case["request"]
        if case["request"].get("n", 1) == 1:
            yield streamed(case["request"])


def _check_calls(engine: MLCEngine, case: dict[str, Any], answers: Iterator[list[Any]]) -> int:
    """Compare a row, whole and as a stream; return the number of calls in the whole one."""
    request = case["request"]
    expected = engine.chat.completions.create(**request).model_dump()
    (complete,) = next(answers)
    assert without_ids(complete, case["said"]) == without_ids(expected, case["said"])
    if request.get("n", 1) == 1:
        pieces = next(answers)
        chunks = [c.model_dump() for c in engine.chat.completions.create(**streamed(request))]
        assert joined_stream(pieces) == joined_stream(chunks)
        assert calls_in(pieces) == calls_in(chunks)
        assert pieces[-1]["usage"] == chunks[-1]["usage"]
    return sum(len(c["message"].get("tool_calls", ())) for c in complete["choices"])
