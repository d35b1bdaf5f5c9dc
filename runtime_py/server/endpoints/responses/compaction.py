"""POST /v1/responses/compact: a conversation becomes a summary, which the model writes."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ....answer.delta import Delta
from ....answer.generation import Generation
from ....load.model import LoadedModel
from ....request.caller import Caller
from ....request.errors import RequestError
from ....request.plan import Plan
from ....request.shapes import not_known, validated
from ...wire.framing import Plain
from .items import Json, kept_items, new_id
from .reply import usage_of
from .shapes import CompactRequest, CountRequest, ResponsesRequest
from .summary import sealed
from .translate import chat_request
from .turn import Turn

MAX_SUMMARY = 2048  # tokens: a conversation of any length comes to that many at most
_ASK = (
    "Summarize our conversation so far, so that it can go on from your summary alone. Keep the "
    "user's goals and wishes, facts, names, numbers and file paths, decisions with their reasons, "
    "what the tools have found, and what is still to be done. Write the summary and nothing else."
)


def parse_compact(fields: Any) -> CompactRequest:
    """The body of /v1/responses/compact.

    Raises:
        RequestError: a field is missing or out of range.
    """
    request = validated(CompactRequest, fields)
    if request.stream:
        raise RequestError(
            "A compaction is answered whole; ask without stream",
            param="stream",
            code="unsupported_parameter",
        )
    return request


def ignored_fields(request: CompactRequest) -> list[str]:
    """Names of what was sent and has no effect."""
    return not_known(request)


class Compaction:
    """One request.

    Args:
        turn: finds the items.
    """

    def __init__(self, turn: Turn) -> None:
        self._turn = turn

    def plan(
        self, loaded: LoadedModel, request: CompactRequest, caller: Caller
    ) -> tuple[Plan, CompactReply]:
        """What the model is asked, and the shape of the answer."""
        asked = CountRequest.model_construct(
            input=request.input or [], previous_response_id=request.previous_response_id
        )
        before, new = self._turn.items(asked)
        head, past, calls = _parts(before + new)
        if not past:
            raise RequestError("input has nothing in it that could be shortened", param="input")
        fields = {
            "model": request.model,
            "instructions": request.instructions,
            "reasoning": {"effort": "none"},  # the summary is all that is wanted
            "temperature": 0,  # of one conversation there is one summary
        }
        wanted = validated(ResponsesRequest, fields)
        chat = chat_request(wanted, head + past + kept_items(_ASK, lambda _: None))
        plan, _ = loaded.chat(chat, caller)
        return _bounded(plan, loaded.planner.context), CompactReply(head, calls)


class CompactReply:
    """The answer, which is never streamed.

    Args:
        head: items that stay as they are, before the summary.
        calls: and after it.
    """

    def __init__(self, head: list[Json], calls: list[Json]) -> None:
        self._head = head
        self._calls = calls

    def opening(self, generation: Generation) -> list[Plain]:
        """See Reply."""
        return []

    def chunks(self, delta: Delta) -> list[Plain]:
        """See Reply."""
        return []

    def closing(self, generation: Generation) -> list[Plain]:
        """See Reply."""
        return []

    def whole(self, choices: Sequence[Delta], generation: Generation) -> Plain:
        """See Reply.

        Raises:
            RequestError: the model wrote nothing.
        """
        summary = choices[0].text.strip()
        if not summary:
            raise RequestError(
                "The model wrote no summary of this conversation; ask another model, or begin "
                "anew with the part of it that matters",
                code="compaction_failed",
            )
        item = {"id": new_id("cmp"), "type": "compaction", "encrypted_content": sealed(summary)}
        return Plain(
            {
                "id": new_id("resp"),
                "object": "response.compaction",
                "created_at": int(time.time()),
                "output": [*self._head, item, *self._calls],
                "usage": usage_of(generation.usage),
            }
        )


def _parts(items: list[Json]) -> tuple[list[Json], list[Json], list[Json]]:
    """Instructions; what a summary can stand for; calls whose results are still to come."""
    answered = {i["call_id"] for i in items if i["type"] == "function_call_output"}
    head: list[Json] = []
    past: list[Json] = []
    calls: list[Json] = []
    for item in items:
        if item.get("role") in ("system", "developer"):
            head.append(item)
        elif item["type"] == "function_call" and item["call_id"] not in answered:
            calls.append(item)
        else:
            past.append(item)
    return head, past, calls


def _bounded(plan: Plan, context: int) -> Plan:
    """The plan of a summary, which ends before the context does."""
    (job,) = plan.jobs
    most = min(MAX_SUMMARY, context - len(job.prompt))
    return replace(plan, jobs=[replace(job, params=replace(job.params, max_tokens=most))])
