"""Responses and conversations that are kept; the server's memory of them ends with it."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import NoReturn

from ....request.errors import RequestError
from ...wire.errors import ApiError
from .items import Json, new_id
from .shapes import MAX_ITEMS
from .shelf import MAX_BYTES, MAX_ENTRIES, Shelf

_OVERHEAD = 512  # bytes of an entry beside its texts
Encoded = tuple[bytes, ...]  # items, each as JSON; entries share them


def encoded_items(items: Iterable[Json]) -> Encoded:
    """Items as they are kept."""
    return tuple(encoded(item) for item in items)


def encoded(value: Json) -> bytes:
    """JSON as it is kept."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode(errors="replace")


@dataclass(frozen=True, slots=True)
class KeptItem:
    """An item of an answer, as JSON."""

    text: bytes

    @property
    def size(self) -> int:
        """Bytes."""
        return len(self.text) + _OVERHEAD


@dataclass(frozen=True, slots=True)
class KeptResponse:
    """A response, as JSON, and all items that it answered."""

    text: bytes
    items: Encoded

    @property
    def size(self) -> int:
        """Bytes, those that it shares included."""
        return len(self.text) + sum(map(len, self.items)) + _OVERHEAD

    @property
    def context(self) -> list[Json]:
        """The items that an answer to this response continues."""
        items: list[Json] = [json.loads(item) for item in self.items]
        items += json.loads(self.text)["output"]
        return items


@dataclass(frozen=True, slots=True)
class KeptConversation:
    """Items that grow with each response."""

    metadata: Mapping[str, str]
    items: Encoded = ()
    id: str = field(default_factory=lambda: new_id("conv"))
    created_at: int = field(default_factory=lambda: int(time.time()))

    @property
    def size(self) -> int:
        """Bytes."""
        return sum(map(len, self.items)) + 20 * _OVERHEAD  # metadata have 16 * 576 at most

    @property
    def context(self) -> list[Json]:
        """The items that the next answer continues."""
        return [json.loads(item) for item in self.items]

    def described(self) -> Json:
        """The conversation in OpenAI's shape."""
        head = {"id": self.id, "object": "conversation", "created_at": self.created_at}
        return {**head, "metadata": dict(self.metadata)}


class Memory:
    """All that is kept.

    Args:
        entries: responses, items and conversations that there may be, each.
        size: bytes of the responses, of the conversations, and of what connections keep, each;
            items take a quarter of it.
    """

    def __init__(self, entries: int = MAX_ENTRIES, size: int = MAX_BYTES) -> None:
        self.responses: Shelf[KeptResponse] = Shelf(entries, size)
        self.items: Shelf[KeptItem] = Shelf(4 * entries, size // 4)
        self.conversations: Shelf[KeptConversation] = Shelf(entries, size)
        self.local: Shelf[KeptResponse] = Shelf(entries, size)  # one a WebSocket connection

    def item(self, tenant: str, id: str) -> Json | None:
        """An item of an answer."""
        kept = self.items.get((tenant, id))
        return json.loads(kept.text) if kept else None

    def response(self, tenant: str, id: str) -> KeptResponse:
        """A response.

        Raises:
            ApiError: 404, there is none.
        """
        return self.responses.get((tenant, id)) or _missing("response", id)

    def conversation(self, tenant: str, id: str) -> KeptConversation:
        """A conversation; raises as `response`."""
        return self.conversations.get((tenant, id)) or _missing("conversation", id)

    def keep(self, tenant: str, response: Json, items: Encoded) -> None:
        """Keep a response, and its output for those who name items of it."""
        key = (tenant, response["id"])
        self.responses.put(key, KeptResponse(encoded(response), items))
        for item in response["output"]:
            self.items.put((tenant, item["id"]), KeptItem(encoded(item)))

    def forget(self, tenant: str, id: str) -> None:
        """Forget a response, and its output.

        Raises:
            ApiError: 404, there is none.
        """
        kept = self.response(tenant, id)
        self.responses.pop((tenant, id))
        for item in json.loads(kept.text)["output"]:
            self.items.pop((tenant, item["id"]))

    def extend(self, tenant: str, id: str, items: Encoded) -> KeptConversation:
        """Put items at the end of a conversation.

        Raises:
            ApiError: 404, it is not there.
            RequestError: it would be too long.
        """

        def longer(kept: KeptConversation) -> KeptConversation:
            if len(kept.items) + len(items) > MAX_ITEMS:
                raise ValueError(f"more than {MAX_ITEMS} items")
            return replace(kept, items=kept.items + items)

        try:
            return self.conversations.change((tenant, id), longer) or _missing("conversation", id)
        except ValueError as e:
            raise RequestError(f"The conversation is full: {e}", param="conversation") from e


def _missing(what: str, id: str) -> NoReturn:
    raise ApiError(
        404,
        f"There is no {what} {id[:100]!r} here: it was never kept, was deleted, or made room for "
        "others; and what is kept ends with the server",
        param=f"{what}_id",
        code=f"{what}_not_found",
    )
