"""What is kept for later is bounded, in number and bytes, and each tenant's apart."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from wherry.runtime.errors import RequestError
from wherry.runtime.server.endpoints.responses.memory import KeptConversation, Memory
from wherry.runtime.server.endpoints.responses.response_store import ResponseStore
from wherry.runtime.server.wire.errors import ApiError


@dataclass(frozen=True)
class Sized:
    size: int


def names(store, *keys):
    return [key for key in keys if store.get(("a", key)) is not None]


def test_what_was_not_used_for_longest_goes_first():
    store = ResponseStore(3, 100)
    for name in "123":
        assert store.put(("a", name), Sized(10))
    store.get(("a", "1"))
    store.put(("a", "4"), Sized(10))
    assert names(store, *"1234") == ["1", "3", "4"]
    store.put(("a", "5"), Sized(85))
    assert names(store, *"1345") == ["4", "5"]


def test_bytes_are_those_of_what_is_there():
    store = ResponseStore(1000, 100)
    for i in range(1000):
        store.put(("a", str(i % 7)), Sized(i % 50))
        store.pop(("a", str(i % 5)))
        store.change(("a", str(i % 3)), lambda entry: Sized(entry.size + 1))
        sizes = [e.size for e in (store.get(("a", str(k))) for k in range(7)) if e]
        assert store._bytes == sum(sizes) <= 100


def test_what_is_larger_than_all_that_may_be_kept_is_not_kept():
    store = ResponseStore(10, 100)
    store.put(("a", "1"), Sized(10))
    assert not store.put(("a", "2"), Sized(101))
    with pytest.raises(ValueError):
        store.change(("a", "1"), lambda entry: Sized(101))
    assert names(store, "1", "2") == ["1"]
    assert store.change(("a", "9"), lambda entry: entry) is None


def test_tenants_are_apart():
    memory = Memory()
    response = {"id": "resp_1", "output": [{"id": "msg_1"}]}
    memory.keep("a", response, (b"{}",))
    assert memory.response("a", "resp_1").context == [{}, {"id": "msg_1"}]
    assert memory.item("a", "msg_1") == {"id": "msg_1"}
    assert memory.item("b", "msg_1") is None
    with pytest.raises(ApiError):
        memory.response("b", "resp_1")


def test_a_conversation_does_not_grow_without_end():
    memory = Memory(size=50_000)
    kept = KeptConversation({}, (b"{}",), id="conv_1")
    memory.conversations.put(("a", "conv_1"), kept)
    assert len(memory.extend("a", "conv_1", (b"{}",) * 3).items) == 4
    with pytest.raises(RequestError, match="4096"):
        memory.extend("a", "conv_1", (b"{}",) * 4096)
    with pytest.raises(RequestError, match="bytes"):
        memory.extend("a", "conv_1", (b" " * 50_000,))
    with pytest.raises(ApiError):
        memory.extend("b", "conv_1", ())
    assert len(memory.conversation("a", "conv_1").items) == 4
