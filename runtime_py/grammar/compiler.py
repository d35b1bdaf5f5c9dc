"""The grammars of one model: each is probed, compiled and cached."""

from __future__ import annotations

import hashlib
import importlib.util
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, TypeVar

from wherry.errors import ToolchainError, UsageError, WherryError

from ..core.library import find_core, open_core, open_runtime
from ..errors import BusyError, RequestError
from ..text.tokenizer import Tokenizer
from .constraint import Constraint
from .native import Grammar, Vocabulary
from .probe import STACK, WALL_SECONDS, Probe, Refused
from .turns import TenantTurns
from .vocabulary import grammar_tokens

MOST_WAIT = 2 * WALL_SECONDS  # seconds for other grammars, which may be one of another tenant
KEPT = 64  # number of grammars in the cache
KEPT_REFUSALS = 1024  # number of refusals in the cache, short texts

T = TypeVar("T")


def find_llguidance() -> Path:
    """Return the path of llguidance's shared library, without importing its Python package.

    The core calls the library's C functions.

    Raises:
        ToolchainError: it is not installed.
    """
    spec = importlib.util.find_spec("llguidance")
    folder = Path(spec.origin).parent if spec and spec.origin else None
    files = sorted(p for p in folder.glob("_lib*") if p.suffix != ".pyi") if folder else []
    if not files:
        raise ToolchainError(
            "Structured output needs the Python package llguidance. Type: pip install llguidance"
        )
    return files[0]


_Key = tuple[str, bytes]  # the kind of a grammar, and the hash of its text


def _key_of(constraint: Constraint) -> _Key:
    return constraint.kind, hashlib.sha256(constraint.text.encode()).digest()


class _Kept(Generic[T]):
    """The newest values that were used, by the keys of grammars."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._values: OrderedDict[_Key, T] = OrderedDict()

    def get(self, key: _Key) -> T | None:
        value = self._values.get(key)
        if value is not None:
            self._values.move_to_end(key)
        return value

    def put(self, key: _Key, value: T) -> None:
        self._values[key] = value
        while len(self._values) > self._most:
            self._values.popitem(last=False)


@dataclass(slots=True)
class _Waiting:
    """The callers of one grammar that is being compiled.

    Attributes:
        tenants: those in whose turns it is compiled.
        since: time.monotonic() of the first who asked.
    """

    tenants: set[int] = field(default_factory=set)
    callers: list[tuple[Future[Grammar], Constraint]] = field(default_factory=list)
    since: float = field(default_factory=time.monotonic)


class GrammarCompiler:
    """Compiles constraints, each at most once; usable from any thread.

    Args:
        vocabulary: makes the model's vocabulary at the first request.
        probe: tries each grammar first.
    """

    def __init__(self, vocabulary: Callable[[], Vocabulary], probe: Probe) -> None:
        self._make_vocabulary = vocabulary
        self._vocabulary: Vocabulary | None = None
        self._probe = probe
        self._grammars = _Kept[Grammar](KEPT)
        self._refusals = _Kept[str](KEPT_REFUSALS)
        self._waiting: dict[_Key, _Waiting] = {}
        self._lock = threading.Lock()  # guards the three above
        # The stack is larger than the probe's, so what compiled there cannot overflow it here.
        self._turns = TenantTurns("wherry-grammar", 4 * STACK)

    @classmethod
    def of(cls, tokenizer: Tokenizer, vocab_size: int) -> GrammarCompiler:
        """Return the grammar compiler of a model.

        Raises:
            RequestError: the decoder of the tokenizer does not work token by token.
            ToolchainError: llguidance is not installed.
        """
        library = find_llguidance()
        tokens = grammar_tokens(tokenizer, vocab_size)
        open_runtime("cpu")  # libwherry depends on the TVM runtime, which must be loaded first
        return cls(lambda: Vocabulary(open_core(), library, tokens), Probe(find_core(), library))

    def begin(self, constraint: Constraint, tenant: int = 0) -> Future[Grammar]:
        """Return the future of a constraint's grammar; cancelling it gives the grammar up.

        Equal constraints are compiled once, however many wait; tenants are served in turn.

        Raises in the future:
            BusyError: the compilation, or earlier ones, took too long, so that the server is busy.
            RequestError: the constraint cannot be enforced, or is too expensive; the message says
                which.

        Raises:
            BusyError: too many grammars wait.
        """
        key, future = _key_of(constraint), Future[Grammar]()
        with self._lock:
            outcome = self._grammars.get(key) or self._refusals.get(key)
            if outcome is None:
                self._wait(constraint, tenant, key).callers.append((future, constraint))
                return future
        _settle(future, constraint, outcome)
        return future

    def _wait(self, constraint: Constraint, tenant: int, key: _Key) -> _Waiting:
        """Queue a constraint once for each tenant that asks: the first one's turn may be far."""
        waiting = self._waiting.get(key) or _Waiting()
        if tenant not in waiting.tenants:
            self._turns.submit(tenant, lambda: self._turn(constraint, key))
            waiting.tenants.add(tenant)
            self._waiting[key] = waiting
        return waiting

    def compile(self, constraint: Constraint) -> Grammar:
        """Return the grammar of a constraint; blocks while it is compiled. Errors as in `begin`."""
        return self.begin(constraint).result()

    def _turn(self, constraint: Constraint, key: _Key) -> None:
        """Probe and compile a constraint for all who wait for it."""
        with self._lock:
            waiting = self._waiting.get(key)
            if waiting is None:  # another tenant's turn has done it
                return
            if all(future.cancelled() for future, _ in waiting.callers):
                del self._waiting[key]
                return
        try:
            outcome: Grammar | str | Exception = self._make(constraint, waiting.since)
        except Exception as e:  # each caller gets it
            outcome = e
        with self._lock:
            callers = self._take(key)
            if isinstance(outcome, str):
                self._refusals.put(key, outcome)
            elif not isinstance(outcome, Exception):
                self._grammars.put(key, outcome)
        for future, own in callers:
            _settle(future, own, outcome)

    def _take(self, key: _Key) -> list[tuple[Future[Grammar], Constraint]]:
        """Remove and return those who wait for a grammar; none after `close`."""
        waiting = self._waiting.pop(key, None)
        return waiting.callers if waiting else []

    def _make(self, constraint: Constraint, since: float) -> Grammar | str:
        """Compile a grammar and return it, or the error message if it cannot be compiled."""
        try:
            if time.monotonic() - since > MOST_WAIT:
                raise TimeoutError
            self._probe.check(constraint.kind, constraint.text)
        except Refused as e:
            return str(e)
        except TimeoutError as e:
            raise BusyError(
                f"No time to compile {constraint.param} in {WALL_SECONDS:g} s; ask again later"
            ) from e
        try:
            return self._compile(constraint)
        except UsageError as e:
            return str(e)

    def _compile(self, constraint: Constraint) -> Grammar:
        if self._vocabulary is None:
            self._vocabulary = self._make_vocabulary()
        return self._vocabulary.compile(constraint.kind, constraint.text)

    def close(self) -> None:
        """End the probe's process and the thread; waiting callers get an error. Idempotent."""
        self._turns.close()
        self._probe.close()
        with self._lock:
            callers = [caller for key in [*self._waiting] for caller in self._take(key)]
        for future, constraint in callers:
            _settle(future, constraint, WherryError("The engine is closed"))


def _settle(
    future: Future[Grammar], constraint: Constraint, outcome: Grammar | str | Exception
) -> None:
    """Give a caller its grammar, or the error that says why there is none."""
    if not future.set_running_or_notify_cancel():
        return
    if isinstance(outcome, str):
        outcome = RequestError(
            f"{constraint.param} cannot be enforced: {outcome}",
            param=constraint.param,
            code="invalid_grammar",
        )
    if isinstance(outcome, Exception):
        future.set_exception(outcome)
    else:
        future.set_result(outcome)
