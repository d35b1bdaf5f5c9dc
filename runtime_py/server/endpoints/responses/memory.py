"""Stores responses and conversations in memory, until the server ends."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import NoReturn

from ....errors import RequestError
from ...wire.errors import ApiError
from .items import Json, new_id
from .response_store import MAX_BYTES, MAX_ENTRIES, ResponseStore
from .shapes import MAX_ITEMS

_OVERHEAD = 512  # bytes of a stored entry besides its texts
Encoded = tuple[bytes, ...]  # JSON of each item of a conversation; stored responses may share it


def encoded_items(items: Iterable[Json]) -> Encoded:
    """Return items encoded for storage."""
    return tuple(encoded(item) for item in items)


def encoded(value: Json) -> bytes:
    """Return a JSON value encoded for storage."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode(errors="replace")


@dataclass(frozen=True, slots=True)
class KeptItem:
    """A stored output item of a response, as JSON."""

    text: bytes

    @property
    def size(self) -> int:
        """Return the bytes that the item takes."""
        return len(self.text) + _OVERHEAD


@dataclass(frozen=True, slots=True)
class KeptResponse:
    """A stored response as JSON, with all items that it continued."""

    text: bytes
    items: Encoded

    @property
    def size(self) -> int:
        """Return the bytes that the response takes, including shared items."""
        return len(self.text) + sum(map(len, self.items)) + _OVERHEAD

    @property
    def context(self) -> list[Json]:
        """Return the items that precede a response that continues this one."""
        items: list[Json] = [json.loads(item) for item in self.items]
        items += json.loads(self.text)["output"]
        return items


@dataclass(frozen=True, slots=True)
class KeptConversation:
    """A stored conversation: a list of items, to which each response adds its own."""

    metadata: Mapping[str, str]
    items: Encoded = ()
    id: str = field(default_factory=lambda: new_id("conv"))
    created_at: int = field(default_factory=lambda: int(time.time()))

    @property
    def size(self) -> int:
        """Return the bytes that the conversation takes."""
        # 20 entries more cover the metadata, of at most 16 * 576 bytes
        return sum(map(len, self.items)) + 20 * _OVERHEAD

    @property
    def context(self) -> list[Json]:
        """Return the items that precede the next response."""
        return [json.loads(item) for item in self.items]

    def described(self) -> Json:
        """Return the conversation in the shape of OpenAI's API."""
        head = {"id": self.id, "object": "conversation", "created_at": self.created_at}
        return {**head, "metadata": dict(self.metadata)}


class Memory:
    """The server's stores of responses, items and conversations.

    Args:
        entries: maximum number of responses, of items, and of conversations, each.
        size: maximum bytes of responses, of conversations, and of responses of connections, each;
            items have a quarter of it.
    """

    def __init__(self, entries: int = MAX_ENTRIES, size: int = MAX_BYTES) -> None:
        self.responses: ResponseStore[KeptResponse] = ResponseStore(entries, size)
        self.items: ResponseStore[KeptItem] = ResponseStore(4 * entries, size // 4)
        self.conversations: ResponseStore[KeptConversation] = ResponseStore(entries, size)
        # This store has an entry for each WebSocket connection.
        self.local: ResponseStore[KeptResponse] = ResponseStore(entries, size)

    def item(self, tenant: str, id: str) -> Json | None:
        """Return a stored item of a response; None if there is none."""
        kept = self.items.get((tenant, id))
        return json.loads(kept.text) if kept else None

    def response(self, tenant: str, id: str) -> KeptResponse:
        """Return a stored response.

        Raises:
            ApiError: 404: there is no such response.
        """
        return self.responses.get((tenant, id)) or _missing("response", id)

    def conversation(self, tenant: str, id: str) -> KeptConversation:
        """Return a stored conversation; errors as in `response`."""
        return self.conversations.get((tenant, id)) or _missing("conversation", id)

    def keep(self, tenant: str, response: Json, items: Encoded) -> None:
        """Store a response, and its items for references in later requests."""
        key = (tenant, response["id"])
        self.responses.put(key, KeptResponse(encoded(response), items))
        for item in response["output"]:
            self.items.put((tenant, item["id"]), KeptItem(encoded(item)))

    def forget(self, tenant: str, id: str) -> None:
        """Delete a response and its items.

        Raises:
            ApiError: 404: there is no such response.
        """
        kept = self.response(tenant, id)
        self.responses.pop((tenant, id))
        for item in json.loads(kept.text)["output"]:
            self.items.pop((tenant, item["id"]))

    def extend(self, tenant: str, id: str, items: Encoded) -> KeptConversation:
        """Append items to a conversation.

        Raises:
            ApiError: 404: there is no such conversation.
            RequestError: the conversation would be too long.
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
        f"There is no {what} {id[:100]!r} here: it was never stored, was deleted, or was dropped "
        "for newer ones; the store ends with the server",
        param=f"{what}_id",
        code=f"{what}_not_found",
    )
