"""Grammars that would take a server down are refused; the next one is compiled."""

from __future__ import annotations

import threading
import time

import pytest

from wherry.runtime.grammar import probe as probing
from wherry.runtime.grammar.probe import Refused

from .walking import probe

CHAIN = "start: r0\n" + "\n".join(f'r{i}: "a" r{i + 1}' for i in range(30_000)) + '\nr30000: "b"'
BOMBS = {
    "a chain that takes the stack": ("lark", CHAIN, "nested too deeply"),
    "nested too deeply": ("lark", "start: " + "(" * 9_000 + '"a"' + ")" * 9_000, "nested"),
    "optional parts": ("regex", "a?" * 20_000 + "a" * 20_000, "more than|takes"),
    "a wide intersection": (
        "lark",
        "start: A\nA: " + " & ".join(f"/(.*{c}.*){{3}}/" for c in "abcdefghij"),
        "too many|takes",
    ),
    "a wrong one": ("regex", "(", "regex"),
}
HARMLESS = {
    "repeated often": ("regex", "a{1000000}"),
    "repeated in repetitions": ("regex", "((a{100}){100}){100}"),
    "backtracking": ("regex", "(a+)+b|(.*a){20}"),
    "a long minimum": ("json_schema", '{"type":"string","minLength":1000000}'),
    "many items": ("json_schema", '{"type":"array","minItems":1000000}'),
    "ten thousand values": (
        "json_schema",
        '{"enum":[' + ",".join(f'"value {i}"' for i in range(10_000)) + "]}",
    ),
    "left recursion": ("lark", 'start: start start | "a"'),
    "nothing": ("lark", 'start: ("")*'),
}


@pytest.fixture(scope="module")
def one():
    checker = probe()
    yield checker
    checker.close()


@pytest.mark.parametrize("name", BOMBS)
def test_bombs_are_refused_and_the_next_is_fine(one, name):
    kind, text, message = BOMBS[name]
    with pytest.raises(Refused, match=message):
        one.check(kind, text)
    one.check("regex", "a")


@pytest.mark.parametrize("name", HARMLESS)
def test_what_looks_dangerous_and_is_not(one, name):
    one.check(*HARMLESS[name])


def test_a_limit_of_time(one):
    """Of the wall, too: a machine may be busy with others. A killed process is replaced."""
    started = time.monotonic()
    with pytest.raises(TimeoutError):
        one.check("regex", "a?" * 20_000 + "a" * 20_000, seconds=0.3)
    assert time.monotonic() - started < probing.CPU_SECONDS
    one.check("regex", "a")


def test_a_line_that_waits_too_long(one):
    one.check("regex", "a")
    with one._lock:
        with pytest.raises(TimeoutError):
            one.check("regex", "b", seconds=0.05)


def test_the_process_is_started_again(one):
    one.check("regex", "a")
    one._process.kill()
    one._process.wait()
    one.check("regex", "a")


def test_closing_ends_a_check():
    checker = probe()
    checker.check("regex", "a")
    timer = threading.Timer(0.3, checker.close)
    timer.start()
    with pytest.raises(TimeoutError):
        checker.check("regex", "a?" * 20_000 + "a" * 20_000)
    timer.join()
    checker.close()


def test_closed_twice():
    checker = probe()
    checker.check("regex", "a")
    process = checker._process
    checker.close()
    checker.close()
    assert process.poll() is not None
