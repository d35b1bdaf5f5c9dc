"""A folder of prefixes that fails: said at the start, in the log, in /stats and in /metrics."""

from __future__ import annotations

import logging
import time
from itertools import chain, repeat

from fastapi.testclient import TestClient

from wherry.runtime import MLCEngine, create_app
from wherry.runtime.core.interface import CoreStats
from wherry.runtime.core.pulse import Pulse

from .conftest import core_of

WORDS = "/cache/incoming: cannot write: No space left on device"


def test_a_reason_is_logged_once_and_so_is_its_end(caplog):
    fails, well = CoreStats(disk_problem=WORDS), CoreStats()
    read = chain([well, well, fails, fails, fails], repeat(well))
    pulse = Pulse(lambda: next(read), lambda: 1)
    with caplog.at_level(logging.WARNING):
        while pulse.looks < 7:
            pulse.stir()
            time.sleep(0.001)
    pulse.close()
    first, second = (record.message for record in caplog.records)
    assert WORDS in first
    assert second == "Prefixes are written to the disk again"


def test_dropped_blocks_are_logged_at_each_doubling(caplog):
    counts = [0, 1, 1, 2, 3, 3, 6, 7]
    read = chain((CoreStats(disk_dropped=n) for n in counts), repeat(CoreStats(disk_dropped=7)))
    pulse = Pulse(lambda: next(read), lambda: 1)
    with caplog.at_level(logging.WARNING):
        while pulse.looks < len(counts) + 1:
            pulse.stir()
            time.sleep(0.001)
    pulse.close()
    assert [int(record.message.split()[0]) for record in caplog.records] == [1, 2, 6]


def test_a_model_whose_prefixes_cannot_be_stored_says_so_at_the_start(caplog):
    reason = "this model has a recurrent state, which is not stored in blocks of a prefix"
    with caplog.at_level(logging.WARNING):
        Pulse(lambda: CoreStats(disk_problem=reason), lambda: 0).close()
    assert [record.message for record in caplog.records] == [
        f"No prefix is written to the disk: {reason}"
    ]


def test_a_server_tells(make):
    model = make()
    client = TestClient(create_app(MLCEngine.of(model)), base_url="http://localhost")
    assert client.get("/stats").json()["disk"] == {"dropped_blocks": 0, "problem": None}
    assert 'wherry_disk_cache_failing{model="small"} 0.0' in client.get("/metrics").text
    none = {"slots_total": 0, "slots_free": 0, "snapshots": 0}
    assert client.get("/stats").json()["recurrent_state"] == none
    core_of(model)._counts.update(state_slots=8, state_slots_free=2, state_snapshots=5)
    core_of(model)._counts.update(disk_problem=WORDS, disk_dropped=3)
    state = {"slots_total": 8, "slots_free": 2, "snapshots": 5}
    assert client.get("/stats").json()["recurrent_state"] == state
    assert 'wherry_state_snapshots{model="small"} 5.0' in client.get("/metrics").text
    assert client.get("/stats").json()["disk"] == {"dropped_blocks": 3, "problem": WORDS}
    metrics = client.get("/metrics").text
    assert 'wherry_disk_cache_failing{model="small"} 1.0' in metrics
    assert 'wherry_disk_dropped_blocks_total{model="small"} 3.0' in metrics
