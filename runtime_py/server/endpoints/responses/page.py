"""Divides a list of items into pages, in the form of OpenAI's API."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Literal

from pydantic import BaseModel, Field
from starlette.requests import Request
from starlette.responses import Response

from ....errors import RequestError
from ...wire.json_body import encoded as encoded_json
from ..described import FLAG, list_of, object_of, one_of
from ..shapes.requests import validated
from .items import Json

_END = {"type": ["string", "null"]}
LISTING = object_of(
    object=one_of("list"),
    data=list_of({"type": "object"}),
    first_id=_END,
    last_id=_END,
    has_more=FLAG,
)


class _Query(BaseModel):
    after: str | None = None
    limit: int = Field(20, ge=1, le=100)
    order: Literal["asc", "desc"] = "desc"


def page(http: Request, items: Sequence[bytes]) -> Response:
    """Return the page of items that a request asks for.

    Args:
        http: the request, with the query `after`, the id of the last known item; `limit`; `order`.
        items: all items, each encoded as JSON.

    Raises:
        RequestError: no item has the id `after`, or the query is wrong.
    """
    query = validated(_Query, dict(http.query_params))
    listed: list[Json] = [json.loads(item) for item in items]
    if query.order == "desc":
        listed.reverse()
    if query.after is not None:
        at = next((i for i, item in enumerate(listed) if item["id"] == query.after), None)
        if at is None:
            raise RequestError(
                f"after is {query.after[:100]!r}, which is no item of this list", param="after"
            )
        listed = listed[at + 1 :]
    shown = listing(listed[: query.limit], more=len(listed) > query.limit)
    return Response(encoded_json(shown), media_type="application/json")


def listing(items: Sequence[Json], *, more: bool = False) -> Json:
    """Return a list of items in the shape of OpenAI's API."""
    first, last = (items[0]["id"], items[-1]["id"]) if items else (None, None)
    head = {"object": "list", "data": list(items), "first_id": first, "last_id": last}
    return {**head, "has_more": more}
