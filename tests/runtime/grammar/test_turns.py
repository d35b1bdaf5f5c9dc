"""Who waits for whose grammar: tenants take turns, equal grammars are compiled once."""

from __future__ import annotations

import threading
from concurrent.futures import wait

import pytest

from wherry.errors import WherryError
from wherry.runtime import RequestError
from wherry.runtime.errors import BusyError
from wherry.runtime.grammar import compiler, turns
from wherry.runtime.grammar.compiler import GrammarCompiler
from wherry.runtime.grammar.constraint import Constraint
from wherry.runtime.grammar.probe import Refused
from wherry.runtime.grammar.turns import TenantTurns

ANN, BOB, EVE = 1, 2, 3


class Gate:
    """Work that waits until it is told to go on, and notes what is done after it."""

    def __init__(self):
        self.begun, self.open, self.done = threading.Event(), threading.Event(), []

    def hold(self):
        self.begun.set()
        assert self.open.wait(10)


@pytest.fixture
def gate():
    opened = Gate()
    yield opened
    opened.open.set()


@pytest.fixture
def line(gate):
    queue = TenantTurns("test")
    queue.submit(EVE, gate.hold)
    assert gate.begun.wait(10)
    yield queue
    gate.open.set()
    queue.close()


def test_tenants_take_turns(line, gate):
    order = [(EVE, 1), (EVE, 2), (EVE, 3), (BOB, 1), (ANN, 1), (BOB, 2)]
    futures = [line.submit(who, lambda x=(who, i): gate.done.append(x)) for who, i in order]
    gate.open.set()
    wait(futures, 10)
    assert gate.done == [(EVE, 1), (BOB, 1), (ANN, 1), (EVE, 2), (BOB, 2), (EVE, 3)]


def test_the_line_is_short(line, gate):
    for _ in range(turns.PER_TENANT):
        line.submit(EVE, lambda: None)
    with pytest.raises(BusyError, match=f"{turns.PER_TENANT} grammars of this client wait"):
        line.submit(EVE, lambda: None)
    fine = line.submit(BOB, lambda: 5)
    others = (tenant for tenant in range(9, 9999) for _ in range(turns.PER_TENANT))
    with pytest.raises(BusyError, match=f"{turns.IN_ALL} in all"):
        while True:
            line.submit(next(others), lambda: None)
    gate.open.set()
    assert fine.result(10) == 5


def test_audits_have_no_limit_of_their_own(gate):
    """Each constrained request passes: hundreds of one client may come at once."""
    queue = TenantTurns("test", bounded=False)
    queue.submit(EVE, gate.hold)
    futures = [queue.submit(EVE, lambda: 1) for _ in range(2 * turns.PER_TENANT)]
    gate.open.set()
    assert sum(future.result(10) for future in futures) == 2 * turns.PER_TENANT
    queue.close()
    assert turns.AUDITS._bounded is False


def test_who_leaves_is_not_served(line, gate):
    gone, fine = line.submit(BOB, lambda: gate.done.append(1)), line.submit(BOB, lambda: 2)
    assert gone.cancel()
    gate.open.set()
    assert fine.result(10) == 2 and gate.done == []


def test_errors_and_the_end(line, gate):
    wrong = line.submit(ANN, lambda: [][1])
    waiting = line.submit(BOB, lambda: None)
    gate.open.set()
    with pytest.raises(IndexError):
        wrong.result(10)
    waiting.result(10)
    last = Gate()
    running = line.submit(ANN, last.hold)
    assert last.begun.wait(10)
    late = line.submit(ANN, lambda: None)
    line.close()
    with pytest.raises(WherryError, match="closed"):
        late.result(10)
    last.open.set()
    running.result(10)
    with pytest.raises(WherryError, match="closed"):
        line.submit(ANN, lambda: None)
    line.close()


class StandIn:
    """A probe and a vocabulary that note what they get; the probe stops at the text "hold"."""

    def __init__(self, gate):
        self.gate, self.probed, self.compiled = gate, [], []

    def check(self, kind, text):
        self.probed.append(text)
        if text == "hold":
            self.gate.hold()
        if "bad" in text:
            raise Refused("it is bad")
        if "slow" in text:
            raise TimeoutError

    def compile(self, kind, text):
        self.compiled.append(text)
        return ("grammar of", text)

    def close(self):
        pass


@pytest.fixture
def stand_in(gate):
    return StandIn(gate)


@pytest.fixture
def grammars(stand_in, gate):
    own = GrammarCompiler(lambda: stand_in, stand_in)
    own.begin(regex("hold"), EVE)
    assert gate.begun.wait(10)
    yield own
    gate.open.set()
    own.close()


def regex(text, param="guided_regex"):
    return Constraint("regex", text, param)


def test_equal_grammars_are_probed_once(grammars, stand_in, gate):
    """Refused ones, too; each who asked gets the name of the own field."""
    params = ("guided_regex", "structured_outputs.regex")
    bad = [grammars.begin(regex("bad", p), EVE) for p in params for _ in range(8)]
    good = [grammars.begin(regex("good"), tenant) for tenant in (EVE, BOB, ANN, EVE)]
    gate.open.set()
    for future, param in zip(bad, [p for p in params for _ in range(8)], strict=True):
        with pytest.raises(RequestError, match=f"^{param} cannot be enforced: it is bad"):
            future.result(10)
    assert {f.result(10) for f in good} == {("grammar of", "good")}
    with pytest.raises(RequestError, match="it is bad"):
        grammars.compile(regex("bad"))
    assert stand_in.probed == ["hold", "bad", "good"] or stand_in.probed == ["hold", "good", "bad"]


def test_an_equal_grammar_comes_in_the_turn_of_each_who_asks(grammars, stand_in, gate):
    of_eve = [grammars.begin(regex(f"eve {i}"), EVE) for i in range(8)]
    of_bob = grammars.begin(regex("eve 7"), BOB)
    gate.open.set()
    wait([*of_eve, of_bob], 10)
    assert stand_in.probed[1:3] == ["eve 0", "eve 7"] and len(stand_in.probed) == 9


def test_what_nobody_waits_for_is_not_probed(grammars, stand_in, gate):
    gone = [grammars.begin(regex("gone"), tenant) for tenant in (EVE, BOB)]
    assert all(future.cancel() for future in gone)
    gate.open.set()
    grammars.compile(regex("last"))
    assert stand_in.probed == ["hold", "last"]
    assert grammars.begin(regex("gone"), EVE).result(10) == ("grammar of", "gone")


def test_a_busy_machine_refuses_nothing_for_good(grammars, stand_in, gate):
    gate.open.set()
    for _ in range(2):
        with pytest.raises(BusyError, match="ask again later"):
            grammars.compile(regex("slow"))
    assert stand_in.probed.count("slow") == 2


def test_who_has_waited_too_long_is_not_probed(grammars, stand_in, gate, monkeypatch):
    late = grammars.begin(regex("late"), BOB)
    monkeypatch.setattr(compiler, "MOST_WAIT", -1.0)
    gate.open.set()
    with pytest.raises(BusyError):
        late.result(10)
    assert stand_in.probed == ["hold"]


def test_many_refusals_push_no_grammar_out(grammars, stand_in, gate):
    gate.open.set()
    grammars.compile(regex("good"))
    for i in range(compiler.KEPT + 1):
        with pytest.raises(RequestError):
            grammars.compile(regex(f"bad {i}"))
    grammars.compile(regex("good"))
    assert stand_in.compiled == ["hold", "good"]


def test_closing_ends_every_wait(grammars, gate):
    waiting = grammars.begin(regex("a"), BOB)
    grammars.close()
    with pytest.raises(WherryError, match="closed"):
        waiting.result(10)
    gate.open.set()
    grammars.close()
