"""What a client is told who must wait: a time that was measured."""

from __future__ import annotations

from wherry.runtime import MLCEngine, create_app
from wherry.runtime.host import pace
from wherry.runtime.host.pace import Pace

from .asking import COMPLETIONS, HI, client_of, error


def at(monkeypatch, seconds):
    monkeypatch.setattr(pace.time, "monotonic", lambda: seconds)


def test_nobody_knows_before_the_first_end():
    assert Pace().seconds_until(100) == 1


def test_the_pace_of_the_last_ends(monkeypatch):
    measured = Pace()
    for second in range(10):
        at(monkeypatch, 100.0 + 2 * second)
        measured.note(1)
    at(monkeypatch, 120.0)  # ten ends in twenty seconds
    assert measured.seconds_until(1) == 2
    assert measured.seconds_until(5) == 10
    assert measured.seconds_until(1000) == 60
    at(monkeypatch, 170.0)  # and none for fifty
    assert measured.seconds_until(1) == 7
    at(monkeypatch, 1000.0)
    assert measured.seconds_until(1) == 1


def test_many_ends_at_once(monkeypatch):
    measured = Pace()
    at(monkeypatch, 10.0)
    measured.note(10_000)
    at(monkeypatch, 11.0)
    assert measured.seconds_until(64) == 1


def test_a_full_queue_tells_the_measured_time(make, monkeypatch):
    model = make(None, context=1_000_000, pages=100_000, step_seconds=0.001)
    client = client_of(create_app(MLCEngine.of(model), max_queue=0))
    streams = [MLCEngine.of(model).chat.completions.create(**HI, stream=True) for _ in range(16)]
    places = []
    monkeypatch.setattr(model.dispatcher.pace, "seconds_until", lambda n: places.append(n) or 17)
    answer = client.post(COMPLETIONS, json={"prompt": "a", "n": 3})
    assert error(answer, 429)["code"] == "queue_full"
    assert answer.headers["retry-after"] == "17"
    assert places == [3]
    for stream in streams:
        stream.close()


def test_ends_are_noted(make):
    model = make("one")
    client = client_of(create_app(MLCEngine.of(model)))
    client.post(COMPLETIONS, json={"prompt": "a", "n": 5})
    assert len(model.dispatcher.pace._ends) == 5
