"""The paths of conversations: stored items, to which each response adds its own."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from ....errors import RequestError
from ...pipeline import body_of
from ...wire.errors import ApiError
from ...wire.json_body import encoded as encoded_json
from ...wire.json_body import parse_json
from ..described import COUNT, FLAG, TEXT, described, object_of, one_of
from ..routes import Routes
from ..shapes.requests import validated
from .items import Json, kept_items
from .memory import KeptConversation, Memory, encoded_items
from .page import LISTING, listing, page
from .shapes import ConversationRequest, ItemsRequest
from .tenant import tenant

PREFIX = "/v1/conversations"
CONVERSATION = object_of(
    id=TEXT, object=one_of("conversation"), created_at=COUNT, metadata={"type": "object"}
)
B = TypeVar("B", bound=BaseModel)


class Conversations:
    """Handlers of conversations; they parse bodies and long JSON on threads.

    Args:
        memory: the store of conversations.
    """

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    def routes(self) -> Routes:
        """Return the handler of each method and path."""
        one = f"{PREFIX}/{{id}}"
        return {
            ("POST", PREFIX): self.create,
            ("GET", one): self.retrieve,
            ("POST", one): self.update,
            ("DELETE", one): self.delete,
            ("GET", f"{one}/items"): self.items,
            ("POST", f"{one}/items"): self.add_items,
            ("GET", f"{one}/items/{{item}}"): self.item,
            ("DELETE", f"{one}/items/{{item}}"): self.delete_item,
        }

    @described(request=ConversationRequest, answer=CONVERSATION)
    async def create(self, http: Request) -> Response:
        """Creates a conversation, perhaps with its first items."""
        whose = tenant()

        def answer(request: ConversationRequest) -> Json:
            items = encoded_items(kept_items(request.items or [], self._find(whose), "items"))
            new = KeptConversation(request.metadata or {}, items)
            if not self._memory.conversations.put((whose, new.id), new):
                raise RequestError(f"items have {new.size} bytes, which is too much", param="items")
            return new.described()

        return await _answered(http, ConversationRequest, answer)

    @described(answer=CONVERSATION)
    def retrieve(self, id: str) -> Response:
        """Describes a conversation: its id and its metadata."""
        kept = self._memory.conversation(tenant(), id)
        return JSONResponse(kept.described())

    @described(request=ConversationRequest, answer=CONVERSATION)
    async def update(self, http: Request, id: str) -> Response:
        """Changes the metadata of a conversation."""
        key = (tenant(), id)

        def answer(request: ConversationRequest) -> Json:
            self._memory.conversation(*key)
            metadata = request.metadata or {}
            changed = self._memory.conversations.change(
                key, lambda kept: replace(kept, metadata=metadata)
            )
            return (changed or self._memory.conversation(*key)).described()

        return await _answered(http, ConversationRequest, answer)

    @described(answer=object_of(id=TEXT, object=one_of("conversation.deleted"), deleted=FLAG))
    def delete(self, id: str) -> Response:
        """Deletes a conversation and its items."""
        key = (tenant(), id)
        self._memory.conversation(*key)
        self._memory.conversations.pop(key)
        return JSONResponse({"id": id, "object": "conversation.deleted", "deleted": True})

    @described(answer=LISTING)
    def items(self, http: Request, id: str) -> Response:
        """Lists the items of a conversation."""
        return page(http, self._memory.conversation(tenant(), id).items)

    @described(request=ItemsRequest, answer=LISTING)
    async def add_items(self, http: Request, id: str) -> Response:
        """Appends items to a conversation."""
        whose = tenant()

        def answer(request: ItemsRequest) -> Json:
            items = kept_items(request.items, self._find(whose), "items")
            self._memory.extend(whose, id, encoded_items(items))
            return listing(items)

        return await _answered(http, ItemsRequest, answer)

    @described(answer=object_of(id=TEXT, type=TEXT))
    def item(self, id: str, item: str) -> Response:
        """Returns one item of a conversation."""
        kept = self._memory.conversation(tenant(), id)
        return Response(kept.items[_index(kept, item)], media_type="application/json")

    @described(answer=CONVERSATION)
    def delete_item(self, id: str, item: str) -> Response:
        """Deletes one item of a conversation."""

        def without(kept: KeptConversation) -> KeptConversation:
            at = _index(kept, item)
            return replace(kept, items=kept.items[:at] + kept.items[at + 1 :])

        key = (tenant(), id)
        changed = self._memory.conversations.change(key, without)
        return JSONResponse((changed or self._memory.conversation(*key)).described())

    def _find(self, whose: str) -> Callable[[str], Json | None]:
        return lambda id: self._memory.item(whose, id)


async def _answered(http: Request, kind: type[B], make: Callable[[B], Json]) -> Response:
    body = await body_of(http)
    content = await asyncio.to_thread(
        lambda: encoded_json(make(validated(kind, parse_json(body or b"{}"))))
    )
    return Response(content, media_type="application/json")


def _index(kept: KeptConversation, id: str) -> int:
    for i, item in enumerate(kept.items):
        if json.loads(item)["id"] == id:
            return i
    raise ApiError(
        404, f"The conversation has no item {id[:100]!r}", param="item_id", code="item_not_found"
    )
