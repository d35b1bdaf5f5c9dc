"""POST /v1/responses/compact: replaces a conversation by a summary that the model writes."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from ....answers import Timings, Usage
from ....caller import Caller
from ....errors import RequestError
from ....host.request import HostRequest
from ....host.running import Running
from ....load.model import LoadedModel
from ..parts import IN_PARTS, Delta, Translated
from ..shapes.requests import not_known, validated
from .items import CALLS, OUTPUTS, Json, kept_items, new_id
from .reply import usage_of
from .shapes import CompactRequest, CountRequest, ResponsesRequest
from .summary import sealed
from .translate import chat_fields
from .turn import Turn

MAX_SUMMARY = 2048  # maximum tokens of a summary, for a conversation of any length
_ASK = (
    "Summarize our conversation so far, so that it can go on from your summary alone. Keep the "
    "user's goals and wishes, facts, names, numbers and file paths, decisions with their reasons, "
    "what the tools have found, and what is still to be done. Write the summary and nothing else."
)


def parse_compact(fields: Any) -> CompactRequest:
    """Parse the body of /v1/responses/compact.

    Raises:
        RequestError: a field is missing or out of range.
    """
    request = validated(CompactRequest, fields)
    if request.stream:
        raise RequestError(
            "A compaction is not streamed; send the request without stream",
            param="stream",
            code="unsupported_parameter",
        )
    return request


def ignored_fields(request: CompactRequest, _: Sequence[str]) -> list[str]:
    """Return the names of fields without effect."""
    return not_known(request)


class Compaction:
    """Plans and answers one request for a compaction.

    Args:
        turn: the turn that resolves the request's items.
    """

    def __init__(self, turn: Turn) -> None:
        self._turn = turn

    def plan(
        self, loaded: LoadedModel, request: CompactRequest, caller: Caller
    ) -> tuple[HostRequest, Translated]:
        """Return the request of the summary, and the writer of the response."""
        count_request = CountRequest.model_construct(
            input=request.input or [], previous_response_id=request.previous_response_id
        )
        before, new = self._turn.items(count_request, [])
        head, past, calls = _parts(before + new)
        if not past:
            raise RequestError("input has nothing in it that could be shortened", param="input")
        fields = {
            "model": request.model,
            "instructions": request.instructions,
            "reasoning": {"effort": "none"},  # only the summary is needed, no reasoning
            "temperature": 0,  # greedy, so that equal conversations get equal summaries
        }
        summary_request = validated(ResponsesRequest, fields)
        items = head + past + kept_items(_ASK, lambda _: None)
        chat = chat_fields(summary_request, items, self._turn.origins)
        options = {**IN_PARTS, "max_tokens": MAX_SUMMARY}
        return HostRequest("chat", chat, options), Translated(CompactReply(head, calls))


class CompactReply:
    """Writes the response of a compaction, which is never streamed.

    Args:
        head: items that stay, before the summary.
        calls: items that stay, after the summary.
    """

    def __init__(self, head: list[Json], calls: list[Json]) -> None:
        self._head = head
        self._calls = calls

    def opening(self, usage: Usage, running: Running) -> list[Json]:
        """Return no chunks, because the response is not streamed; implements `Reply.opening`."""
        return []

    def chunks(self, delta: Delta) -> list[Json]:
        """Return no chunks, because the response is not streamed; implements `Reply.chunks`."""
        return []

    def closing(self, usage: Usage, timings: Timings) -> list[Json]:
        """Return no chunks, because the response is not streamed; implements `Reply.closing`."""
        return []

    def full_response(self, delta: Delta, usage: Usage, timings: Timings) -> Json:
        """Return the response with the summary; implements `Reply.full_response`.

        Raises:
            RequestError: the summary is empty.
        """
        summary = delta.text.strip()
        if not summary:
            raise RequestError(
                "The model wrote no summary of this conversation; try another model, or start "
                "again with the part of it that matters",
                code="compaction_failed",
            )
        item = {"id": new_id("cmp"), "type": "compaction", "encrypted_content": sealed(summary)}
        return {
            "id": new_id("resp"),
            "object": "response.compaction",
            "created_at": int(time.time()),
            "output": [*self._head, item, *self._calls],
            "usage": usage_of(usage),
        }


def _parts(items: list[Json]) -> tuple[list[Json], list[Json], list[Json]]:
    """Return the items in three parts: instructions; items to summarize; calls without results."""
    answered = {i["call_id"] for i in items if i["type"] in OUTPUTS}
    head: list[Json] = []
    past: list[Json] = []
    calls: list[Json] = []
    for item in items:
        if item.get("role") in ("system", "developer"):
            head.append(item)
        elif item["type"] in CALLS and item["call_id"] not in answered:
            calls.append(item)
        else:
            past.append(item)
    return head, past, calls
