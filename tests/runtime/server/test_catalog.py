"""Several models: when they are loaded and unloaded, and what those who wait see of it."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time

import pytest

from wherry.errors import ModelError, ResourceError
from wherry.runtime.load.memory import Room
from wherry.runtime.server.catalog.catalog import Catalog
from wherry.runtime.server.wire.errors import ApiError

from ..conftest import core_of
from .small_catalog import MB, Loads, catalog, prepared


@pytest.fixture
def loads():
    return Loads()


@pytest.fixture
def open_(tmp_path, loads):
    with contextlib.ExitStack() as stack:
        yield lambda models, **options: stack.enter_context(
            catalog(tmp_path, loads, models, **options)
        )


async def ask(models: Catalog, name: str, keep_alive=None) -> str:
    async with models.lease(name, keep_alive) as served:
        return served.name


async def until(condition, seconds=10.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        await asyncio.sleep(0.005)


async def test_loaded_on_request_by_every_name(open_, loads):
    models = open_({"a": {"aliases": ("gpt", "b:latest")}, "org/c": {}})
    assert [m.name for m in models.listed()] == ["a", "gpt", "b:latest", "org/c"]
    assert models.listed()[1].described()["root"] == "a"
    assert loads.begun == [] and models.served() == []
    for name in ("", "a", "gpt", "a:latest", "gpt:latest", "b:latest"):
        assert await ask(models, name) == "a"
    assert await ask(models, "org/c:latest") == "org/c"
    assert loads.begun == ["a", "org/c"]
    assert {m.name for m in models.served()} == {"a", "org/c"}
    for name in ("b", "c", "a:7b", "gpt:latest:latest"):
        with pytest.raises(ApiError, match="not served here; 'a', 'gpt'") as e:
            await ask(models, name)
        assert e.value.status_code == 404


async def test_who_asks_together_loads_once(open_, loads):
    models = open_({"a": {}})
    loads.gates["a"] = threading.Event()
    requests = [asyncio.create_task(ask(models, "a")) for _ in range(20)]
    await until(lambda: loads.begun == ["a"])
    loads.gates["a"].set()
    assert await asyncio.gather(*requests) == ["a"] * 20
    assert loads.begun == ["a"]


async def test_others_answer_while_one_loads(open_, loads):
    models = open_({"a": {}, "slow": {}})
    assert await ask(models, "a") == "a"
    loads.gates["slow"] = threading.Event()
    slow = asyncio.create_task(ask(models, "slow"))
    await until(lambda: "slow" in loads.begun)
    assert await ask(models, "a") == "a"
    assert not slow.done()
    loads.gates["slow"].set()
    assert await slow == "slow"


@pytest.mark.parametrize(
    ("error", "status", "said"),
    [
        (ModelError("no such layer"), 500, "'a' cannot be loaded: no such layer"),
        (ResourceError("needs 3 MB"), 503, "needs 3 MB"),
        (KeyError("secret"), 500, "the server's log says why"),
    ],
)
async def test_a_load_that_fails_is_reported_to_all_and_tried_again(
    open_, loads, error, status, said
):
    models = open_({"a": {}})
    loads.gates["a"], loads.fails["a"] = threading.Event(), error
    requests = [asyncio.create_task(ask(models, "a")) for _ in range(3)]
    await until(lambda: loads.begun == ["a"])
    loads.gates["a"].set()
    errors = await asyncio.gather(*requests, return_exceptions=True)
    assert [type(e) for e in errors] == [ApiError] * 3
    assert {(e.status_code, e.code) for e in errors} == {
        (status, "model_unavailable" if status == 503 else "model_load_failed")
    }
    assert said in errors[0].detail and "secret" not in errors[0].detail
    assert len({id(e) for e in errors}) == 3  # each has its own: they are raised and changed
    del loads.fails["a"]
    assert await ask(models, "a") == "a"
    assert loads.begun == ["a", "a"]


async def test_who_goes_away_while_waiting_breaks_nothing(open_, loads):
    models = open_({"a": {"keep_alive": 0.0}, "b": {}})
    loads.gates["a"] = threading.Event()
    gone, stays = (asyncio.create_task(ask(models, "a")) for _ in range(2))
    queued = asyncio.create_task(ask(models, "b"))
    await until(lambda: loads.begun == ["a"])
    gone.cancel()
    queued.cancel()  # the load of b has not begun, and no other request waits for it
    await asyncio.gather(gone, queued, return_exceptions=True)
    loads.gates["a"].set()
    assert await stays == "a"
    await until(lambda: not loads.loaded())  # no lease is left behind
    assert loads.begun == ["a"]


async def test_a_load_that_nobody_waits_for_any_more_stays_for_its_time(open_, loads):
    models = open_({"a": {"keep_alive": 0.2}})
    loads.gates["a"] = threading.Event()
    gone = asyncio.create_task(ask(models, "a"))
    await until(lambda: loads.begun == ["a"])
    gone.cancel()
    await asyncio.gather(gone, return_exceptions=True)
    loads.gates["a"].set()
    await until(lambda: "a" in loads.open)
    await until(lambda: not loads.loaded())


async def test_keep_alive(open_, loads):
    models = open_({"a": {"keep_alive": 0.3}, "b": {"keep_alive": float("inf")}})
    start = time.monotonic()
    async with models.lease("a") as served:
        assert models.served()[0].expires - time.time() == pytest.approx(0.3, abs=0.25)
        await asyncio.sleep(0.5)  # an answer may take longer
        assert not core_of(served.loaded).closed
    await ask(models, "b")
    await until(lambda: loads.loaded() == {"b"})
    assert time.monotonic() - start >= 0.8
    assert models.served()[0].expires is None
    await ask(models, "a", keep_alive=float("inf"))  # the request's own comes first
    await asyncio.sleep(0.5)
    assert loads.loaded() == {"a", "b"}
    await ask(models, "a", keep_alive=0.0)
    await until(lambda: loads.loaded() == {"b"})
    assert models.unload("b")
    await until(lambda: not loads.loaded())
    assert models.unload("b")  # again: nothing to do
    assert loads.begun == ["a", "b", "a"]


async def test_the_least_recently_used_makes_room(open_, loads):
    models = open_({"a": {}, "b": {}, "c": {}}, free=250 * MB)
    for name in ("a", "b", "a", "c"):
        await ask(models, name)
    assert loads.loaded() == {"a", "c"}
    await ask(models, "b")
    assert loads.loaded() == {"b", "c"}
    assert {m.name: m.bytes for m in models.served()} == {"b": 100 * MB, "c": 100 * MB}


async def test_an_explicit_limit_holds_whatever_is_free(open_, loads):
    models = open_({"a": {}, "b": {}}, free=1000 * MB, memory_limit=150 * MB)
    await ask(models, "a")
    await ask(models, "b")
    assert loads.loaded() == {"b"}


async def test_what_others_take_of_the_machine_counts(open_, loads):
    free = [250 * MB]
    models = open_({"a": {}, "b": {}}, room=lambda device: Room(free[0]))
    await ask(models, "a")
    free[0] = 60 * MB
    requests = asyncio.create_task(ask(models, "b"))
    await until(lambda: not loads.loaded())
    with pytest.raises(ApiError, match=r"needs 100\.0 MB.*60\.0 MB are free") as e:
        await requests
    assert (e.value.status_code, e.value.headers["Retry-After"]) == (503, "1")


async def test_never_while_it_answers_and_who_comes_later_waits_behind(open_, loads):
    models = open_({"a": {}, "b": {}}, free=150 * MB)
    async with models.lease("a") as served:
        wants_b = asyncio.create_task(ask(models, "b"))
        await until(lambda: models._slots()[0].resident.yields)
        wants_a = asyncio.create_task(ask(models, "a"))
        await asyncio.sleep(0.05)
        assert not core_of(served.loaded).closed
        assert not wants_b.done() and not wants_a.done()
    assert await asyncio.gather(wants_b, wants_a) == ["b", "a"]
    assert loads.begun == ["a", "b", "a"]


async def test_no_room_in_time_is_an_error_and_nothing_is_lost(open_, loads):
    models = open_({"a": {}, "b": {}}, free=150 * MB, wait_seconds=0.2)
    async with models.lease("a"):
        with pytest.raises(ApiError, match="b waits for memory that a has") as e:
            await ask(models, "b")
        assert (e.value.status_code, e.value.headers["Retry-After"]) == (503, "1")
        assert await ask(models, "a") == "a"  # at once, again
    assert loads.begun == ["a"]
    assert await ask(models, "b") == "b"


async def test_too_large_for_the_machine(open_, loads):
    models = open_({"a": {}, "huge": {"megabytes": 300, "per_token": 1000}})
    await ask(models, "a")
    with pytest.raises(ApiError, match=r"huge needs 300\.0 MB.*250\.0 MB are free"):
        await ask(models, "huge")
    assert loads.loaded() == {"a"}  # it had not to go for nothing


async def test_cache_gets_a_share_and_at_least_a_context(open_, loads):
    # 512 tokens of context, a batch of 8: 4096 tokens; a token takes 0.1 MB.
    sizes = {"megabytes": 10, "per_token": MB // 10}
    models = open_({n: sizes for n in "abc"}, free=300 * MB)
    await ask(models, "a")
    assert loads.tokens == [1440]  # half of 290 MB, in pages of 16
    await ask(models, "b")  # of 146 MB left, half is more than one context
    assert loads.tokens[1] == 672 and loads.loaded() == {"a", "b"}
    await ask(models, "c")  # 68.8 MB do not hold 10 + 51.2: yes they do, and half would not
    assert loads.tokens[2] == 512 and loads.loaded() == {"a", "b", "c"}
    assert sum(m.bytes for m in models.served()) <= 300 * MB


async def test_requested_tokens_are_what_it_takes(open_, loads):
    sizes = {"megabytes": 10, "per_token": MB // 10}
    models = open_({"a": sizes | {"options": {"kv_tokens": 1600}}, "b": sizes}, free=200 * MB)
    await ask(models, "a")
    assert loads.tokens == [1600] and models.served()[0].bytes == 170 * MB
    await ask(models, "b")
    assert loads.loaded() == {"b"}


async def test_an_engine_that_failed_is_loaded_again(open_, loads):
    models = open_({"a": {}})
    async with models.lease("a") as served:
        core_of(served.loaded).break_with = "broken"
        core_of(served.loaded).wake()
        await until(lambda: served.loaded.dispatcher.failed)
    await until(lambda: not loads.loaded())
    assert await ask(models, "a") == "a"
    assert loads.begun == ["a", "a"]


async def test_preload(open_, loads, tmp_path):
    models = open_({"a": {"preload": True}, "b": {}, "c": {"preload": True}})
    await asyncio.to_thread(models.preload)
    assert loads.begun == ["a", "c"]
    small = open_({"a": {"preload": True}, "b": {"preload": True}}, free=150 * MB)
    with pytest.raises(ResourceError, match="do not fit into memory together"):
        await asyncio.to_thread(small.preload)


async def test_queues_are_limited_whenever_a_model_is_loaded(open_, loads):
    models = open_({"a": {}, "b": {}})
    await ask(models, "a")
    models.limit_queues(7)
    await ask(models, "b")
    assert [m.loaded.dispatcher.limit for m in models.served()] == [16 + 7] * 2


async def test_a_name_that_is_added_again_has_the_new_model(open_, loads, tmp_path):
    models = open_({"a": {}})
    known = models._slots()[0].prepared
    async with models.lease("a") as old:
        models.add(known)  # the same: nothing changes
        assert await ask(models, "a") == "a" and loads.begun == ["a"]
        models.add(prepared(tmp_path / "other", known.manifest, "a"))
        requests = asyncio.create_task(ask(models, "a"))
        await asyncio.sleep(0.05)
        assert not requests.done() and not core_of(old.loaded).closed
    assert await requests == "a"
    assert loads.begun == ["a", "a"] and core_of(old.loaded).closed
    models.add(prepared(tmp_path, known.manifest, "new", aliases=("neu",)))
    assert await ask(models, "neu") == "new"


async def test_closing_ends_who_waits_and_frees_all(open_, loads):
    models = open_({"a": {}, "b": {}, "c": {}})
    await ask(models, "a")
    loads.gates["b"] = threading.Event()
    in_flight, queued = (asyncio.create_task(ask(models, n)) for n in "bc")
    await until(lambda: "b" in loads.begun)
    closing = asyncio.create_task(asyncio.to_thread(models.close))
    await until(lambda: models._keeper.closed)
    with pytest.raises(ApiError, match="shutting down"):
        await ask(models, "a")
    loads.gates["b"].set()
    await closing
    await in_flight  # it had been promised
    with pytest.raises(ApiError, match="shutting down"):
        await queued
    assert not loads.loaded()
    models.close()


async def test_many_clients_at_random(open_, loads):
    """Leases never outlive a model, memory is never over the limit, and all is freed."""
    models = open_(
        {n: {"keep_alive": 0.01 * i, "megabytes": 60 + 10 * i} for i, n in enumerate("abcde")},
        free=200 * MB,
    )
    most = []

    async def client(number):
        for turn in range(12):
            name = "abcde"[(number * 7 + turn * (number % 3 + 1)) % 5]
            task = asyncio.create_task(hold(name, 0.001 * (number % 4)))
            if (number + turn) % 5 == 0:
                await asyncio.sleep(0.001 * turn)
                task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            assert task.cancelled() or task.exception() is None

    async def hold(name, seconds):
        async with models.lease(name) as served:
            most.append(sum(m.bytes for m in models.served()))
            assert served.name == name and not core_of(served.loaded).closed
            await asyncio.sleep(seconds)
            assert not core_of(served.loaded).closed

    await asyncio.wait_for(asyncio.gather(*(client(n) for n in range(12))), 60)
    assert max(most) <= 200 * MB
    for name in "abcde":
        models.unload(name)
    await until(lambda: not loads.loaded())
    assert all(not s.resident and not s.loading for s in models._slots())
