"""What is made of the kernels that a profiler has seen."""

from __future__ import annotations

from benchmarks.gpu.profile import by_name


def _event(name: str, ts: float, dur: float, grid: int = 1) -> dict:
    args = {"grid": [grid, 1, 1], "block": [32, 1, 1], "registers per thread": 40}
    return {"cat": "kernel", "name": name, "ts": ts, "dur": dur, "args": args}


def test_times_are_those_of_one_step():
    events = [_event("b", 10, 2), _event("a", 0, 3), _event("a", 4, 5, grid=7), _event("b", 20, 2)]
    times = by_name(events, 2)
    assert times["launches"] == 2 and times["busy_us"] == 6 and times["span_us"] == 11
    first, second = times["kernels"]
    assert (first["name"], first["us"], first["calls"], first["longest_us"]) == ("a", 4, 1, 5)
    assert first["grid"] == [7, 1, 1] and first["registers per thread"] == 40
    assert second["name"] == "b" and second["share"] == 1 / 3


def test_no_kernels():
    assert by_name([], 3) == {"busy_us": 0.0, "span_us": 0.0, "launches": 0.0, "kernels": []}
